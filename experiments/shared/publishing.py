"""Where a script writes its tables and figures: beside its runs, never into the repository."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from lab.drawing.tables import Table


def printed(table: Table) -> None:
    """Prints a table as wide as the terminal; in a file or a pipe, it has 160 columns."""
    Console(width=None if sys.stdout.isatty() else 160).print(table.terminal())


class Results(NamedTuple):
    """A folder for tables and figures."""

    folder: Path

    def show(self, table: Table, name: str) -> None:
        """Prints a table, and writes it to <name>.md as Markdown."""
        printed(table)
        self.file(f"{name}.md").write_text(table.page())

    def file(self, name: str) -> Path:
        """The path for a file of that name. Creates the folder and prints the path."""
        self.folder.mkdir(parents=True, exist_ok=True)
        print(f"results: {self.folder / name}")
        return self.folder / name


def beside_runs(arguments: Sequence[str]) -> Results:
    """The folder results/ beside a script's runs.

    Args:
        arguments: the arguments of the script. `output=FOLDER` is the folder of its runs (checkpoints by default).
    """
    given = dict(part.split("=", 1) for part in arguments if "=" in part)
    return Results(Path(given.get("output", "checkpoints")) / "results")
