import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import RunError
from lab.numbers.statistics import wilson
from lab.probing.measured import Measured

NAN = float("nan")
AXES = {"layer": [0, 1], "head": ["a", "b", "c"]}
SAMPLES = np.array([[[1.0, 0.0, NAN], [1.0, 1.0, NAN]], [[1.0, 1.0, NAN], [0.0, NAN, 1.0]]])


def test_means_are_over_the_samples_that_are_there():
    found = Measured.mean("effect", AXES, SAMPLES * 4)
    np.testing.assert_equal(found.value, [[4.0, 2.0, NAN], [2.0, 4.0, 4.0]])
    assert found.n.tolist() == [[2, 2, 0], [2, 1, 1]]
    # two samples drawn with replacement: the mean is 0, 2 or 4, and each end comes a quarter of the time
    np.testing.assert_equal(found.low, [[4.0, 0.0, NAN], [0.0, 4.0, 4.0]])
    np.testing.assert_equal(found.high, [[4.0, 4.0, NAN], [4.0, 4.0, 4.0]])


def test_a_ratio_of_means_has_no_interval_if_samples_are_in_proportion_to_their_scale():
    scale = np.array([1.0, 2.0, 6.0])
    found = Measured.ratio("effect", {"k": [0, 1]}, np.stack([scale / 2, [1.0, NAN, 3.0]], 1), scale)
    np.testing.assert_allclose([found.value, found.low, found.high], [[0.5, 4 / 7], [0.5, 0.5], [0.5, 1.0]])
    assert found.n.tolist() == [3, 2]


def test_a_ratio_covers_the_truth_as_often_as_it_says():
    """Numerator and denominator that vary together; the interval of the numerator alone would be twice as wide."""
    draw, covered = np.random.default_rng(0), 0
    for _ in range(200):
        scale = draw.normal(4, 1, 40)
        found = Measured.ratio("x", {}, 0.8 * scale + draw.normal(0, 0.4, 40), scale)
        covered += found.low <= 0.8 <= found.high
    assert 0.89 <= covered / 200 <= 0.985


def test_shares_have_wilsons_interval():
    found = Measured.share("accuracy", AXES, SAMPLES)
    np.testing.assert_equal(found.value, [[1.0, 0.5, NAN], [0.5, 1.0, 1.0]])
    assert found.n.tolist() == [[2, 2, 0], [2, 1, 1]]
    half = wilson(1, 2)
    assert (found.low[0, 1], found.high[0, 1]) == (half.low, half.high)
    assert found.high[0, 0] == 1
    assert found.low[0, 0] == pytest.approx(0.342, abs=5e-4)  # 2 of 2: n / (n + 1.96^2)
    assert np.isnan([found.low[0, 2], found.high[0, 2]]).all()


@settings(max_examples=25)
@given(st.lists(st.lists(st.one_of(st.none(), st.floats(-9, 9)), min_size=3, max_size=3), min_size=1, max_size=8))
def test_intervals_hold_the_mean_and_come_out_the_same_again(rows):
    samples = np.array([[NAN if x is None else x for x in row] for row in [*rows, [1, None, None]]])
    found, again = (Measured.mean("x", {"k": [0, 1, 2]}, samples) for _ in range(2))
    there = ~np.isnan(found.value)
    assert (there == (found.n > 0)).all()
    assert (found.low[there] <= found.value[there] + 1e-9).all()
    assert (found.high[there] >= found.value[there] - 1e-9).all()
    for name in ("value", "low", "high", "n"):
        np.testing.assert_equal(getattr(found, name), getattr(again, name))


def test_nothing_measured_anywhere_is_nan_everywhere():
    found = Measured.mean("x", {"k": [0, 1]}, np.full((3, 2), NAN))
    np.testing.assert_equal(found.value, [NAN, NAN])
    np.testing.assert_equal(found.high, [NAN, NAN])
    assert found.n.tolist() == [0, 0]


def test_the_interval_of_a_mean_is_about_two_standard_errors_to_each_side():
    samples = np.random.default_rng(1).normal(5, 2, (400, 1))
    found = Measured.mean("x", {"k": [0]}, samples)
    assert (found.high - found.low)[0] == pytest.approx(2 * 1.96 * 2 / 20, rel=0.15)


