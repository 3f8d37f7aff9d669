"""Problems as words and words back to numbers, and the tokenizer of those words."""

import itertools
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.config.notation import FormatConfig, TokenizerConfig
from lab.errors import TaskError
from lab.numbers.representations import Float, Fraction, Integer, Scientific, split_parts
from lab.numbers.sampling import Cell, Problem, problem, task_of
from lab.numbers.tasks import TASKS, task
from lab.text.digit_groups import Kind, groups
from lab.text.notation import Notation, _random_words
from lab.text.scratch_tokenizer import build_tokenizer

_HINT = re.compile(r"<(\d)\.(\d+)>")

KINDS: tuple[Kind, ...] = ("aligned", "left", "mixed", "random")
REVERSALS = ("none", "integer", "decimal", "each", "total", "answer")
PADS = ("none", "operands", "answer", "all")
HINTS = ("none", "question", "both")

tokenizers = st.builds(TokenizerConfig, kind=st.sampled_from(KINDS), digits=st.integers(1, 4))
formats = st.builds(
    FormatConfig,
    reverse=st.sampled_from(REVERSALS),
    pad=st.sampled_from(PADS),
    index_hints=st.sampled_from(HINTS),
    largest_hint=st.just(40),
)
cells = st.builds(Cell, st.sampled_from(list(TASKS.values())), st.sampled_from([1, 2, 7]), st.none())
problems = st.builds(lambda cell, index: problem(cell, "train", 0, index), cells, st.integers(0, 127))
seeds = st.none() | st.integers(0, 2**40)


def notation(*keys: str, kind: Kind = "aligned", digits=1, **format) -> Notation:
    return Notation(TokenizerConfig(kind=kind, digits=digits), FormatConfig(**format), [task(key) for key in keys])


def made(key: str, a: str, b: str | None, answer: str) -> Problem:
    item = task(key)
    return Problem(item.name, item.representation.name, a, b, answer, 1)


def written(item: Problem, **settings) -> str:
    """Question and answer of a problem in one line."""
    writer = notation(task_of(item).key, **settings)
    return " ".join(writer.question(item) + writer.answer(item))


def read(writer: Notation, line: str, representation) -> str | None:
    return writer.read(line.split(), representation)


def operands(writer: Notation, item: Problem, seed: int | None = None) -> list[list[str]]:
    """The words of the first operand and of the second, if there is one."""
    words = writer.question(item, seed)
    operator = words.index(f"<{task_of(item).key}>")
    assert words[-1] == "="
    return [part for part in (words[:operator], words[operator + 1 : -1]) if part]


def without_hints(words: list[str]) -> list[str]:
    return [word for word in words if not _HINT.fullmatch(word)]


# Golden lines, worked out by hand. -------------------------------------------------------------------------------

SUM = made("add_integer", "123", "45", "168")
LONG = made("add_integer", "1234567", "89", "1234656")
FLOATS = made("add_float", "123.45", "6.70891", "130.15891")
FRACTIONS = made("add_fraction", "12/7", "1/35", "61/35")
SCIENTIFIC = made("add_scientific", "1.5e8", "2.25e10", "2.265e10")


@pytest.mark.parametrize(
    ("item", "line"),
    [
        (SUM, "1 2 3 <add_integer> 4 5 = 1 6 8"),
        (FLOATS, "1 2 3 . 4 5 <add_float> 6 . 7 0 8 9 1 = 1 3 0 . 1 5 8 9 1"),
        (FRACTIONS, "1 2 / 7 <add_fraction> 1 / 3 5 = 6 1 / 3 5"),
        (SCIENTIFIC, "1 . 5 e 8 <add_scientific> 2 . 2 5 e 1 0 = 2 . 2 6 5 e 1 0"),
        (made("length_float", "12.34", None, "4"), "1 2 . 3 4 <length_float> = 4"),
        (made("get_digit_float", "12.34", "2", "3"), "1 2 . 3 4 <get_digit_float> 2 = 3"),
        (made("sig_float", "12.04", "2", "1.2e1"), "1 2 . 0 4 <sig_float> 2 = 1 . 2 e 1"),
        (made("truediv_integer", "6", "14", "3/7"), "6 <truediv_integer> 1 4 = 3 / 7"),
    ],
)
def test_a_plain_line_is_the_digits_in_order(item, line):
    assert written(item) == line


