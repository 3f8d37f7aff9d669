"""Runs the trials of a sweep, several at a time, and reports progress."""

import time
from collections import deque
from collections.abc import Iterable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from lab.errors import RunError
from lab.progress import clock
from lab.runs import Run
from lab.sweeping.cells import Trial
from lab.sweeping.launchers import Job, Launcher
from lab.sweeping.processes import last_lines, log_of

_POLL_SECONDS = 0.2


def run_trials(trials: Iterable[Trial], launcher: Launcher, run: Run) -> list[str]:
    """Runs all trials that are not finished, in order. A failure does not stop the others.

    Args:
        trials: the trials of the sweep.
        launcher: what starts them.
        run: the sweep's run directory, where logs are kept.

    Returns the names of the trials that failed.
    """
    todo = deque(trial for trial in trials if not trial.finished)
    going: dict[Trial, tuple[Job, float]] = {}
    failed: list[str] = []
    finished = 0
    if not todo:
        return []
    with _progress() as progress:
        bar = progress.add_task("", total=len(todo))
        try:
            while todo or going:
                while todo and len(going) < launcher.at_once:
                    trial = todo.popleft()
                    going[trial] = launcher.start(trial), time.monotonic()
                for trial, (job, start) in list(going.items()):
                    reason = job.failure()
                    if reason is None:
                        continue
                    del going[trial]
                    reason = reason or _unfinished(trial)
                    took = f"{trial.name}: {clock(time.monotonic() - start)}"
                    if reason:
                        failed.append(trial.name)
                        log = log_of(run, trial.name)
                        progress.console.print(Text(f"{took}, failed, {reason}; the end of {log}:", "red"))
                        progress.console.print(Text(last_lines(log)), highlight=False)
                    else:
                        finished += 1
                        progress.console.print(Text(f"{took}, finished"))
                now = f"{finished} finished, {len(going)} running, {len(failed)} failed, {len(todo)} left"
                progress.update(bar, completed=finished + len(failed), description=now)
                if going:
                    time.sleep(_POLL_SECONDS)
        finally:
            for job, _ in going.values():
                job.stop()
    return failed


def _unfinished(trial: Trial) -> str:
    """What is wrong with a run whose process succeeded; empty if nothing is."""
    try:
        return "" if trial.finished else "its run directory is not finished"
    except RunError as error:
        return str(error)


def _progress() -> Progress:
    return Progress(
        BarColumn(10),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        speed_estimate_period=float("inf"),  # a run may take hours
        console=Console(),  # a library may have silenced rich's default console
    )
