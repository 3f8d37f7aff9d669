"""A script may ask NUPA in several runs; together they give what one run gives."""

import pytest

from experiments.shared import nupa_runs


@pytest.mark.slow
def test_two_runs_of_different_tasks_are_one_run_of_both(toy_model, tmp_path):
    cut = ["engine.model.device=cpu", "benchmark.lengths={hard: [3, 5], easy: [5, 6]}"]

    def asked(name, tasks):
        return nupa_runs.asked(name, str(toy_model), "2", tmp_path, [*cut, f"benchmark.tasks=[{tasks}]"])

    parts = [asked("easy", "max_integer"), asked("hard", "add_integer")]
    whole = asked("both", "add_integer, max_integer")
    assert [one.problem for one in nupa_runs.samples(*parts)] == [one.problem for one in nupa_runs.samples(whole)]
    together = nupa_runs.nupa(whole)
    assert nupa_runs.nupa(*parts) == together
    assert nupa_runs.nupa(asked("both", "sub_integer")) == together  # a finished run is not asked again
