"""Copying digits is told apart from adding them."""

import numpy as np
import pytest

from lab.smallest_adder.codecs import NotCopied, Reading, Writing, digits_of, neighbours, reach
from lab.smallest_adder.contract import EDGE_CASES, LARGEST, practice, problems


def learned(encode) -> Writing:
    pairs = practice(0, 1_500)
    changed = neighbours(pairs[-30:])
    before, after = (
        np.array([encode(*pair) for pair in some]) for some in (pairs[-30:], [pair for *_, pair in changed])
    )
    return Writing.learned(pairs, np.array([encode(*pair) for pair in pairs]), reach(before, changed, after))


def digits(a: int, b: int) -> list[int]:
    return digits_of([(a, b)])[0].tolist()


def test_digits_are_from_the_ones_up():
    assert digits(1234567890, 12) == [0, 9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 1] + [0] * 8


def test_every_digit_is_changed_to_its_nine_others():
    changed = neighbours([(0, LARGEST)])
    assert len(changed) == len(set(changed)) == 20 * 9
    assert all(0 <= a <= LARGEST and 0 <= b <= LARGEST for *_, (a, b) in changed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "encode",
    [
        digits,
        lambda a, b: [10, *digits(a, b), 11],
        lambda a, b: [10 * x + y for x, y in zip(digits(a, 0)[:10], digits(b, 0)[:10], strict=True)],
        lambda a, b: [10 * x + y for x, y in zip(digits(a, b)[::2], digits(a, b)[1::2], strict=True)],
        lambda a, b: [*digits(a, b), *digits(a, b)[:5]],
        lambda a, b: [9 - digit for digit in digits(a, b)],
    ],
)
def test_prompts_that_copy_are_learned_and_written_for_other_problems(encode):
    pairs = problems(1, 50)
    assert learned(encode).of(pairs).tolist() == [encode(*pair) for pair in pairs]


@pytest.mark.parametrize(
    ("encode", "reason"),
    [
        (lambda a, b: [*digits(a + b, 0), (a + b) // 10**10], "made of them"),
        (lambda a, b: [*digits(a, b), int(a % 10 + b % 10 > 9)], "made of them"),
        (lambda a, b: [*digits(a, b), int(a % 100 + b % 100 > 99)], "depends on"),
        (lambda a, b: digits(a, b)[:19], "no token depends on digit 9 of b"),
        (lambda a, b: [*digits(a, b), (a + b) % 7], "depends on 20 digits"),
    ],
)
def test_prompts_that_add_are_rejected(encode, reason):
    with pytest.raises(NotCopied, match=reason):
        learned(encode)


def written(sums: list[int], stop: bool = False) -> np.ndarray:
    """Tokens of sums, ones digit first, filled up with zeros; or, with `stop`, a 10 ends the sum, and threes follow."""
    rows = [[*map(int, reversed(str(total))), *([10] if stop else [0]) * 12][:12] for total in sums]
    return np.array([row if not stop else row[: row.index(10) + 1] + [3] * (11 - row.index(10)) for row in rows])


def read(row: list[int]) -> int:
    return sum(token * 10**place for place, token in enumerate(row))


def read_to_stop(row: list[int]) -> int:
    return read(row[: row.index(10)] if 10 in row else row)


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "decode"), [(False, read), (True, read_to_stop)])
def test_readings_are_learned_and_hold_for_other_answers(stop, decode):
    sums = [a + b for a, b in practice(0, 1_500)]
    reading = Reading.learned(written(sums, stop), lambda rows: [decode(row) for row in rows], 0)
    other = [a + b for a, b in problems(1, 50)]
    assert reading.answers(written(other, stop)).tolist() == other
    assert reading.stops == ({10} if stop else set())
    drafts = reading.drafts(np.array(other), written(sums, stop), np.array(sums))
    assert drafts is not None
    assert reading.answers(drafts).tolist() == other


def test_a_place_that_needs_two_tokens_is_no_reading():
    outputs = written([a + b for a, b in practice(0, 300)])
    with pytest.raises(NotCopied, match="depends on the generated tokens"):
        Reading.learned(outputs, lambda rows: [read(row) + row[0] * row[1] for row in rows], 0)


def test_a_digit_with_two_names_is_no_reading():
    # column sums with the carry still in them, 0 to 19, from which decode takes the tens away
    rows = np.random.default_rng(0).integers(0, 20, (1_000, 11))
    with pytest.raises(NotCopied, match="name the same digits"):
        Reading.learned(rows, lambda rows: [read([token % 10 for token in row]) for row in rows], 0)


def test_an_answer_that_comes_from_elsewhere_is_no_reading():
    outputs = written([a + b for a, b in practice(0, 300)])
    calls = iter(range(10**9))
    with pytest.raises(NotCopied):
        Reading.learned(outputs, lambda rows: [next(calls) for _ in rows], 0)


def test_a_token_that_was_never_written_in_its_place_reads_as_nothing():
    outputs = written([a + b for a, b in practice(0, 300)])
    reading = Reading.learned(outputs, lambda rows: [read(row) for row in rows], 0)
    outputs[0, 3] = 77
    assert reading.answers(outputs[:1]).tolist() == [-1]


def test_the_edge_cases_come_first_and_one_seed_gives_one_set():
    assert tuple(problems(1, 5)[:10]) == EDGE_CASES
    assert problems(1, 5) == problems(1, 5) != problems(2, 5)
