"""What a user sees while a job runs: how much is done, how fast, and how much time is left. Libraries are silenced.

On a terminal, this is a progress bar. In a file, a pipe or a SLURM job, it is a line from time to time, less often as
the job continues.
"""

import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from lab.errors import LabWarning

_FIRST_LINE, _SHARE, _LONGEST_SILENCE = 5.0, 0.1, 300.0
"""Seconds until the first line; the pause before each further line as a share of the elapsed time; its maximum in
seconds."""


def progress_bar() -> "Progress | _Lines":
    """A bar on a terminal or in a notebook, lines elsewhere. A task's `note` is shown until a new note replaces it."""
    console = Console()
    if not (console.is_terminal or console.is_jupyter):
        return _Lines()
    bar = BarColumn(bar_width=None, table_column=Column(ratio=1))
    return Progress(TextColumn("{task.description}"), bar, _StandingColumn(), console=console, expand=True)


def standing(completed: float, total: float | None, speed: float | None, left: float | None, note: str) -> str:
    """The state of a task in a text that is short enough to fit beside a name and a bar in 80 columns.

    Args:
        completed: items that are done.
        total: all items; None if unknown.
        speed: items a second; None if unknown.
        left: seconds until the end; None if unknown.
        note: text to show at the end.
    """
    count = f"{completed:,.0f}" if total is None else f"{completed:,.0f}/{total:,.0f}"
    rate = "" if not speed else f"{speed:.1f}/s" if speed >= 1 else f"{1 / speed:.1f} s each"
    return "  ".join(filter(None, [count, rate, "" if left is None else f"{clock(left)} left", note]))


def clock(seconds: float) -> str:
    """Seconds as hours:minutes:seconds."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


class _StandingColumn(ProgressColumn):
    def __init__(self) -> None:
        super().__init__(Column(no_wrap=True, justify="right"))

    def render(self, task: Task) -> Text:
        left = task.time_remaining if not task.finished else None
        return Text(standing(task.completed, task.total, task.finished_speed or task.speed, left, task.fields["note"]))


class _Lines:
    """Shows one task at a time, as lines."""

    _shown = _completed = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._shown != self._completed:
            self._show()

    def add_task(self, description: str, *, total: float | None, completed: int = 0, note: str = "") -> TaskID:
        self._description, self._total, self._note = description, total, note
        self._completed = self._shown = self._at_first = completed
        self._began = time.monotonic()
        self._next = self._began + _FIRST_LINE
        return TaskID(0)

    def update(self, task_id: TaskID, *, completed: float | None = None, note: str = "") -> None:
        self._completed, self._note = self._completed if completed is None else completed, note or self._note
        now = time.monotonic()
        if now >= self._next:
            self._show()
            self._next = now + min(max(_FIRST_LINE, _SHARE * (now - self._began)), _LONGEST_SILENCE)

    def _show(self) -> None:
        speed = (self._completed - self._at_first) / max(time.monotonic() - self._began, 1e-9)
        left = (self._total - self._completed) / speed if self._total and speed else None
        at_end = self._completed == self._total
        told = standing(self._completed, self._total, speed, None if at_end else left, self._note)
        print(f"{self._description}  {told}", flush=True)
        self._shown = self._completed


@contextmanager
def announced(what: str, after: float = 2.0) -> Iterator[None]:
    """Says on stderr what a user waits for, if the block takes more than `after` seconds."""
    timer = threading.Timer(after, lambda: print(what, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def quiet_libraries() -> None:
    """Turns off the warnings and progress bars of libraries. Call it before importing them: some warn on import."""
    os.environ |= {"HF_DATASETS_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", LabWarning)
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
