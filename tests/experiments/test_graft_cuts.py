"""Which places of a sum are left if those are cut off that the computation of a digit cannot reach."""

import graft_cuts
import pytest

from lab.numbers.sampling import Problem

SUM = Problem("add", "integer", "93581462", "12417935", "105999397", 8)


@pytest.mark.parametrize(
    ("place", "low", "high"),
    [
        (5, 2, 7),  # 5 + 4; 8 + 1 is nine, 1 + 7 at place 3 decides, and one place below that is kept
        (3, 1, 5),  # 1 + 7; 4 + 9 decides, and two places below the own one are kept
        (0, 0, 2),  # 2 + 5; nothing lies below
    ],
)
def test_a_cut_reaches_two_places_up_and_down_to_the_place_that_decides(place, low, high):
    assert graft_cuts.bounds(SUM.a, SUM.b, place) == (low, high)


def test_what_is_left_never_begins_with_a_zero():
    """At place 2 one of the numbers has a zero, so place 3 is kept as well."""
    assert graft_cuts.bounds("51023", "42134", 0) == (0, 3)
    assert graft_cuts.bounds("51123", "42034", 0) == (0, 3)


def test_a_cut_is_a_sum_of_its_own():
    left = graft_cuts.cut(SUM, 2, 7)
    assert (left.a, left.b, left.answer, left.length) == ("935814", "124179", "1059993", 6)
    left = graft_cuts.cut(SUM, 0, 2)
    assert (left.a, left.b, left.answer) == ("462", "935", "1397")
