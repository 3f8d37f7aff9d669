"""The runner of scripts that measure: settings x seeds x questions, one row each, in a file that is also the result."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from experiments.rendering.rows import Row, Rows, read_rows
from lab.drawing.tables import Table
from lab.errors import RunError

Cell = Mapping[str, object]


def measured(file: Path, cells: Iterable[Cell], measure: Callable[..., Cell]) -> Rows:
    """The rows of a results file, after everything that it lacks has been measured.

    The file is written after each cell, so a script that was stopped goes on where it was.

    Args:
        file: the results file (experiments/rendering/rows.py says what its columns mean). It may not exist yet.
        cells: the settings to measure, each with a value for the same columns.
        measure: takes the settings of a cell as keywords, and returns what was measured, by column.

    Raises RunError if the file has other columns.
    """
    rows = list(read_rows(file).rows) if file.is_file() else []
    known = {tuple(row.items()) for row in rows}
    for cell in cells:
        settings = {name: str(value) for name, value in cell.items()}
        if any(set(settings.items()) <= set(row) for row in known):
            continue
        row = {**settings, **{name: str(value) for name, value in measure(**cell).items()}}
        if rows and tuple(row) != tuple(rows[0]):
            raise RunError(f"{file}: its columns should be {', '.join(row)}; remove the file to measure again")
        rows.append(row)
        _write(file, rows)
        print(*row.values(), sep=", ", flush=True)
    return read_rows(file)


def as_table(rows: Rows, title: str) -> Table:
    """The rows as a table."""
    return Table(title, rows.columns, [tuple(row.values()) for row in rows.rows], names=len(rows.columns))


def _write(file: Path, rows: list[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}")
    temporary.write_text(text.getvalue(), encoding="utf-8")
    temporary.replace(file)
