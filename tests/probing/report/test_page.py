import json
import re

import numpy as np
import pytest

from lab.probing.charts import figure, groups, table
from lab.probing.measured import Measured
from lab.probing.report.page import Attention, Section, page

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
        "a mean", {"column": [0, 1, 2], "layer": [0, 1], "site": ["pre", "post"]}, np.ones((4, 3, 2, 2))
    )
    drawn = figure(three)
    assert drawn["data"][0]["type"] == "heatmap"
    assert [button["label"] for button in drawn["layout"]["updatemenus"][0]["buttons"]] == [
        "column 0",
        "column 1",
        "column 2",
    ]
    assert "updatemenus" not in figure(TWO_AXES)["layout"]
    assert figure(TWO_AXES)["data"][0]["z"] == [[0.5, 1.0], [1.0, None]]
    line = figure(TWO_AXES.at(layer=1))["data"][0]
    assert line["y"] == [1.0, None]
    assert line["error_y"]["arrayminus"] == [1 - TWO_AXES.low[1, 0], None]


def test_layers_and_heads_are_the_map_wherever_they_stand_and_the_menu_begins_with_the_largest_value():
    values = np.zeros((1, 2, 3, 2))
    values[0, 1, 2, 1] = 1
    drawn = figure(Measured.mean("attention", {"layer": [0, 1], "head": [0, 1, 2], "offset": [0, -1]}, values))
    assert (drawn["data"][0]["y"], drawn["data"][0]["x"]) == (["0", "1"], ["0", "1", "2"])
    assert drawn["layout"]["updatemenus"][0]["active"] == 1
    assert drawn["data"][0]["z"] == [[0, 0, 0], [0, 0, 1]]


def test_an_array_and_its_control_stand_beside_each_other_on_one_scale():
    effect, control = (
        Measured.mean(name, {"layer": [0, 1], "head": [0, 1]}, np.full((1, 2, 2), value))
        for name, value in (("effect", 0.8), ("control", 0.1))
    )
    rank = control._replace(name="rank", value=np.full((2, 2), 50.0))
    alone = TWO_AXES
    assert groups([effect, control, rank, alone]) == [[effect, control], [rank], [alone]]
    drawn = figure(effect, control)
    assert [trace["coloraxis"] for trace in drawn["data"]] == ["coloraxis", "coloraxis"]
    assert (drawn["layout"]["coloraxis"]["cmin"], drawn["layout"]["coloraxis"]["cmax"]) == (0, 0.8)
    assert [one["text"] for one in drawn["layout"]["annotations"]] == ["effect", "control"]
    with pytest.raises(ValueError, match="different axes"):
        figure(effect, alone)


def test_a_single_figure_is_shown_too():
    alone = TWO_AXES.at(layer=0, site="pre")
    assert [tuple(map(str, row)) for row in table(alone).rows] == [("0.50 (0.09-0.91)",)]
    assert figure(alone)["data"][0]["y"] == [0.5]


HOSTILE = "</script><script>alert(1)</script>"


def shown(*sections: Section) -> str:
    attention = [Attention(HOSTILE, [HOSTILE, "2"], ["L0H0", HOSTILE], np.tril(np.ones((2, 2, 2))))]
    return page(f"a run {HOSTILE}", [HOSTILE], sections, attention)


def test_the_page_needs_no_network_and_shows_hostile_text_as_text():
    text = shown(Section("logit_lens", HOSTILE, [TWO_AXES], [HOSTILE], HOSTILE))
    assert "<script>alert" not in text
    outside_scripts = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    links = re.findall(r'(?:src|href)="([^"]*)"', outside_scripts)
    assert links
    assert all(link.startswith("#") or link == "data:," for link in links)
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
    assert body.index("It adds 100 % of them.") < body.index('data-chart="0"') < body.index('data-chart="1"')
    assert "was not measured: the model cannot add" in body[: body.index('id="competence"')]
    assert set(re.findall(r'href="#([^"]*)"', body)) <= set(re.findall(r'id="([^"]*)"', body))
    assert {"competence", "path-patching", "interchange", "attention"} <= set(re.findall(r'href="#([^"]*)"', body))