@pytest.mark.parametrize(
    ("item", "kind", "line"),
    [
        (LONG, "aligned", "1 234 567 <add_integer> 89 = 1 234 656"),
        (LONG, "left", "123 456 7 <add_integer> 89 = 123 465 6"),
        (FLOATS, "aligned", "123 . 45 <add_float> 6 . 708 91 = 130 . 158 91"),
        (made("add_fraction", "1234/77", "1/1155", "18511/1155"), "aligned",
         "1 234 / 77 <add_fraction> 1 / 1 155 = 18 511 / 1 155"),
    ],
)  # fmt: skip
def test_groups_are_counted_from_the_ones_digit_and_from_the_point(item, kind, line):
    assert written(item, kind=kind, digits=3) == line


@pytest.mark.parametrize(
    ("reverse", "line"),
    [
        ("none", "123 . 45 <add_float> 6 . 708 91 = 130 . 158 91"),
        ("integer", "321 . 45 <add_float> 6 . 708 91 = 031 . 158 91"),
        ("decimal", "123 . 54 <add_float> 6 . 19 807 = 130 . 19 851"),
        ("each", "321 . 54 <add_float> 6 . 19 807 = 031 . 19 851"),
        ("total", "54 . 321 <add_float> 19 807 . 6 = 19 851 . 031"),
        ("answer", "123 . 45 <add_float> 6 . 708 91 = 19 851 . 031"),
    ],
)
def test_each_reversal_keeps_groups_at_their_places(reverse, line):
    assert written(FLOATS, digits=3, reverse=reverse) == line


@pytest.mark.parametrize(
    ("item", "reverse", "line"),
    [
        (LONG, "integer", "765 432 1 <add_integer> 98 = 656 432 1"),
        (LONG, "decimal", "1 234 567 <add_integer> 89 = 1 234 656"),
        (FRACTIONS, "each", "21 / 7 <add_fraction> 1 / 53 = 16 / 53"),
        (FRACTIONS, "total", "7 / 21 <add_fraction> 53 / 1 = 53 / 16"),
        (SCIENTIFIC, "integer", "1 . 5 e 8 <add_scientific> 2 . 25 e 01 = 2 . 265 e 01"),
        (SCIENTIFIC, "total", "8 e 5 . 1 <add_scientific> 01 e 52 . 2 = 01 e 562 . 2"),
    ],
)
def test_reversals_of_the_other_representations(item, reverse, line):
    assert written(item, digits=3, reverse=reverse) == line


@pytest.mark.parametrize(
    ("item", "pad", "line"),
    [
        (SUM, "operands", "1 2 3 <add_integer> 0 4 5 = 1 6 8"),
        (made("sub_integer", "100", "98", "2"), "operands", "1 0 0 <sub_integer> 0 9 8 = 2"),
        (made("sub_integer", "100", "98", "2"), "all", "1 0 0 <sub_integer> 0 9 8 = 0 0 2"),
        (made("sub_integer", "100", "98", "2"), "answer", "1 0 0 <sub_integer> 9 8 = 0 0 2"),
        (made("sub_float", "12.5", "3.25", "9.25"), "answer", "1 2 . 5 <sub_float> 3 . 2 5 = 0 9 . 2 5"),
        (made("add_integer", "7", "8", "15"), "all", "7 <add_integer> 8 = 1 5"),
        (made("sub_float", "12.5", "3.25", "9.25"), "all", "1 2 . 5 0 <sub_float> 0 3 . 2 5 = 0 9 . 2 5"),
        (FRACTIONS, "operands", "1 2 / 0 7 <add_fraction> 0 1 / 3 5 = 6 1 / 3 5"),
        (made("sub_fraction", "12/7", "1/35", "59/35"), "all", "1 2 / 0 7 <sub_fraction> 0 1 / 3 5 = 5 9 / 3 5"),
        (SCIENTIFIC, "operands", "1 . 5 0 e 0 8 <add_scientific> 2 . 2 5 e 1 0 = 2 . 2 6 5 e 1 0"),
        (made("max_scientific", "3.0e5", "2.25e10", "2.25e10"), "all",
         "3 . 0 0 e 0 5 <max_scientific> 2 . 2 5 e 1 0 = 2 . 2 5 e 1 0"),
        # nothing to line up: a parameter, a single operand, an answer of another representation
        (made("get_digit_integer", "1234", "2", "3"), "all", "1 2 3 4 <get_digit_integer> 2 = 3"),
        (made("length_integer", "1234", None, "4"), "all", "1 2 3 4 <length_integer> = 4"),
        (made("truediv_integer", "6", "14", "3/7"), "all", "0 6 <truediv_integer> 1 4 = 3 / 7"),
    ],
)  # fmt: skip
def test_zeros_make_parts_of_equal_width(item, pad, line):
    assert written(item, pad=pad) == line