def test_a_part_keeps_the_axes_that_are_left():
    found = Measured.mean("effect", AXES, SAMPLES)
    part = found.at(head="b")
    assert part.axes == {"layer": [0, 1]}
    assert part.value.tolist() == [0.5, 1.0]
    assert part.n.tolist() == [2, 1]
    assert found.at(layer=1, head="c").value == 1.0
    assert found.at(layer=1, head="c").axes == {}


def test_unknown_labels_and_axes_are_named():
    found = Measured.mean("effect", AXES, SAMPLES)
    with pytest.raises(KeyError, match=r"effect has no head 'd'; it has \['a', 'b', 'c'\]"):
        found.at(head="d")
    with pytest.raises(KeyError, match=r"effect has no axis column; it has layer, head"):
        found.at(column=1)


@pytest.mark.parametrize("make", [Measured.mean, Measured.share])
def test_samples_of_another_shape_are_refused(make):
    with pytest.raises(ValueError, match=r"shape \(2,\) for axes \{'k': 3\}"):
        make("x", {"k": [0, 1, 2]}, np.zeros((5, 2)))


@pytest.mark.parametrize("make", [Measured.mean, Measured.share])
def test_json_has_no_nan_and_reads_back_the_same(make):
    found = make("effect", AXES, SAMPLES)
    text = json.dumps(found.to_json(), allow_nan=False)
    again = Measured.from_json(json.loads(text))
    assert (again.name, again.axes) == (found.name, found.axes)
    for name in ("value", "low", "high", "n"):
        np.testing.assert_equal(getattr(again, name), getattr(found, name))
    assert json.loads(text)["value"] == [[1.0, 0.5, None], [0.5, 1.0, 1.0]]


def test_a_single_value_reads_back_too():
    found = Measured.mean("effect", AXES, SAMPLES).at(layer=0, head="b")
    again = Measured.from_json(json.loads(json.dumps(found.to_json())))
    assert (again.axes, float(again.value), int(again.n)) == ({}, 0.5, 2)


@pytest.mark.parametrize(
    "change", [{"value": [1.0]}, {"axes": {}}, {"value": "high"}, {"axes": None}], ids=["shape", "axes", "text", "none"]
)
def test_what_is_no_measured_array_is_refused_in_one_line(change):
    with pytest.raises(RunError, match=r"^not a measured array: ") as caught:
        Measured.from_json(Measured.mean("effect", AXES, SAMPLES).to_json() | change)
    assert "\n" not in str(caught.value)


def test_a_measured_array_is_shown_as_a_table_of_which_long_ones_show_the_first_rows():
    short = Measured.share("a share", {"layer": [0, 1], "site": ["pre", "post"]}, np.ones((4, 2, 2)))
    shown = repr(short).splitlines()
    assert shown[0] == "a share (95 %, n = 4); axes: layer (2), site (2)"
    assert shown[3] == "| 0 | 1.00 (0.51-1.00) | 1.00 (0.51-1.00) |"
    long = repr(Measured.share("a share", {"layer": list(range(30)), "site": ["pre"]}, np.ones((4, 30, 1))))
    assert long.splitlines()[-1] == "... and 10 more rows"
    assert "axes: none" in repr(short.at(layer=0, site="pre"))


def test_a_frame_has_a_row_for_each_combination_of_labels():
    measured = Measured.share("a share", {"layer": [0, 1], "site": ["pre", "post"]}, np.array([[[0, 1], [1, np.nan]]]))
    frame = measured.to_frame()
    assert list(frame) == ["layer", "site", "value", "low", "high", "n"]
    assert frame[["layer", "site", "n"]].values.tolist() == [
        [0, "pre", 1],
        [0, "post", 1],
        [1, "pre", 1],
        [1, "post", 0],
    ]
    assert frame.set_index(["layer", "site"]).value[1, "pre"] == 1
    assert measured.at(layer=0, site="post").to_frame().value.tolist() == [1]


def test_a_plot_is_a_figure_of_plotly_with_the_name_as_its_title():
    measured = Measured.share("a share", {"layer": [0, 1], "site": ["pre", "post"]}, np.ones((4, 2, 2)))
    drawn = measured.plot()
    assert drawn.layout.title.text == "a share"
    assert drawn.data[0].type == "heatmap"
