"""Each scheme against a loop that goes through a row word by word."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import ModelError
from lab.parts import token_facts as lab
from lab.parts.segments import segments
from lab.parts.token_facts import TokenFacts
from tests.from_scratch import draw, position_ids

WORDS = ["<pad>", "<begin>", "<end>", "=", "<add_integer>", "<max_float>", ".", "/", "e", "<0.3>", "<1.0>"]
WORDS += [*map(str, range(10)), "12", "07", "345", "000"]
FACTS = TokenFacts.of(WORDS)
THROUGH_POINT = TokenFacts.of(WORDS, through_point=True)
KINDS = ["plain", "abacus", "coupled"]
SPECIAL = {"<pad>", "<begin>", "<end>"}

words = st.sampled_from(WORDS)
texts = st.lists(words, min_size=1, max_size=40)
numbers = st.lists(st.sampled_from([word for word in WORDS if word.isdigit()]), min_size=1, max_size=5)
problems = st.builds(
    lambda a, b, answer: ["<begin>", *a, "<add_integer>", *b, "=", *answer, "<end>"], numbers, numbers, numbers
)
packed_rows = st.integers(1, 4).flatmap(
    lambda count: st.lists(
        st.lists(problems, min_size=count, max_size=count).map(
            lambda packed: [word for text in packed for word in text]
        ),
        min_size=1,
        max_size=3,
    )
)


def encode(*rows: list[str] | str) -> torch.Tensor:
    """Token ids, padded on the right."""
    texts = [row.split() if isinstance(row, str) else row for row in rows]
    longest = max(map(len, texts))
    return torch.tensor([[WORDS.index(word) for word in [*text, *["<pad>"] * (longest - len(text))]] for text in texts])


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def is_hint(word: str) -> bool:
    return word.startswith("<") and "." in word


def written_before(row: list[str], through_point: bool) -> list[int]:
    written, found = 0, []
    for word in row:
        if word.isdigit():
            found.append(written)
            written += len(word)
        elif is_hint(word) or word == "<end>" or (through_point and word == "."):
            found.append(written)
        else:
            written = 0
            found.append(0)
    return found


def problem_of(row: list[str]) -> list[int]:
    found, problem = [], -1
    for word in row:
        problem += word == "<begin>"
        found.append(max(problem, 0))
    return found


def plain_of(row: list[str]) -> list[int]:
    found, count = [], 0
    for word in row:
        count += count > 0 or word != "<pad>"
        found.append(max(0, count - 1))
    return found


def segments_of(row: list[str]) -> list[int]:
    found, segment = [], 1
    for word in row:
        if word == "<begin>":
            segment = 1
        elif word == "<end>":
            segment = 0
        elif word == "=" and segment:
            segment = 3
        elif word in ("<add_integer>", "<max_float>") and segment:
            segment = max(segment, 2)
        found.append(0 if word in SPECIAL else segment)
    return found


def test_the_example_of_the_docstring_is_true():
    row = encode("<begin> 5 2 1 <add_integer> 7 9 = 2 2 2 <end>")
    assert position_ids("plain", 128, row, FACTS).tolist() == [list(range(12))]
    assert position_ids("abacus", 128, row, FACTS).tolist() == [[0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 0]]
    assert position_ids("coupled", 128, row, FACTS).tolist() == [[0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 4]]
    assert segments(row, FACTS).tolist() == [[0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 0]]
    row = encode("<begin> 1 2 5 <add_integer> 9 7 = 0 2 2 2 <end>")
    assert position_ids("countdown", 128, row, FACTS).tolist() == [[0, 3, 2, 1, 0, 2, 1, 5, 4, 3, 2, 1, 0]]


def test_decimals_and_integer_part_are_one_number_where_ids_go_on_through_the_point():
    row = encode("<begin> 5 2 . 1 <max_float> 5 7 . 0 = 0 0 . 2 <end>")  # 1.25, 0.75 and 2.00
    abacus = [[0, 1, 2, 0, 3, 0, 1, 2, 0, 3, 0, 1, 2, 0, 3, 0]]
    assert position_ids("abacus", 128, row, THROUGH_POINT).tolist() == abacus
    coupled = [[0, 1, 2, 2, 3, 0, 1, 2, 2, 3, 0, 1, 2, 2, 3, 4]]
    assert position_ids("coupled", 128, row, THROUGH_POINT).tolist() == coupled
    assert lab.longest_runs(row, THROUGH_POINT).tolist() == [[3]]
    assert lab.longest_runs(row, FACTS).tolist() == [[2]]


def test_groups_count_by_their_digits_hints_belong_to_the_next_group_and_separators_end_a_run():
    row = encode("<pad> <begin> <0.3> 345 <1.0> 12 . 07 1 <max_float> 9 = <0.3> 345 12 . 1 <end>")
    assert position_ids("abacus", 99, row, FACTS).tolist() == [[0, 0, 0, 1, 0, 4, 0, 1, 3, 0, 1, 0, 0, 1, 4, 0, 1, 0]]
    offset = torch.tensor([[10]])
    coupled = [[0, 0, 11, 11, 14, 14, 10, 11, 13, 10, 11, 10, 11, 11, 14, 10, 11, 12]]
    assert position_ids("coupled", 99, row, FACTS, offset).tolist() == coupled
    assert segments(row, FACTS).tolist() == [[0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 0]]


@settings(deadline=None, max_examples=50)
@given(texts, st.integers(0, 50))
def test_plain_ids_and_segments_are_those_of_a_loop_over_any_words(row, padding):
    row = ["<pad>"] * padding + row
    assert position_ids("plain", 9, encode(row), FACTS).tolist() == [plain_of(row)]
    assert segments(encode(row), FACTS).tolist() == [segments_of(row)]


@settings(deadline=None, max_examples=50)
@given(texts, st.lists(st.integers(0, 90), min_size=40, max_size=40), st.integers(2, 60), st.booleans())
def test_places_are_those_of_a_loop_over_any_words(row, drawn, largest, through_point):
    facts = THROUGH_POINT if through_point else FACTS
    before, shift = written_before(row, through_point), [drawn[problem] for problem in problem_of(row)]
    abacus = [1 + shift[t] + before[t] if word.isdigit() else 0 for t, word in enumerate(row)]
    assert position_ids("abacus", 999, encode(row), facts, torch.tensor([drawn])).tolist() == [abacus]
    assert position_ids("abacus", 999, encode(row), facts).tolist() == [
        [1 + before[t] if word.isdigit() else 0 for t, word in enumerate(row)]
    ]
    coupled = []
    for t, word in enumerate(row):
        inside = word.isdigit() or is_hint(word) or word == "<end>"
        coupled.append(0 if word in ("<pad>", "<begin>") else (shift[t] + inside + before[t]) % largest)
    assert position_ids("coupled", largest, encode(row), facts, torch.tensor([drawn])).tolist() == [coupled]


numerals = st.integers(1, 10**6).map(str)


@settings(deadline=None, max_examples=50)
@given(numerals, numerals, st.integers(0, 3), st.integers(0, 99))
def test_digits_of_one_place_have_one_countdown_id_as_people_write_numbers(a, b, padding, offset):
    answer = str(int(a) + int(b)).zfill(max(len(a), len(b)) + 1)
    text = ["<pad>"] * padding + ["<begin>", *a, "<add_integer>", *b, "=", *answer, "<end>"]
    found = position_ids("countdown", 128, encode(text), FACTS, torch.tensor([[offset]]))[0].tolist()
    expected = [0] * (padding + 1)
    for numeral, ends_with in ((a, "<add_integer>"), (b, "=")):
        expected += [(offset + place) % 128 for place in range(len(numeral), 0, -1)]
        expected.append((offset + (len(answer) + 1 if ends_with == "=" else 0)) % 128)
    assert found == expected + [(offset + place) % 128 for place in range(len(answer), -1, -1)]


def test_countdown_ids_go_on_through_the_point():
    row = encode("<begin> 1 . 2 5 <max_float> 0 . 7 5 = 0 2 . 0 0 <end>")
    ids = [[0, 3, 2, 2, 1, 0, 3, 2, 2, 1, 5, 4, 3, 3, 2, 1, 0]]
    assert position_ids("countdown", 64, row, THROUGH_POINT).tolist() == ids


@settings(deadline=None, max_examples=25)
@given(numerals, numerals, numerals)
def test_countdown_ids_of_a_question_stay_the_same_while_its_answer_is_written(a, b, answer):
    whole = encode(["<begin>", *a, "<add_integer>", *b, "=", *answer, "<end>"])
    ids = position_ids("countdown", 64, whole, FACTS)
    for cut in range(len(a) + len(b) + 3, whole.shape[1]):
        assert position_ids("countdown", 64, whole[:, :cut], FACTS).equal(ids[:, :cut])


@settings(deadline=None, max_examples=50)
@given(packed_rows, st.integers(0, 2**32))
def test_packed_problems_have_countdown_ids_of_their_own(rows, seed):
    asked = [[word for problem in split_problems(row) for word in answered_in_full(problem)] for row in rows]
    ids_BT, count = encode(*asked), rows[0].count("<begin>")
    drawn = draw("countdown", 128, ids_BT, FACTS, generator(seed))
    for row, ids in zip(asked, position_ids("countdown", 128, ids_BT, FACTS, drawn).tolist(), strict=True):
        taken: list[set[int]] = [set() for _ in range(count)]
        for word, problem, number in zip(row, problem_of(row), ids, strict=False):
            if word != "<begin>":
                taken[problem].add(number)
        assert sum(map(len, taken)) == len(set().union(*taken))


def split_problems(row: list[str]) -> list[list[str]]:
    starts = [t for t, word in enumerate(row) if word == "<begin>"]
    return [row[start:end] for start, end in zip(starts, [*starts[1:], len(row)], strict=True)]


def answered_in_full(problem: list[str]) -> list[str]:
    """The question, and an answer of one digit more than its longest number."""
    asked = problem[: problem.index("=")]
    longest = max(len("".join(part.split())) for part in " ".join(asked[1:]).split("<add_integer>"))
    return [*asked, "=", *"7" * (longest + 1), "<end>"]


@settings(deadline=None, max_examples=25)
@given(texts, st.integers(0, 5))
def test_ids_do_not_depend_on_later_tokens(row, padding):
    whole = encode(["<pad>"] * padding + row)
    drawn = torch.arange(50)[None]
    for cut in range(1, whole.shape[1]):
        assert segments(whole[:, :cut], FACTS).equal(segments(whole, FACTS)[:, :cut])
        for kind in KINDS:
            for given_draw in (None, drawn):
                ids = position_ids(kind, 64, whole, FACTS, given_draw)
                assert position_ids(kind, 64, whole[:, :cut], FACTS, given_draw).equal(ids[:, :cut])


def test_rows_do_not_look_at_each_other():
    rows = [["<pad>", "<begin>", "1", "="], ["<begin>", "12", "7", "<end>"]]
    for kind in KINDS:
        both = position_ids(kind, 64, encode(*rows), FACTS)
        assert both.equal(torch.cat([position_ids(kind, 64, encode(row), FACTS) for row in rows]))


@settings(deadline=None, max_examples=50)
@given(packed_rows, st.integers(0, 2**32), st.integers(0, 40))
def test_packed_problems_have_coupled_ids_of_their_own(rows, seed, spare):
    ids_BT, count = encode(*rows), rows[0].count("<begin>")
    longest = max(
        written + len(word)
        for row in rows
        for word, written in zip(row, written_before(row, through_point=False), strict=True)
        if word.isdigit()
    )
    largest = count * (longest + 2) + spare
    drawn = draw("coupled", largest, ids_BT, FACTS, generator(seed))
    assert drawn is not None
    coupled = position_ids("coupled", largest, ids_BT, FACTS, drawn)
    assert 0 <= coupled.min() <= coupled.max() < largest
    for row, ids in zip(rows, coupled.tolist(), strict=True):
        taken: list[set[int]] = [set() for _ in range(count)]
        for word, problem, number in zip(row, problem_of(row), ids, strict=False):
            if word != "<begin>":
                taken[problem].add(number)
        assert sum(map(len, taken)) == len(set().union(*taken))


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 8), st.integers(1, 12), st.integers(0, 20), st.integers(0, 2**32))
def test_windows_hold_every_span_that_fits(count, window, spare, seed):
    largest = count * window + min(spare, count - 1)
    spans = torch.from_numpy(generator(seed).integers(0, window, (5, count), endpoint=True))
    offsets = lab.draw_offsets(spans, largest, generator(seed), "coupled_ids")
    for row, widths in zip(offsets.tolist(), spans.tolist(), strict=True):
        ids = [(offset + i) % largest for offset, width in zip(row, widths, strict=True) for i in range(width)]
        assert len(set(ids)) == len(ids)


def test_one_problem_alone_begins_anywhere_and_packed_ones_in_any_order():
    alone = lab.draw_offsets(torch.full((20_000, 1), 7), 10, generator(), "coupled_ids")
    assert (torch.bincount(alone.flatten(), minlength=10) - 2000).abs().max() < 200
    packed = lab.draw_offsets(torch.full((20_000, 3), 2), 10, generator(), "coupled_ids")
    assert (torch.bincount(packed[:, 1], minlength=10) - 2000).abs().max() < 200
    assert 0.4 < ((packed[:, 1] - packed[:, 0]) % 10 < 5).float().mean() < 0.6


def test_draws_are_the_same_for_the_same_generator():
    row = encode("<begin> 5 <add_integer> 7 = 1 2 <end>")
    for kind in KINDS[1:]:
        first, again, other = (draw(kind, 4096, row, FACTS, generator(seed)) for seed in (1, 1, 2))
        assert first is not None
        assert again is not None
        assert other is not None
        assert first.equal(again)
        assert not first.equal(other)


def test_abacus_starts_are_anywhere_that_keeps_the_longest_number_below_the_largest_id():
    rows = encode(*["<begin> 5 <add_integer> 7 = 1 2 3 <end> <begin> 5 <add_integer> 7 = 1 <end>"] * 2000)
    starts = draw("abacus", 10, rows, FACTS, generator())
    assert starts is not None
    assert starts[:, 0].unique().tolist() == list(range(7))
    assert starts[:, 1].unique().tolist() == list(range(9))
    assert position_ids("abacus", 10, rows, FACTS, starts).max() == 9


@pytest.mark.parametrize(
    ("kind", "largest", "message"),
    [
        ("coupled", 9, r"data\.packing=2 leaves each problem 4 of 9 position ids, but one needs 5: "
                       r"parts\.coupled_ids\.largest should be at least 10, or data\.packing at most 1$"),
        ("abacus", 3, r"number of 3 digits does not fit into abacus ids below 3: parts\.abacus_ids.* least 4$"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_refused_in_one_line_that_names_the_keys(kind, largest, message):
    row = encode("<begin> 5 <add_integer> 7 = 1 2 3 <end> <begin> 5 <add_integer> 7 = 1")
    with pytest.raises(ModelError, match=message) as caught:
        draw(kind, largest, row, FACTS, generator())
    assert "\n" not in str(caught.value)
    assert draw(kind, largest + 1, row, FACTS, generator()) is not None


def test_a_vocabulary_without_the_words_of_a_row_is_refused():
    with pytest.raises(ModelError, match=r"^the vocabulary of 2 words has no <begin>, =$"):
        TokenFacts.of(["<pad>", "<end>"])
