from hypothesis import given
from hypothesis import strategies as st

from experiments.shared.streams import STREAMS, float_addition, float_subtraction, subtraction
from lab.numbers.additions import STRATA, addition
from lab.numbers.representations import Float
from lab.numbers.sampling import task_of


@given(st.sampled_from(sorted(STRATA)), st.integers(1, 120), st.integers(0, 10**6))
def test_a_subtraction_is_the_addition_of_its_stratum_turned_round(stratum, length, index):
    added, item = addition(stratum, length, 0, index), subtraction(stratum, length, 0, index)
    assert (item.a, item.b, item.answer) == (added.answer, added.b, added.a)
    assert int(item.answer) == int(item.a) - int(item.b)
    assert item.length == length
    assert task_of(item).key == "sub_integer"


@given(st.sampled_from(sorted(STRATA)), st.integers(1, 60), st.integers(0, 10**6))
def test_an_addition_of_floats_is_one_of_integers_with_a_point_in_the_middle(stratum, length, index):
    added, item = addition(stratum, 2 * length, 0, index), float_addition(stratum, length, 0, index)
    for text, digits in ((item.a, added.a), (item.b, added.b), (item.answer, added.answer)):
        assert Float.parse(text).scaled(-length) == int(digits)
        assert str(Float.parse(text)) == text
    assert item.length == length
    turned = float_subtraction(stratum, length, 0, index)
    assert (turned.a, turned.b, turned.answer) == (item.answer, item.b, item.a)


def test_a_carry_runs_through_the_point():
    item = float_addition("nines_short", 3, 0, 0)
    assert "999.999" in (item.a, item.b)
    assert item.answer.startswith("100")


def test_streams_are_named_by_their_tasks():
    for key, stream in STREAMS.items():
        assert task_of(stream("uniform", 3, 0, 0)).key == key