@pytest.mark.parametrize(
    ("item", "reverse", "line"),
    [
        (SUM._replace(a="12345"), "integer", "543 21 <add_integer> 54 = 861"),
        (FLOATS, "decimal", "123 . 54 <add_float> 6 . 198 07 = 130 . 198 51"),
        (FLOATS, "total", "54 . 321 <add_float> 198 07 . 6 = 198 51 . 031"),
    ],
)
def test_groups_from_the_left_are_counted_from_the_left_of_what_is_written(item, reverse, line):
    assert written(item, kind="left", digits=3, reverse=reverse) == line


@pytest.mark.slow
@given(problems, st.sampled_from(["left", "mixed", "random"]), st.integers(2, 4), st.sampled_from(REVERSALS), seeds)
def test_kinds_that_know_no_places_cut_the_digits_as_they_are_written(item, kind, size, reverse, seed):
    words = notation(task_of(item).key, kind=kind, digits=size, reverse=reverse).answer(item, seed)
    drawn = _random_words("answer", item, seed) if kind == "random" else None
    # parts draw in the order in which they stand in the number, whatever the order in which they are written
    turn = -1 if reverse in ("total", "answer") else 1
    parts = re.split("[./e]", "".join(words))[::turn]
    cut = [
        groups(part, kind, size, side, drawn) for part, side in zip(parts, task_of(item).answer.alignment, strict=True)
    ]
    assert [word for word in words if word.isdigit()] == [group for part in cut[::turn] for group in part]


@pytest.mark.parametrize(
    ("item", "pad", "line"),
    [
        (SUM, "answer", "1 2 3 <add_integer> 4 5 = 0 1 6 8"),
        (made("add_integer", "7", "8", "15"), "all", "7 <add_integer> 8 = 1 5"),
        (made("sub_float", "12.5", "3.25", "9.25"), "all", "1 2 . 5 0 <sub_float> 0 3 . 2 5 = 0 0 9 . 2 5"),
        (SCIENTIFIC, "all", "1 . 5 0 e 0 8 <add_scientific> 2 . 2 5 e 1 0 = 2 . 2 6 5 e 0 1 0"),
    ],
)
def test_a_last_carry_has_a_place_at_every_length(item, pad, line):
    assert written(item, pad=pad, carry_place=True) == line


def test_padding_comes_before_groups_and_reversal():
    assert written(LONG, digits=3, pad="operands", reverse="integer") == (
        "765 432 1 <add_integer> 980 000 0 = 656 432 1"
    )


