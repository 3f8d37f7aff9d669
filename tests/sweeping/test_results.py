import csv
from pathlib import Path

import pytest

from lab.benchmarks.results import VERSION
from lab.errors import RunError
from lab.numbers.statistics import Estimate, seeds_proportion, student_mean, wilson
from lab.runs import Run
from lab.sweeping.config import LengthCurvesResults, ValuesResults
from lab.sweeping.results import Row, across_seeds, write


def run(path: Path, summary: dict, config: str = "name: x\n") -> Run:
    with Run.open(path, config) as written:
        written.write_json("summary", summary)
    return written


def share(right: int, n: int) -> dict:
    return wilson(right, n)._asdict()


def estimate(value: float) -> dict:
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 10}


@pytest.fixture
def two(tmp_path):
    """Runs of two seeds with two tasks, one of which has no range M."""
    runs = []
    for seed, right in enumerate([(6, 2, 1), (8, 4, 3)]):
        tasks = {"add": {"S": share(right[0], 10), "M": share(right[1], 10)}, "length": {"S": share(right[2], 30)}}
        summary = {"after": {task: {"ranges": ranges} for task, ranges in tasks.items()}, "loss": 0.5 + seed}
        runs.append(run(tmp_path / f"run_{seed}", {**summary, "list": [{"a.b": 1}, 2]}))
    return runs


def test_a_share_over_seeds_has_students_interval_or_the_wider_one_of_all_its_problems(two):
    assert across_seeds(two, "after.add.ranges.S", True) == seeds_proportion([0.6, 0.8], 10)
    assert across_seeds(two[:1], "after.add.ranges.S", True) == wilson(6, 10)
    assert across_seeds([], "after.add.ranges.S", True) is None


def test_a_star_takes_all_problems_that_it_matches_together(two):
    assert across_seeds(two[:1], "after.*.ranges.S", True) == wilson(7, 40)
    assert across_seeds(two, "after.*.ranges.M", True) == seeds_proportion([0.2, 0.4], 10)


def test_another_number_has_students_interval_and_one_run_without_one_has_none(two):
    assert across_seeds(two, "loss", False) == student_mean([0.5, 1.5])
    assert across_seeds(two[:1], "loss", False) == student_mean([0.5])
    assert across_seeds(two[:1], "after.add.ranges.S", False) == wilson(6, 10)
    assert across_seeds(two[:1], "summary:list.1", False) == student_mean([2])


def test_a_mean_of_proportions_stays_between_0_and_100_percent_and_dlength_above_0(tmp_path):
    runs = [
        run(tmp_path / f"run_{seed}", {"add": {"digit_match": estimate(match), "dlength": estimate(3 * match)}})
        for seed, match in enumerate([0.8, 1.0])
    ]
    match, dlength = (across_seeds(runs, f"add.{metric}", False) for metric in ("digit_match", "dlength"))
    assert match == student_mean([0.8, 1.0], 0, 1)
    assert (match.low, match.high) == (0, 1)
    assert dlength.low == 0
    assert dlength.high > 3
    assert across_seeds(runs[:1], "add.dlength", False) == Estimate.from_json(estimate(2.4000000000000004))


def test_a_figure_of_one_problem_is_shown_without_an_interval(tmp_path):
    sweep = Run.open(tmp_path / "sweep", "name: sweep\n")
    one = run(tmp_path / "run", {"dlength": {"value": 3.0, "low": None, "high": None, "n": 1}})
    table = write(ValuesResults(means={"dlength": "dlength"}), [Row({"cell": "a"}, [one])], "t", sweep)
    assert table
    assert [str(cell) for cell in table.rows[0]] == ["a", "1", "3"]
    assert (sweep.figures / "results.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("after.add.range.S", "there is no figure at after.add.range.S; after.add has ranges"),
        ("before.*.x", "there is no figure at before.*.x; the file has after, loss, list"),
        ("after.add", "there is no figure at after.add; after.add has ranges"),
        ("probe:x", "probe.json: No such file or directory"),
    ],
)
def test_a_path_that_leads_nowhere_is_told_with_what_there_is(two, path, message):
    with pytest.raises(RunError, match=message.replace("*", r"\*")):
        across_seeds(two, path, False)


