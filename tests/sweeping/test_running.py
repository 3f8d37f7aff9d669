"""The loop that runs trials, on simulated jobs."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from lab.runs import Run
from lab.sweeping.running import run_trials


@dataclass(eq=False)
class Trial:
    name: str
    finished: bool = False


@dataclass
class Job:
    trial: Trial
    polls: int
    reason: str = ""
    stopped: bool = False

    def failure(self) -> str | None:
        self.polls -= 1
        if self.polls > 0:
            return None
        self.trial.finished = not self.reason
        return self.reason

    def stop(self) -> None:
        self.stopped = True


@dataclass
class Launcher:
    at_once: int
    reasons: dict[str, str] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)

    def start(self, trial: Trial) -> Job:
        assert sum(job.polls > 0 for job in self.jobs) < self.at_once
        self.jobs.append(Job(trial, polls=1 + len(self.jobs) % 3, reason=self.reasons.get(trial.name, "")))
        return self.jobs[-1]


def play(trials: Any, launcher: Any, run: Run) -> list[str]:
    return run_trials(trials, launcher, run)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr("lab.sweeping.running._POLL_SECONDS", 0)
    return Run.open(tmp_path / "sweep", "name: sweep\n")


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_what_is_not_finished_is_run_in_order_so_many_at_a_time_and_a_failure_stops_nothing(run, capsys, at_once):
    trials = [Trial(name, name == "b") for name in "abcd"]
    (run.path / "logs").mkdir()
    (run.path / "logs" / "c.log").write_text("".join(f"line {n}\n" for n in range(100)))
    launcher = Launcher(at_once, {"c": "exit status 1"})
    assert play(trials, launcher, run) == ["c"]
    assert [job.trial.name for job in launcher.jobs] == ["a", "c", "d"]
    printed = capsys.readouterr().out
    assert "a: 0:00:00, finished" in printed
    assert "failed, exit status 1; the end of" in printed
    assert "    line 88\n" in printed
    assert "    line 87\n" not in printed
    assert "2 finished, 0 running, 1 failed, 0 left" in printed


def test_a_process_that_ends_well_without_a_finished_run_has_failed(run, capsys):
    class Forgetful(Job):
        def failure(self) -> str | None:
            return ""

    launcher = Launcher(1)
    launcher.start = lambda trial: Forgetful(trial, 1)  # type: ignore[method-assign]
    assert play([Trial("a")], launcher, run) == ["a"]
    assert "its run directory is not finished" in capsys.readouterr().out


def test_an_interrupt_stops_what_goes_on(run):
    class Interrupted(Job):
        def failure(self) -> str | None:
            raise KeyboardInterrupt

    launcher = Launcher(2)
    jobs: list[Job] = []
    launcher.start = lambda trial: jobs.append(Interrupted(trial, 9)) or jobs[-1]  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        play([Trial("a"), Trial("b"), Trial("c")], launcher, run)
    assert [job.stopped for job in jobs] == [True, True]
