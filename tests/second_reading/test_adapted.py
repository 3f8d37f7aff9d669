import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lab.second_reading.adapted import SecondReading, digits, grid


def test_what_is_written_does_not_depend_on_the_other_problems_of_a_batch(second: SecondReading) -> None:
    pairs = [("add", 1234, 98), ("subtract", 1000, 1), ("compare", 77, 1077), ("add", 5, 5)]
    together = second(grid(pairs)).logits_NPV
    for row, pair in zip(together, pairs, strict=True):
        alone = second(grid([pair])).logits_NPV[0]
        torch.testing.assert_close(row[: len(alone)], alone, atol=1e-4, rtol=1e-3)


def test_a_place_depends_on_no_place_above_it(second: SecondReading) -> None:
    short, long = (second(grid([("add", first, 45)])).logits_NPV[0] for first in (123, 98123))
    torch.testing.assert_close(short[:3], long[:3], atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("changed", [("add", 124, 45), ("add", 123, 46), ("subtract", 123, 45)])
def test_what_is_written_depends_on_both_numbers_and_on_the_operation(
    second: SecondReading, changed: tuple[str, int, int]
) -> None:
    before, after = (second(grid([pair])).logits_NPV for pair in (("add", 123, 45), changed))
    assert not torch.allclose(before, after, atol=1e-3)


@given(st.integers(0, 10**30), st.integers(0, 3))
def test_a_number_has_the_same_digits_as_text_and_as_an_integer(number: int, zeros: int) -> None:
    places = len(str(number)) + zeros
    assert digits(number, places) == digits(str(number), places)
    assert int("".join(map(str, reversed(digits(number, places))))) == number


def test_numbers_may_have_more_digits_than_python_reads() -> None:
    told = grid([("add", "1" * 5000, "2")])
    assert told.first_NP.shape == (1, 5001)
    assert told.first_NP[0].tolist() == [1] * 5000 + [0]
