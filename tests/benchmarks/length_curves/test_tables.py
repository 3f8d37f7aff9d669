import pytest

from lab.benchmarks.length_curves.tables import across_seeds, by_metric, together, while_training
from lab.benchmarks.results import CurvePoint, Curves, Scores
from lab.numbers.statistics import Estimate, student_mean, wilson
from lab.runs import Run


def curve(task: str, **exact: tuple[int, int]) -> Curves:
    """n8=(90, 100): 90 of 100 are right at 8 digits."""
    lengths = {}
    for name, (right, asked) in exact.items():
        other = Estimate(0.5, 0.4, 0.6, asked)
        lengths[int(name[1:])] = Scores(exact_match=wilson(right, asked), digit_match=other, dlength=other)
    return {task: lengths}


def test_seeds_that_differ_have_students_interval_and_seeds_that_agree_that_of_all_their_problems():
    curves = across_seeds([curve("add", n8=(100, 100), n9=(100, 100)), curve("add", n8=(100, 100), n9=(0, 100))])
    agreed, differing = curves["add"][8].exact_match, curves["add"][9].exact_match
    assert agreed == Estimate(1, wilson(200, 200).low, 1, 2)
    assert differing == student_mean([1, 0], 0, 1)
    assert (differing.low, differing.high) == (0, 1)
    one = curve("add", n8=(90, 100))
    assert across_seeds([one]) == one


def test_a_table_has_a_column_a_length_and_leaves_out_what_was_not_measured():
    runs = [curve("add", n8=(90, 100), n9=(10, 100)), curve("max", n8=(100, 100))]
    shown = {"one": together(runs), "other": together([curve("add", n8=(0, 100)), runs[1]])}
    table = by_metric(shown, "t", "exact_match")
    assert table.columns == ("task", "model", "d8", "d9")
    assert [str(cell) for cell in table.rows[0]] == ["add", "one", "90 (83-94)", "10 (6-17)"]
    assert [str(cell) for cell in table.rows[1]] == ["add", "other", "0 (0-4)", ""]


def test_what_was_measured_while_training_is_sorted_out_by_length_and_samples(tmp_path):
    run = Run.open(tmp_path / "run", "a: 1\n")
    assert while_training(run) == {}
    points = {
        n: CurvePoint(step=n // 64, samples=n, task="add", length=8, **vars(curve("add", n8=(n, 200))["add"][8]))
        for n in (64, 128)
    }
    run.append("curve", [point.to_json() for point in points.values()])
    assert while_training(run) == {"add": {8: points}}


def test_runs_with_other_lengths_are_not_averaged():
    with pytest.raises(KeyError):
        across_seeds([curve("add", n8=(1, 2)), curve("add", n9=(1, 2))])