@pytest.mark.parametrize(
    ("item", "settings", "line"),
    [
        (SUM, {}, "<0.2> 1 <0.1> 2 <0.0> 3 <add_integer> <0.1> 4 <0.0> 5 = <0.2> 1 <0.1> 6 <0.0> 8"),
        (SUM, {"index_hints": "question"}, "<0.2> 1 <0.1> 2 <0.0> 3 <add_integer> <0.1> 4 <0.0> 5 = 1 6 8"),
        (LONG, {"digits": 3, "reverse": "integer"},
         "<0.0> 765 <0.3> 432 <0.6> 1 <add_integer> <0.0> 98 = <0.0> 656 <0.3> 432 <0.6> 1"),
        (FLOATS, {"digits": 3},
         "<0.0> 123 . <1.0> 45 <add_float> <0.0> 6 . <1.0> 708 <1.3> 91 = <0.0> 130 . <1.0> 158 <1.3> 91"),
        (FLOATS, {"digits": 3, "reverse": "total"},
         "<1.0> 54 . <0.0> 321 <add_float> <1.3> 19 <1.0> 807 . <0.0> 6 = <1.3> 19 <1.0> 851 . <0.0> 031"),
        (made("max_scientific", "3.0e5", "2.25e10", "2.25e10"), {"digits": 2},
         "<0.0> 3 . <1.0> 0 e <2.0> 5 <max_scientific> <0.0> 2 . <1.0> 25 e <2.0> 10 = <0.0> 2 . <1.0> 25 e <2.0> 10"),
    ],
)  # fmt: skip
def test_hints_name_the_part_and_the_place_of_each_group(item, settings, line):
    assert written(item, **{"index_hints": "both", **settings}) == line


# What holds always. ----------------------------------------------------------------------------------------------


def check_that_it_reads_back(tokenizer: TokenizerConfig, format: FormatConfig, item: Problem, seed: int | None) -> None:
    made_of = task_of(item)
    writer = Notation(tokenizer, format, [made_of])
    assert writer.read(writer.answer(item, seed), made_of.answer) == item.answer
    asked = {"index_hints": "none"} | ({"reverse": "none"} if format.reverse == "answer" else {})
    reader = Notation(tokenizer, format.model_copy(update=asked), [made_of])
    numbers = [(item.a, made_of.representation)]
    if item.b is not None and made_of.second is not None:
        numbers.append((item.b, made_of.second))
    for words, (text, representation) in zip(operands(writer, item, seed), numbers, strict=True):
        found = reader.read(without_hints(words), representation)
        assert found is not None
        assert str(representation.parse(found)) == text


@pytest.mark.parametrize("item", [LONG, FLOATS, FRACTIONS, SCIENTIFIC], ids=lambda item: item.representation)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_read_back_exactly_in_every_format(item, kind):
    for digits, reverse, pad, hints in itertools.product((1, 3), REVERSALS, PADS, HINTS):
        tokenizer = TokenizerConfig(kind=kind, digits=digits)
        check_that_it_reads_back(tokenizer, FormatConfig(reverse=reverse, pad=pad, index_hints=hints), item, digits)


@pytest.mark.slow
@settings(deadline=None, max_examples=120)
@given(tokenizers, formats, problems, seeds)
def test_numbers_of_every_task_read_back_exactly(tokenizer, format, item, seed):
    check_that_it_reads_back(tokenizer, format, item, seed)


@settings(deadline=None, max_examples=50)
@given(tokenizers, formats, problems, seeds)
def test_every_word_is_in_the_vocabulary(tokenizer, format, item, seed):
    writer = Notation(tokenizer, format, [task_of(item)])
    assert {"<begin>", "<end>", "<pad>", *writer.question(item, seed), *writer.answer(item, seed)} <= set(
        writer.vocabulary
    )


@settings(deadline=None, max_examples=50)
@given(tokenizers, formats, problems, seeds)
def test_the_characters_are_those_of_the_text_turned_around_as_a_whole_or_part_by_part(tokenizer, format, item, seed):
    writer = Notation(tokenizer, format.model_copy(update={"pad": "none"}), [task_of(item)])
    text = item.answer
    parts = re.split(r"([./e])", text)
    alignment = task_of(item).answer.alignment
    for place, side in enumerate(alignment):
        if format.reverse == "each" or format.reverse == {"right": "integer", "left": "decimal"}[side]:
            parts[2 * place] = parts[2 * place][::-1]
    expected = text[::-1] if format.reverse in ("total", "answer") else "".join(parts)
    assert "".join(without_hints(writer.answer(item, seed))) == expected


