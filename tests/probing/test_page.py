import json
import re

import numpy as np

from lab.probing.charts import figure, table
from lab.probing.measured import Measured
from lab.probing.page import Attention, page

SAMPLES = np.array([[[0.0, 1.0], [1.0, np.nan]], [[1.0, 1.0], [1.0, np.nan]]])
TWO_AXES = Measured.share("a share", {"layer": [0, 1], "site": ["pre", "post"]}, SAMPLES)


def test_a_table_has_a_row_for_each_place_and_a_column_for_each_label_of_the_last_axis():
    shown = table(TWO_AXES)
    assert shown.columns == ("layer", "site pre", "site post")
    # of 2: Wilson's intervals are 9.5-90.5 % for one and 34.2-100 % for both
    assert [tuple(map(str, row)) for row in shown.rows] == [
        ("0", "0.50 (0.09-0.91)", "1.00 (0.34-1.00)"),
        ("1", "1.00 (0.34-1.00)", ""),
    ]
    assert shown.title == "a share (95 %, n = 0 to 2)"


def test_a_figure_of_more_than_two_axes_has_a_menu_and_of_one_has_intervals():
    three = Measured.mean(
        "a mean", {"head": [0, 1, 2], "layer": [0, 1], "site": ["pre", "post"]}, np.ones((4, 3, 2, 2))
    )
    drawn = figure(three)
    assert drawn["data"][0]["type"] == "heatmap"
    assert [button["label"] for button in drawn["layout"]["updatemenus"][0]["buttons"]] == [
        "head 0",
        "head 1",
        "head 2",
    ]
    assert "updatemenus" not in figure(TWO_AXES)["layout"]
    assert figure(TWO_AXES)["data"][0]["z"] == [[0.5, 1.0], [1.0, None]]
    line = figure(TWO_AXES.at(layer=1))["data"][0]
    assert line["y"] == [1.0, None]
    assert line["error_y"]["arrayminus"] == [1 - TWO_AXES.low[1, 0], None]


def test_a_single_figure_is_shown_too():
    alone = TWO_AXES.at(layer=0, site="pre")
    assert [tuple(map(str, row)) for row in table(alone).rows] == [("0.50 (0.09-0.91)",)]
    assert figure(alone)["data"][0]["y"] == [0.5]


def test_the_page_needs_no_network_and_shows_hostile_text_as_text():
    hostile = "</script><script>alert(1)</script>"
    shown = page(
        f"a run {hostile}", [hostile], [TWO_AXES], [Attention(hostile, [hostile, "2"], np.tril(np.ones((2, 2, 2))))]
    )
    assert "<script>alert" not in shown
    outside_scripts = re.sub(r"<script>.*?</script>", "", shown, flags=re.DOTALL)
    assert not re.search(r"(src|href)=", outside_scripts)
    patterns = re.search(r"patterns = (\[.*\]);", shown)
    assert patterns
    assert json.loads(patterns[1])[0]["tokens"] == [hostile, "2"]
