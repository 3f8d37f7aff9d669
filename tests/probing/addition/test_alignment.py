"""Alignment of adders whose heads are known to look at one digit each, and targets worked out by hand."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.config.notation import FormatConfig, TokenizerConfig
from lab.numbers.tasks import TASKS
from lab.probing.addition.alignment import (
    TARGETS,
    Aligned,
    _targets,
    aligned_heads,
    alignment,
    destinations,
    foreign_digits,
    one_hot,
    queries,
    target_at,
)
from lab.probing.addition.positions import NotatedSums, Sums, Written
from lab.probing.benchmark.known import FieldSums
from lab.probing.bridge import bridge
from lab.text.notation import Notation
from lab.text.scratch_tokenizer import build_tokenizer
from tests.from_scratch import built
from tests.probing.known_adders import llama_adder, native_adder

GENERATOR = np.random.default_rng(0)
LENGTHS = {
    length: [tuple(map(int, GENERATOR.integers(10 ** (length - 1), 10**length, 2))) for _ in range(16)]
    for length in (3, 5)
}


class Characters:
    """Sums as they are printed, one token a character; the ones digit first if `ones_first`."""

    pad = 0

    def __init__(self, ones_first: bool = False) -> None:
        self.order = -1 if ones_first else 1

    def write(self, a: int, b: int) -> Written:
        sides = [str(number)[:: self.order] for number in (a, b, a + b)]
        starts = (0, len(sides[0]) + 1, len(sides[0]) + len(sides[1]) + 2)
        a_at, b_at, answer_at = (
            list(range(start, start + len(side)))[:: -self.order] for start, side in zip(starts, sides, strict=True)
        )
        text = "{}+{}={}$".format(*sides)
        return Written([ord(sign) for sign in text], a_at, b_at, answer_at, starts[1] - 1, starts[2] - 1)

    def words(self, ids: Sequence[int]) -> list[str]:
        return [chr(token) for token in ids]

    def digit_ids(self) -> list[int]:
        return [ord(digit) for digit in "0123456789"]


@pytest.fixture(scope="module", params=[native_adder, llama_adder])
def adder(request):
    return request.param()


@pytest.fixture(scope="module")
def lengths(adder):
    return {length: adder.sums(numbers) for length, numbers in LENGTHS.items()}


@pytest.fixture(scope="module")
def measured(adder, lengths):
    return alignment(adder, lengths)


def test_the_example_of_the_docstring_is_true():
    sums = Sums.of(Characters(), [(3578, 426)])  # 3578+426=4004$
    assert target_at(sums, "b", 0, "place")[0, :4].tolist() == [7, 6, 5, -1]
    assert target_at(sums, "b", 0, "left")[0, :4].tolist() == [-1, 7, 6, 5]
    assert target_at(sums, "b", -1, "left")[0, :4].tolist() == [-1, -1, 7, 6]
    assert target_at(sums, "a", 0, "left").equal(target_at(sums, "a", 0, "place"))
    # 4004 is written at 9 to 12: only digits of higher places stand before the query
    assert target_at(sums, "sum", 1)[0, :4].tolist() == [11, 10, 9, -1]
    assert target_at(sums, "sum", -1)[0, :4].tolist() == [-1, -1, -1, -1]


def test_ones_first_the_end_is_asked_for_where_one_more_digit_would_be():
    sums = Sums.of(Characters(ones_first=True), [(95, 5), (12, 30)])  # 59+5=001$ and 21+03=24$
    assert queries(sums).tolist() == [[4, 5, 6, 7], [5, 6, 7, -1]]
    assert target_at(sums, "a", -1).tolist() == [[-1, 0, 1, -1], [-1, 0, 1, -1]]
    assert queries(Sums.of(Characters(), [(95, 5)])).tolist() == [[6, 5, 4, -1]]


def test_a_digit_is_foreign_unless_it_is_of_the_column_the_one_below_or_the_last_one_written():
    sums = Sums.of(Characters(ones_first=True), [(123, 456)])  # 321+654=975$
    foreign_QT = foreign_digits(sums)[0]
    assert foreign_QT[0].nonzero()[:, 0].tolist() == [1, 2, 5, 6]
    assert foreign_QT[1].nonzero()[:, 0].tolist() == [2, 6]
    assert foreign_QT[2].nonzero()[:, 0].tolist() == [0, 4, 8]
    assert foreign_QT[3].nonzero()[:, 0].tolist() == [0, 1, 4, 5, 8, 9]  # the end


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 99_999), st.integers(0, 99_999)), min_size=1, max_size=3),
    st.sampled_from([Characters(), Characters(ones_first=True), FieldSums()]),
)
def test_every_token_up_to_the_query_is_of_one_target(numbers, writer):
    sums = Sums.of(writer, numbers)
    masks = torch.stack(list(_targets(sums, queries(sums)).values())).sum(0)
    expected = torch.arange(sums.tokens_BT.shape[1]) <= queries(sums)[..., None]
    assert masks.equal(expected.long())


def test_heads_look_where_they_were_written_to_look_and_the_controls_do_not(adder, measured):
    for (layer, head), (number, offset) in adder.known.looks_at.items():
        for length in LENGTHS:
            place = {"layer": layer, "head": head, "number": number, "offset": offset, "length": length}
            assert measured.attention.at(**place).value == pytest.approx(1, abs=0.01)
            assert measured.permuted.at(**place).value == pytest.approx(0, abs=0.01)
            assert measured.uniform.at(**place).value == pytest.approx(1 / length, abs=0.1)


def test_ones_first_without_padding_a_column_that_a_sum_does_not_have_is_no_sample():
    # 1 + 1 has one digit, so only 9 + 9 has the second of the two columns; at its query, 1 + 1 is asked for the end
    notation = Notation(TokenizerConfig(), FormatConfig(reverse="integer"), [TASKS["add_integer"]])
    writer = NotatedSums(notation, build_tokenizer(notation.vocabulary))
    subject = bridge("scratch", built(notation.vocabulary, size="0.2M"), writer)
    sums = subject.sums([(1, 1), (9, 9)])
    for part in alignment(subject, {"both": sums})[:2]:
        assert part.at(layer=0, head=0, number="a", offset=-1, length="both").n == 1


def test_heads_that_look_everywhere_alike_are_no_more_aligned_than_their_controls(adder, measured):
    idle = measured.attention.at(layer=1)
    # attention is 1 / tokens, and queries of different columns see a few tokens more or less
    np.testing.assert_allclose(idle.value, measured.uniform.at(layer=1).value, atol=1e-5)
    np.testing.assert_allclose(idle.value, measured.permuted.at(layer=1).value, atol=0.02)


def test_aligned_heads_are_those_of_the_circuit_and_its_decoy(adder, measured):
    found = aligned_heads(measured)
    assert {(one.layer, one.head): (one.number, one.offset) for one in found} == adder.known.looks_at
    assert [one.weight for one in found] == pytest.approx([1] * 5, abs=0.01)


def test_attention_goes_somewhere_and_known_heads_leak_nothing(adder, lengths):
    found = destinations(adder, lengths)
    np.testing.assert_allclose(found.attention.value.sum(2), 1, atol=1e-5)
    assert found.leak.at(layer=0).value.max() < 0.01
    assert found.attention.at(layer=0, head=0, target="place k", length=5).value > 0.99
    # q_k sees 17 + k tokens; of the digits, 2 are of each place, and k - 1 are of the answer before the last
    one = adder.sums([(12345, 34567)])
    columns = np.arange(5)
    seen, foreign = 17 + columns, np.array([8, 6, 6, 6, 6]) + np.maximum(0, columns - 1)
    leak = destinations(adder, {5: one}).leak.at(layer=1, head=0, length=5)
    assert leak.value == pytest.approx(np.mean(foreign / seen), abs=1e-5)
    assert len(TARGETS) == found.attention.value.shape[2]


def test_one_hot_heads_keep_the_proportions_of_their_digits():
    mixed = [Aligned(0, 1, "a", 0, 0.3), Aligned(0, 1, "b", 0, 0.1), Aligned(1, 1, "b", -1, 0.5)]
    assert [one.weight for one in one_hot(mixed)] == pytest.approx([0.75, 0.25, 1])
