import json
import re

import numpy as np

from lab.probing.charts import figure, table
from lab.probing.measured import Measured
from lab.probing.page import Attention, Section, page

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


HOSTILE = "</script><script>alert(1)</script>"


def shown(*sections: Section) -> str:
    attention = [Attention(HOSTILE, [HOSTILE, "2"], np.tril(np.ones((2, 2, 2))))]
    return page(f"a run {HOSTILE}", [HOSTILE], sections, attention)


def test_the_page_needs_no_network_and_shows_hostile_text_as_text():
    text = shown(Section("path_patching", HOSTILE, [TWO_AXES], [HOSTILE], HOSTILE))
    assert "<script>alert" not in text
    outside_scripts = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    links = re.findall(r'(?:src|href)="([^"]*)"', outside_scripts)
    assert links
    assert all(link.startswith("#") for link in links)
    patterns = re.search(r"patterns = (\[.*\]);", text)
    assert patterns
    assert json.loads(patterns[1])[0]["tokens"] == [HOSTILE, "2"]


def test_verdicts_and_failures_come_first_and_every_link_leads_somewhere():
    text = shown(
        Section("competence", "Can it add?", [TWO_AXES, TWO_AXES], ["It adds 100 % of them."]),
        Section("path_patching", "Which tells which.", [], [], "the model cannot add"),
        Section("interchange", "Which direction.", [TWO_AXES], []),
    )
    body = text[text.index("<body>") :]
    assert body.index("It adds 100 % of them.") < body.index('id="chart-0"') < body.index('id="chart-2"')
    assert "was not measured: the model cannot add" in body[: body.index('id="competence"')]
    assert set(re.findall(r'href="#([^"]*)"', body)) <= set(re.findall(r'id="([^"]*)"', body))
    assert {"competence", "path-patching", "interchange", "attention"} <= set(re.findall(r'href="#([^"]*)"', body))
