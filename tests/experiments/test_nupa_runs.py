"""A script may ask NUPA in several runs; together they give what one run gives."""

import pytest

from experiments.shared import nupa_runs
from lab.errors import RunError


@pytest.mark.slow
def test_two_runs_of_different_tasks_are_one_run_of_both_and_a_finished_run_answers_nothing_else(toy_model, tmp_path):
    cut = ["engine.model.device=cpu", "benchmark.lengths={hard: [3, 5], easy: [5, 6]}"]

    def asked(name, tasks, problems="2"):
        return nupa_runs.asked(name, str(toy_model), problems, tmp_path, [*cut, f"benchmark.tasks=[{tasks}]"])

    parts = [asked("easy", "max_integer"), asked("hard", "add_integer")]
    whole = asked("both", "add_integer, max_integer")
    assert [one.problem for one in nupa_runs.samples(*parts)] == [one.problem for one in nupa_runs.samples(whole)]
    together = nupa_runs.nupa(whole)
    assert nupa_runs.nupa(*parts) == together
    answers = (whole.path / "samples.jsonl").stat().st_mtime_ns
    assert nupa_runs.nupa(asked("both", "add_integer, max_integer")) == together
    assert (whole.path / "samples.jsonl").stat().st_mtime_ns == answers
    with pytest.raises(RunError, match=r"both: cannot resume with another config: benchmark\.tasks was"):
        asked("both", "sub_integer")
    with pytest.raises(RunError, match=r"benchmark\.problems_per_range was 2, is 3"):
        asked("both", "add_integer, max_integer", "3")
