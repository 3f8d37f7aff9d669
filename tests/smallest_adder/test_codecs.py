"""Copying digits is told from adding them."""

import numpy as np
import pytest

from lab.smallest_adder.codecs import answer_objection, digits_of, neighbours, prompt_objection, reach
from lab.smallest_adder.drafts import Drafts
from lab.smallest_adder.harness import EDGE_CASES, LARGEST, problems


def objection(encode) -> str:
    bases = problems(0, 20)
    changed = neighbours(bases)
    before = np.array([encode(*pair) for pair in bases])
    after = np.array([encode(*pair) for *_, pair in changed])
    return prompt_objection(bases, before, reach(before, changed, after))


def digits(a: int, b: int) -> list[int]:
    return digits_of([(a, b)])[0].tolist()


def test_digits_are_from_the_ones_up():
    assert digits(1234567890, 12) == [0, 9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 1] + [0] * 8


def test_every_digit_is_changed_to_its_nine_others():
    changed = neighbours([(0, LARGEST)])
    assert len(changed) == len(set(changed)) == 20 * 9
    assert all(0 <= a <= LARGEST and 0 <= b <= LARGEST for *_, (a, b) in changed)


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
def test_prompts_that_copy_are_accepted(encode):
    assert objection(encode) == ""


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
    assert reason in objection(encode)


def test_a_place_that_needs_two_tokens_is_no_reading():
    outputs = np.array([[1, 2], [3, 4]])
    assert answer_objection(outputs, [21, 43], [{0}, {1}]) == ""
    assert "depends on the generated tokens 0, 1" in answer_objection(outputs, [21, 43], [{0}, {0, 1}])
    assert "not a function" in answer_objection(np.array([[1, 2], [1, 4]]), [21, 43], [{0}, {1}])


def test_drafts_are_learned_from_any_order_and_grouping():
    pairs = problems(3, 2_000)
    sums = [a + b for a, b in pairs]
    written = np.array([[7, *map(int, f"{total:012}"), total // 100 % 100] for total in sums])
    drafts = Drafts(pairs[:1_000], written[:1_000])
    assert drafts.complete
    assert (drafts.of(pairs) == written).all()


def test_what_no_digit_explains_is_not_drafted():
    pairs = problems(3, 500)
    assert not Drafts(pairs, np.array([[(a + b) % 7] for a, b in pairs])).complete


def test_the_edge_cases_come_first_and_one_seed_gives_one_set():
    assert tuple(problems(1, 5)[:10]) == EDGE_CASES
    assert problems(1, 5) == problems(1, 5) != problems(2, 5)
