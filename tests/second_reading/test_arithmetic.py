from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.second_reading.arithmetic import Signed, computed


def by_hand(operation: str, first: str, second: str) -> str:
    one, other = int(first), int(second)
    if operation == "compare":
        return "<" if one < other else ">" if one > other else "="
    assert operation == "add" or one >= other
    return str(one + other if operation == "add" else one - other)


def signed(digits: int, decimals: int = 0) -> Signed:
    return Signed(-1 if digits < 0 else 1, str(abs(digits)), decimals)


numbers = st.builds(signed, st.integers(-(10**9), 10**9), st.integers(0, 3))
several = st.lists(numbers, min_size=2, max_size=4)


@given(several)
def test_a_sum_of_signed_decimals(asked: list[Signed]) -> None:
    assert computed("sum", asked, by_hand).value() == sum(number.value() for number in asked)


@given(several)
def test_the_larger_and_the_smaller_of_signed_decimals(asked: list[Signed]) -> None:
    values = [number.value() for number in asked]
    assert computed("larger", asked, by_hand).value() == max(values)
    assert computed("smaller", asked, by_hand).value() == min(values)


@given(numbers, numbers)
def test_the_distance_of_signed_decimals(first: Signed, second: Signed) -> None:
    assert computed("distance", [first, second], by_hand).value() == abs(first.value() - second.value())


@pytest.mark.parametrize(
    ("number", "grouped", "text"),
    [
        (Signed(1, "1234567", 0), True, "1,234,567"),
        (Signed(1, "123456", 0), True, "123,456"),
        (Signed(1, "12", 0), True, "12"),
        (Signed(-1, "5", 2), False, "-0.05"),
        (Signed(-1, "0", 0), False, "0"),
        (Signed(1, "1200", 2), False, "12.00"),
        (Signed(1, "1234567", 2), True, "12,345.67"),
    ],
)
def test_how_a_number_is_written(number: Signed, grouped: bool, text: str) -> None:
    assert number.written(grouped) == text
    assert Signed.read(text.lstrip("-"), -1 if "-" in text else 1).value() == number.value()


@given(st.integers(0, 10**12), st.integers(0, 4), st.booleans())
def test_a_number_that_is_written_can_be_read(digits: int, decimals: int, grouped: bool) -> None:
    number = signed(digits, decimals)
    assert Signed.read(number.written(grouped)).value() == Fraction(digits, 10**decimals)