@settings(deadline=None, max_examples=50)
@given(tokenizers, formats, problems, seeds)
def test_padded_operands_have_equal_widths(tokenizer, format, item, seed):
    made_of = task_of(item)
    writer = Notation(tokenizer, format.model_copy(update={"pad": "operands"}), [made_of])
    if made_of.second is not made_of.representation or made_of.name in ("get_digit", "count", "sig"):
        return
    a, b = (without_hints(words) for words in operands(writer, item, seed))
    widths = [list(map(len, re.split("[./e]", "".join(words)))) for words in (a, b)]
    assert widths[0] == widths[1]
    digits = [split_parts(text, made_of.representation) for text in (item.a, item.b)]
    longest = [max(len(part), len(other)) for part, other in zip(*digits, strict=True)]
    assert widths[0] == (longest[::-1] if format.reverse == "total" else longest)


@settings(deadline=None, max_examples=50)
@given(tokenizers, formats, problems, seeds)
def test_hints_tell_where_in_the_number_their_digits_are(tokenizer, format, item, seed):
    format = format.model_copy(update={"index_hints": "both", "pad": "none"})
    writer = Notation(tokenizer, format, [task_of(item)])
    words = writer.answer(item, seed)
    parts = split_parts(item.answer, task_of(item).answer)
    alignment = task_of(item).answer.alignment
    turned = {"integer": ["right"], "decimal": ["left"], "none": []}.get(format.reverse, ["right", "left"])
    hinted = [(_HINT.fullmatch(hint), group) for hint, group in itertools.pairwise(words)]
    found = [(int(hint[1]), int(hint[2]), group) for hint, group in hinted if hint]
    for index, side in enumerate(alignment):
        placed = [(place, group[::-1] if side in turned else group) for part, place, group in found if part == index]
        # one digit after another from the ones digit, or from the point
        outwards = sorted(placed)
        assert "".join(g[::-1] if side == "right" else g for _, g in outwards) == (
            parts[index][::-1] if side == "right" else parts[index]
        )
        start = outwards[0][0]
        assert [place for place, _ in outwards] == [
            start + sum(len(g) for _, g in outwards[:i]) for i in range(len(outwards))
        ]
        assert start == 0 or seed is not None


@settings(deadline=None, max_examples=50)
@given(problems.filter(lambda item: item.b is not None), st.integers(0, 2**40))
def test_places_of_one_problem_begin_together_and_stay_below_the_largest(item, seed):
    writer = Notation(TokenizerConfig(), FormatConfig(index_hints="both", largest_hint=24 + seed % 9), [task_of(item)])
    begins: dict[str, set[int]] = {}
    for words in (*operands(writer, item, seed), writer.answer(item, seed)):
        places: dict[str, list[int]] = {}
        for word in words:
            if hint := _HINT.fullmatch(word):
                places.setdefault(hint[1], []).append(int(hint[2]))
        for part, found in places.items():
            begins.setdefault(part, set()).add(min(found))
            assert max(found) < 24 + seed % 9
    assert all(len(starts) == 1 for starts in begins.values())


# Luck. -----------------------------------------------------------------------------------------------------------


def test_random_groups_are_a_function_of_the_seed():
    writer = notation("add_integer", kind="random", digits=3)
    lines = [writer.question(LONG, seed) + writer.answer(LONG, seed) for seed in range(20)]
    assert lines == [writer.question(LONG, seed) + writer.answer(LONG, seed) for seed in range(20)]
    assert len(set(map(tuple, lines))) > 15
    assert writer.question(LONG) == writer.question(LONG)


def test_hints_begin_anywhere_that_leaves_room_for_the_longest_number():
    writer = notation("add_integer", index_hints="both", largest_hint=5)
    starts = {writer.answer(SUM, seed)[-2] for seed in range(60)}
    assert starts == {"<0.0>", "<0.1>", "<0.2>"}
    assert writer.answer(SUM)[-2] == "<0.0>"


def test_hints_of_the_question_alone_need_no_room_for_the_answer():
    product = made("multiply_hard_integer", "99", "99", "9801")
    assert notation("multiply_hard_integer", index_hints="question", largest_hint=2).question(product, 7)
    with pytest.raises(TaskError, match=r"^a problem of multiply_hard_integer has 4 digits in a part .*largest_hint$"):
        notation("multiply_hard_integer", index_hints="both", largest_hint=2).question(product, 7)