def test_a_number_without_its_n_is_no_share(two):
    with pytest.raises(RunError, match="there is no proportion with its n at loss"):
        across_seeds(two, "loss", True)


def test_cells_of_values_are_a_table_a_file_and_a_figure_and_what_has_no_run_is_not_measured(tmp_path, two):
    sweep = Run.open(tmp_path / "sweep", "name: sweep\n")
    results = ValuesResults(shares={"right": "after.add.ranges.S"}, means={"loss": "loss"})
    labels = [{"adapter.rank": rank, "cell": "plain"} for rank in ("8", "32", "64")]
    rows = [Row(labels[0], two), Row(labels[1], two[:1]), Row(labels[2], [])]
    table = write(results, rows, "A | title", sweep)
    assert table
    assert table.columns == ("adapter.rank", "cell", "seeds", "right", "loss")
    assert [[str(cell) for cell in row] for row in table.rows] == [
        ["8", "plain", "2", "70 (0-100)", "1 (-5.353-7.353)"],
        ["32", "plain", "1", "60 (31-83)", "0.5"],
        ["64", "plain", "0", "", ""],
    ]
    assert (sweep.path / "table.md").read_text().startswith("A | title (0 to 2 seeds)\n\n| adapter.rank | cell |")
    with (sweep.path / "results.csv").open() as file:
        first, *_, last = csv.DictReader(file)
    assert (first["right value"], first["right n"], first["loss value"]) == ("0.7", "2", "1.0")
    assert last["right value"] == ""
    assert (sweep.figures / "results.png").stat().st_size > 5_000


@pytest.mark.slow
def test_runs_that_differ_in_their_task_alone_are_one_line_of_length_curves(tmp_path):
    def curves(task: str, right: int) -> dict:
        other = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 10}
        return {
            "version": VERSION,
            "lengths": {task: {"4": {"exact_match": share(right, 10), "digit_match": other, "dlength": other}}},
        }

    rows = []
    for task in ("add", "max"):
        for model, right in (("rope", 9), ("nope", 1)):
            config = "data:\n  lengths: [1, 4]\n"
            seeds = [run(tmp_path / f"{task}_{model}_{seed}", curves(task, right), config) for seed in (0, 1)]
            rows.append(Row({"data.tasks": task, "cell": model}, seeds if (task, model) != ("max", "nope") else []))
    sweep = Run.open(tmp_path / "sweep", "name: sweep\n")
    table = write(LengthCurvesResults(), rows, "Curves", sweep)
    assert table
    assert [row[:2] for row in table.rows] == [("add", "rope"), ("add", "nope"), ("max", "rope")]
    assert table.columns == ("task", "model", "d4")
    assert table.title == "Curves (0 to 2 seeds): exact match (%)"
    assert "digits (grey: trained)" in (sweep.figures / "results.svg").read_text()
    other = run(tmp_path / "other", curves("add", 5), "data:\n  lengths: [1, 3]\n")
    write(LengthCurvesResults(), [*rows, Row({"cell": "fewer digits"}, [other])], "Curves", sweep)
    assert "grey" not in (sweep.figures / "results.svg").read_text()  # no range is that of all models
    both = Row({"data.tasks": "add, max", "cell": "rope"}, [other])
    table = write(LengthCurvesResults(), [*rows[:2], both], "Curves", sweep)
    assert table
    assert [row[:2] for row in table.rows] == [("add", "add, rope"), ("add", "add, nope"), ("add", "add, max, rope")]


def test_a_sweep_without_a_finished_run_shows_nothing(tmp_path):
    sweep = Run.open(tmp_path / "sweep", "name: sweep\n")
    assert write(LengthCurvesResults(), [Row({"cell": "a"}, [])], "t", sweep) is None
    assert not (sweep.path / "table.md").exists()
