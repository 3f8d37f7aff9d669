"""Prints what a command found, in its last few lines. Tables are on disk; short ones are printed too."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import rich.console

from lab.drawing.tables import Table, percent
from lab.numbers.statistics import Estimate

LONGEST_TABLE = 20
"""Rows of the longest table that is printed."""

_NAMED = 4
"""How many groups a line names."""


class Console(rich.console.Console):
    """A console that raises BrokenPipeError, as `print` does, if the program that reads the output has ended."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def wide() -> Console:
    """A console for wide tables: in a file or a pipe, it has 200 columns."""
    return Console(width=None if sys.stdout.isatty() else 200)


def show(tables: Sequence[Table], console: Console | None = None) -> None:
    """Print those of the tables that are short enough to be read on a terminal."""
    for table in tables:
        if 0 < len(table.rows) <= LONGEST_TABLE:
            (console or Console()).print(table.terminal())


def end(lines: Sequence[str], folder: Path | str, then: str) -> None:
    """Print what was found, where the run is, and what to do next.

    Args:
        lines: what was found.
        folder: the run directory; notes in brackets may follow its path.
        then: the commands to run next.
    """
    print(*lines, f"run directory: {folder}", f"next: {then}", sep="\n")


def ranked(shares: Mapping[str, Estimate]) -> str:
    """Groups by their share in percent, the highest first: "max 75 (59-86), add 8 (3-22), 0 in 12 others".

    Only a few groups are named; the others are summarized by their highest and lowest share.
    """
    order = sorted(shares, key=lambda name: -shares[name].value)
    above = [name for name in order if shares[name].value > 0][:_NAMED]
    rest = order[len(above) :]
    parts = [f"{name} {percent(shares[name])}" for name in above]
    if len(rest) == 1:
        parts.append(f"{rest[0]} {percent(shares[rest[0]])}")
    elif rest:
        span = sorted({f"{100 * shares[name].value:.0f}" for name in (rest[0], rest[-1])}, key=int)
        parts.append(f"{' to '.join(span)} in {len(rest)}{' others' if above else ' groups, all'}")
    return ", ".join(parts)