# Reading. --------------------------------------------------------------------------------------------------------


def test_reversed_decimals_of_many_groups_are_not_scrambled():
    """The released decoder reversed decimals once more for each token: 0.1234567 in threes came out wrong."""
    for reverse in ("decimal", "each", "total"):
        for digits in (1, 2, 3):
            writer = notation("add_float", digits=digits, reverse=reverse)
            item = made("add_float", "0.1234567", "0.0", "0.1234567")
            assert len(writer.answer(item)) >= 5
            assert writer.read(writer.answer(item), Float) == "0.1234567"
    assert read(notation("add_float", digits=3, reverse="total"), "7 654 321 . 0", Float) == "0.1234567"


@pytest.mark.parametrize(
    ("line", "representation", "text"),
    [
        ("0 7", Integer, "07"),
        ("1 . 5 0", Float, "1.50"),
        ("10 / 8", Fraction, "10/8"),
        ("12 . 3 e 05", Scientific, "12.3e05"),
        ("12 3 4", Integer, "1234"),
    ],
)
def test_a_number_is_read_as_it_was_written(line, representation, text):
    keys = ("add_integer", "add_float", "add_fraction", "add_scientific")
    for pad in ("none", "operands"):
        assert notation(*keys, digits=2, pad=pad).read(line.split(), representation) == text


@pytest.mark.parametrize(
    ("line", "representation", "text"),
    [
        ("0 0 7", Integer, "7"),
        ("0 0", Integer, "0"),
        ("0 1 . 5 0", Float, "1.5"),
        ("5 . 0 0", Float, "5.0"),
        ("0 4 / 0 6", Fraction, "4/6"),
        ("3 . 0 0 e 0 5", Scientific, "3.0e5"),
        ("0 3 . 1 e 0 0", Scientific, "03.1e0"),
    ],
)
def test_padding_is_taken_off_answers_that_are_padded(line, representation, text):
    writer = notation("add_integer", "add_float", "add_fraction", "add_scientific", pad="all")
    assert writer.read(line.split(), representation) == text


def test_answers_that_no_task_pads_keep_their_zeros():
    writer = notation("sig_integer", "length_float", "add_float", pad="all")
    assert read(writer, "1 . 5 0 e 3", Scientific) == "1.50e3"
    assert read(writer, "0 7", Integer) == "07"


@pytest.mark.parametrize(
    ("line", "representation"),
    [
        ("", Integer),
        (".", Float),
        ("1 .", Float),
        (". 5", Float),
        ("1 2", Float),
        ("1 . 2", Integer),
        ("1 / 2", Float),
        ("1 . 2 . 3", Float),
        ("1 . 2", Scientific),
        ("1 e 2 . 3", Scientific),
        ("1 2 <end>", Integer),
        ("1 <add_integer> 2", Integer),
        ("1 = 2", Integer),
        ("<0.0> 1", Integer),
        ("123", Integer),
        ("x", Integer),
        ("٣", Integer),
    ],
)
def test_words_that_are_no_number_read_as_none(line, representation):
    assert notation("add_integer", digits=2, index_hints="question").read(line.split(), representation) is None


def test_a_wholly_reversed_number_has_its_separators_from_the_end():
    writer = notation("add_scientific", reverse="total")
    assert read(writer, "8 e 5 . 1", Scientific) == "1.5e8"
    assert read(writer, "1 . 5 e 8", Scientific) is None


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("<0.1> 1 <0.0> 2 . <1.0> 5", "12.5"),
        ("<0.7> 1 <0.3> 2 . <1.9> 5", "12.5"),  # places are not looked at
        ("<1.1> 1 <0.0> 2 . <1.0> 5", None),
        ("<0.1> 1 <0.0> 2 . <0.0> 5", None),
        ("<0.1> 1 2 . <1.0> 5", None),
        ("1 2 . 5", None),
        ("<0.1> 1 <0.0> 2 . <1.0>", None),
        ("<0.1> <0.0> 1 2 . <1.0> 5", None),
        ("<0.99> 1 . <1.0> 5", None),
    ],
)
def test_hints_stand_before_every_group_of_an_answer_that_has_them(line, text):
    assert notation("add_float", index_hints="both").read(line.split(), Float) == text


