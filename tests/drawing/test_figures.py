import hashlib

import matplotlib
import pytest

from lab.drawing.figures import COLORS, figure_at, line_with_band
from lab.numbers.statistics import wilson


def draw(path):
    with figure_at(path, (3, 2)) as figure:
        axes = figure.subplots()
        line_with_band(axes, {8: wilson(9, 10), 100: wilson(8, 10)}, color=COLORS[0])
        axes.set_xlabel("digits")
    return [hashlib.sha256(path.with_suffix(end).read_bytes()).hexdigest() for end in (".png", ".svg")]


def test_a_figure_is_a_png_and_an_svg_and_the_same_bytes_each_time(tmp_path):
    assert draw(tmp_path / "a" / "figure.png") == draw(tmp_path / "b" / "figure.png")
    svg = (tmp_path / "a" / "figure.svg").read_text()
    assert ">digits<" in svg  # text stays text, so that it can be searched and set in another font


def test_figures_share_one_look_and_leave_that_of_the_session_alone(tmp_path):
    before = dict(matplotlib.rcParams)
    with figure_at(tmp_path / "figure.png", (3, 2)) as figure:
        axes = figure.subplots()
        assert not axes.spines["top"].get_visible()
        assert axes.plot([1, 2])[0].get_color() == COLORS[0]
    assert dict(matplotlib.rcParams) == before


def test_a_figure_that_fails_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="no data"), figure_at(tmp_path / "figure.png", (3, 2)):
        raise ValueError("no data")
    assert not list(tmp_path.iterdir())
