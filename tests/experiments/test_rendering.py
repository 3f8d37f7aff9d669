"""The renderer of findings: what slots compute, and what it says when page, slots, data or figure are wrong."""

import re

import pytest

from experiments.render import rendered
from experiments.rendering.rows import read_rows
from experiments.shared.measuring import measured
from lab.errors import RunError
from lab.numbers.statistics import seeds_proportion, wilson

PAGE = """---
id: F-001
claim: It adds <!--long-->?<!--/--> of long sums.
---

Right: <!--long-->?<!--/-->, that is <!--counted-->?<!--/-->.

<!--all-->

<!--/-->
"""
SLOTS = """
numbers:
  long: share(digits=100) | percent
  counted: count(digits=100)
tables:
  all:
    head: digits
    rows: {"10": {digits: 10}, "100": {digits: 100}}
    columns: {seeds: seeds(), right: share(), lowest: lowest()}
figure: {x: digits}
"""
DATA = "seed,digits,right,n\n0,10,20,20\n1,10,20,20\n0,100,20,20\n1,100,15,20\n"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "experiments" / "adds"
    folder.mkdir(parents=True)
    for name, text in (("README.md", PAGE), ("slots.yaml", SLOTS), ("results.csv", DATA)):
        (folder / name).write_text(text)
    return folder


def write(folder):
    for file, text in rendered(folder.parents[1], ["F-001"]):
        file.write_text(text)


def change(folder, name, old, new):
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


def test_a_page_is_filled_from_its_data_and_stays_as_it_is_when_rendered_again(folder):
    write(folder)
    page = (folder / "README.md").read_text()
    value, low, high, _ = seeds_proportion([1, 0.75], 20)
    assert f"Right: <!--long-->{100 * value:.0f} % ({100 * low:.0f}-{100 * high:.0f})<!--/-->" in page
    assert "that is <!--counted-->35 of 40<!--/-->" in page
    assert "| digits | seeds | right | lowest |" in page
    assert "| 100 | 2 | 88 (0-100) | 75 |" in page
    assert [file.read_text() == text for file, text in rendered(folder.parents[1], ["F-001"])] == [True, True]


def test_another_number_in_the_data_changes_page_and_figure(folder):
    write(folder)
    change(folder, "results.csv", "1,100,15,20", "1,100,5,20")
    assert [file.read_text() == text for file, text in rendered(folder.parents[1], ["F-001"])] == [False, False]


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("slots.yaml", "share(digits=100)", "share(digits=50)", "slot long: .*results.csv: no row with digits=50"),
        ("slots.yaml", "count(digits", "count(digit", "slot counted: .*no column digit; it has seed, digits, right, n"),
        ("slots.yaml", "lowest()", "deepest()", "slot all: .*table all, 10, lowest: 'deepest' is undefined"),
        ("slots.yaml", "counted:", "count:", "slot counted: .*slots.yaml: no slot counted"),
        ("slots.yaml", "numbers:", "number:", "slots.yaml: number: Extra inputs are not permitted"),
        ("slots.yaml", "x: digits", "x: length", "results.csv: no column length"),
        ("README.md", "?<!--/-->.", "?.", "a slot should be written <!--name-->...<!--/-->"),
        ("README.md", "Right: ", "", "a line should not begin with a slot: <!--long-->"),
        (
            "results.csv",
            "1,100,15,20",
            "1,100,25,20",
            "results.csv: line 5: right should be a whole number from 0 to n",
        ),
        ("results.csv", "1,100,15,20", "1,100,15", "results.csv: line 5 should have 4 cells"),
        ("results.csv", "seed,digits", "digits,digits", "results.csv: should have a line of different column names"),
    ],
)
def test_what_is_wrong_is_told_in_a_line_that_names_file_and_slot(folder, name, old, new, said):
    change(folder, name, old, new)
    with pytest.raises(RunError, match=said) as told:
        list(rendered(folder.parents[1], ["F-001"]))
    assert "\n" not in str(told.value)


def test_problems_that_seeds_share_count_once_and_their_own_count_each(tmp_path):
    file = tmp_path / "results.csv"
    rows = [f"{seed},{stratum},10,10" for seed in range(5) for stratum in ("nines", "uniform")]
    file.write_text("\n".join(["seed,stratum,right,n", *rows]) + "\n")
    assert read_rows(file).share().low == pytest.approx(wilson(20, 20).low)
    file.write_text("\n".join(["seed,stratum,right,n,problems", *(f"{row},own" for row in rows)]) + "\n")
    assert read_rows(file).share().low == pytest.approx(wilson(100, 100).low)


def test_a_published_share_is_shown_as_it_was_published(tmp_path):
    file = tmp_path / "results.csv"
    file.write_text("digits,value,low,high\n100,99.5,98.8,100\n")
    assert read_rows(file).share()[:3] == pytest.approx((0.995, 0.988, 1))


def test_a_runner_that_was_stopped_measures_only_what_its_file_lacks(tmp_path):
    file, asked = tmp_path / "results.csv", []

    def measure(seed, digits):
        asked.append((seed, digits))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return {"right": seed, "n": digits}

    cells = [{"seed": seed, "digits": digits} for seed in (0, 1) for digits in (10, 20)]
    with pytest.raises(KeyboardInterrupt):
        measured(file, cells, measure)
    assert measured(file, cells, measure).whole("n") == 60
    assert asked == [(0, 10), (0, 20), (0, 20), (1, 10), (1, 20)]
    with pytest.raises(RunError, match=re.escape(f"{file}: its columns should be seed, digits, lost")):
        measured(file, [{"seed": 2, "digits": 10}], lambda seed, digits: {"lost": 0})