@given(st.lists(st.sampled_from(notation("add_float", index_hints="both").vocabulary), max_size=8), st.data())
def test_what_is_read_is_of_the_grammar(words, data):
    representation = data.draw(st.sampled_from([Integer, Float, Fraction, Scientific]))
    writer = notation(
        "add_float",
        reverse=data.draw(st.sampled_from(["none", "total"])),
        index_hints=data.draw(st.sampled_from(["none", "both"])),
    )
    text = writer.read(words, representation)
    assert text is None or representation.pattern.fullmatch(text)


# Vocabulary and refusals. ----------------------------------------------------------------------------------------


def test_the_vocabulary_is_specials_operators_separators_hints_and_groups():
    plain = notation("add_integer", "max_float").vocabulary
    assert plain == ["<pad>", "<begin>", "<end>", "=", "<add_integer>", "<max_float>", *"./e", *"0123456789"]
    hinted = notation("add_integer", index_hints="question", largest_hint=2, digits=3).vocabulary
    assert hinted[8:14] == ["<0.0>", "<0.1>", "<1.0>", "<1.1>", "<2.0>", "<2.1>"]
    assert len(hinted) == len(set(hinted)) == 14 + 1110


def test_a_problem_of_another_task_is_refused():
    with pytest.raises(TaskError, match=r"^the notation has no task add_integer; it has: max_float$"):
        notation("max_float").question(SUM)


def test_zeros_cannot_be_padding_of_one_answer_and_figures_of_another():
    with pytest.raises(TaskError, match=r"^format.pad=all pads answers of max_scientific .* figures in sig_float"):
        notation("max_scientific", "sig_float", pad="all")
    notation("max_scientific", "sig_float", pad="operands")
    notation("add_float", "sig_float", pad="all")


def test_the_notation_imports_neither_torch_nor_transformers():
    code = (
        "import sys, lab.text.notation, lab.text.scratch_tokenizer; print({'torch', 'transformers'} & {*sys.modules})"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


# The tokenizer. --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writer():
    return notation("add_float", "max_scientific", digits=2, index_hints="both")


@pytest.fixture(scope="module", params=["built", "loaded"])
def tokenizer(request, writer, tmp_path_factory):
    from transformers import AutoTokenizer

    built = build_tokenizer(writer.vocabulary)
    if request.param == "built":
        return built
    folder = tmp_path_factory.mktemp("tokenizer")
    built.save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def test_an_id_is_a_words_place_in_the_vocabulary(tokenizer, writer):
    assert len(tokenizer) == tokenizer.vocab_size == len(writer.vocabulary)
    assert tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))) == writer.vocabulary
    assert (tokenizer.pad_token, tokenizer.bos_token, tokenizer.eos_token) == ("<pad>", "<begin>", "<end>")
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)
    assert tokenizer.unk_token is None


def test_words_come_back_between_spaces_and_only_specials_are_skipped(tokenizer, writer):
    words = writer.question(FLOATS) + writer.answer(FLOATS)
    encoded = tokenizer(" ".join(words))
    assert set(encoded) == {"input_ids", "attention_mask"}
    assert tokenizer.convert_ids_to_tokens(encoded.input_ids) == ["<begin>", *words]
    assert tokenizer.encode(" ".join(words), add_special_tokens=False) == encoded.input_ids[1:]
    ids = [0, *encoded.input_ids, tokenizer.eos_token_id]
    assert tokenizer.decode(ids, skip_special_tokens=True) == " ".join(words)
    assert tokenizer.decode(ids) == " ".join(["<pad>", "<begin>", *words, "<end>"])


@pytest.mark.parametrize("text", ["1 + 2", "12345", "hello", "1 <unk>"])
def test_an_unknown_word_is_refused(tokenizer, text):
    with pytest.raises(Exception, match=r"Missing \[UNK\]"):
        tokenizer.encode(text)
