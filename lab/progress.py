"""What a user sees while a job goes on: how far, how fast, how long still, and nothing of the libraries beneath."""

import warnings

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _SpeedColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "")


def progress_bar() -> Progress:
    """Its tasks take a text field `note`."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _SpeedColumn(),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("left  {task.fields[note]}"),
    )


def quiet_libraries() -> None:
    """No warnings of transformers and TRL about each other, no bars of their own."""
    from transformers.utils import logging

    warnings.simplefilter("ignore", FutureWarning)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
