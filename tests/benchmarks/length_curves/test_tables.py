import pytest

from lab.benchmarks.length_curves.tables import across_seeds, exact_match_table, together, while_training
from lab.numbers.statistics import student_mean, wilson


def curve(task: str, **exact: tuple[int, int]) -> dict:
    """n8=(90, 100): 90 of 100 are right at 8 digits."""
    lengths = {}
    for name, (right, asked) in exact.items():
        other = {"value": 0.5, "low": 0.4, "high": 0.6, "n": asked}
        lengths[name[1:]] = {"exact_match": wilson(right, asked)._asdict(), "digit_match": other, "dlength": other}
    return {task: lengths}


def test_seeds_that_differ_have_students_interval_and_seeds_that_agree_that_of_all_their_problems():
    curves = across_seeds([curve("add", n8=(100, 100), n9=(100, 100)), curve("add", n8=(100, 100), n9=(0, 100))])
    agreed, differing = curves["add"]["8"]["exact_match"], curves["add"]["9"]["exact_match"]
    assert agreed == {"value": 1, "low": wilson(200, 200).low, "high": 1, "n": 2}
    assert differing == {**student_mean([1, 0], 0, 1)._asdict()}
    assert (differing["low"], differing["high"]) == (0, 1)
    one = curve("add", n8=(90, 100))
    assert across_seeds([one]) == one


def test_a_table_has_a_column_a_length_and_leaves_out_what_was_not_measured():
    runs = [curve("add", n8=(90, 100), n9=(10, 100)), curve("max", n8=(100, 100))]
    table = exact_match_table({"one": together(runs), "other": together([curve("add", n8=(0, 100)), runs[1]])}, "t")
    assert table.columns == ("task", "model", "d8", "d9")
    assert [str(cell) for cell in table.rows[0]] == ["add", "one", "90 (83-94)", "10 (6-17)"]
    assert [str(cell) for cell in table.rows[1]] == ["add", "other", "0 (0-4)", ""]


def test_what_was_measured_while_training_is_sorted_out_by_length_and_samples():
    rows = [{"task": "add", "length": 8, "samples": n, "exact_match": {"value": n}} for n in (64, 128)]
    assert {n: row["exact_match"]["value"] for n, row in while_training(rows)["add"]["8"].items()} == {64: 64, 128: 128}
    assert while_training([]) == {}


def test_runs_with_other_lengths_are_not_averaged():
    with pytest.raises(KeyError):
        across_seeds([curve("add", n8=(1, 2)), curve("add", n9=(1, 2))])
