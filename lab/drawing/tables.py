"""One table, three ways out: terminal, Markdown, and CSV with every estimate in full."""

import csv
import io
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from rich.table import Table as RichTable
from rich.text import Text

from lab.numbers.statistics import Estimate, student_mean


class Shown(NamedTuple):
    """An estimate and how it is written: a proportion as "42 (27-58)" in percent, a mean as "3.2 (2.8-3.7)"."""

    estimate: Estimate
    pattern: str
    scale: float

    def __str__(self) -> str:
        return self.pattern.format(*(self.scale * part for part in self.estimate[:3]))


Cell: TypeAlias = str | Shown

NOT_MEASURED = ""


def percent(estimate: Estimate | None) -> Cell:
    return Shown(estimate, "{:.0f} ({:.0f}-{:.0f})", 100) if estimate else NOT_MEASURED


def number(estimate: Estimate | None) -> Cell:
    return Shown(estimate, "{:.1f} ({:.1f}-{:.1f})", 1) if estimate else NOT_MEASURED


class Table(NamedTuple):
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    names: int
    """How many columns, from the left, hold names; the rest are figures."""
    better: frozenset[int] = frozenset()
    """Rows to point out on a terminal."""

    def terminal(self) -> RichTable:
        # As Text: the name of a run is no markup.
        table = RichTable(title=Text(self.title))
        for place, column in enumerate(self.columns):
            table.add_column(Text(column), justify="left" if place < self.names else "right")
        for place, row in enumerate(self.rows):
            table.add_row(*(Text(str(cell)) for cell in row), style="green" if place in self.better else None)
        return table

    def markdown(self) -> str:
        rule = "|" + "---|" * self.names + "---:|" * (len(self.columns) - self.names)
        lines = [
            "| " + " | ".join(str(cell).replace("|", r"\|") for cell in cells) + " |"
            for cells in (self.columns, *self.rows)
        ]
        return "\n".join([lines[0], rule, *lines[1:]]) + "\n"

    def csv(self) -> str:
        """A column of estimates becomes four, of the unscaled value, its bounds, and n."""
        estimates = [any(isinstance(row[place], Shown) for row in self.rows) for place in range(len(self.columns))]
        header = [
            name
            for column, wide in zip(self.columns, estimates, strict=True)
            for name in ([f"{column} {part}" for part in Estimate._fields] if wide else [column])
        ]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        for row in self.rows:
            writer.writerow([part for cell, wide in zip(row, estimates, strict=True) for part in _parts(cell, wide)])
        return text.getvalue()


def _parts(cell: Cell, wide: bool) -> list[Any]:
    if isinstance(cell, Shown):
        return list(cell.estimate)
    return [cell, "", "", ""] if wide else [cell]


def difference(values: Sequence[float]) -> Cell:
    """Mean of differences between shares, in points, with Student's interval over seeds that see the same problems; one
    seed has none."""
    found = student_mean(values)
    return Shown(found, "{:+.1f} ({:+.1f} to {:+.1f})" if found.n > 1 else "{:+.1f}", 100)
