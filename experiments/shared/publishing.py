"""Where a script writes its tables and figures: beside its runs, or in the repository if it is asked to."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from shared.arguments import true_or_false

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


def take_results(arguments: Sequence[str], repository: Path) -> tuple[Results, list[str]]:
    """Where a script writes its results, and its arguments without `publish`.

    Args:
        arguments: the arguments of the script. `output=FOLDER`, which stays among them, is the folder of its runs
            (checkpoints by default). Results go to FOLDER/results, or with `publish=true` to `repository`.
        repository: the folder of committed results, which a run with other settings must not overwrite.

    Raises ConfigError if `publish` is neither true nor false.
    """
    given = dict(part.split("=", 1) for part in arguments if "=" in part)
    publish = true_or_false(given, "publish", False)
    beside = Path(given.get("output", "checkpoints")) / "results"
    rest = [part for part in arguments if not part.startswith("publish=")]
    return Results(repository if publish else beside), rest
