"""Tables that can be printed on a terminal, or written as Markdown or as CSV with every estimate in full."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Table as RichTable
from rich.text import Text

from lab.numbers.statistics import Estimate


class Shown(NamedTuple):
    """An estimate and how it is written: a proportion as "42 (27-58)" in percent, a mean as "3.2 (2.8-3.7)".

    An estimate without a lower bound, such as the mean of a single value, is written without an interval: "3.2".
    """

    estimate: Estimate
    pattern: str
    scale: float

    def __str__(self) -> str:
        value, low, high, _ = self.estimate
        pattern = self.pattern if math.isfinite(low) else self.pattern.partition(" ")[0]
        return pattern.format(*(self.scale * part for part in (value, low, high)))


Entry: TypeAlias = str | Shown

NOT_MEASURED = ""


def percent(estimate: Estimate | None) -> Entry:
    """A proportion in percent, with its interval; NOT_MEASURED for None."""
    return Shown(estimate, "{:.0f} ({:.0f}-{:.0f})", 100) if estimate else NOT_MEASURED


def number(estimate: Estimate | None) -> Entry:
    """A mean with its interval; NOT_MEASURED for None."""
    return Shown(estimate, "{:.1f} ({:.1f}-{:.1f})", 1) if estimate else NOT_MEASURED


def points(estimate: Estimate) -> Entry:
    """A difference of proportions in percentage points, with its sign."""
    return Shown(estimate, "{:+.0f} ({:+.0f} to {:+.0f})", 100)


def probability(p: float) -> str:
    """A p-value as text."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def counted(number: int, noun: str) -> str:
    """A number with its noun, which is in the plural unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Table(NamedTuple):
    """A table of names and figures."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Entry, ...]]
    names: int
    """How many columns, from the left, contain names; the others contain figures."""
    better: frozenset[int] = frozenset()
    """The indices of the rows that are highlighted on a terminal."""

    def terminal(self) -> "OnTerminal":
        """The table for a rich console, fitted to its width."""
        return OnTerminal(self)

    def markdown(self) -> str:
        rule = "|" + "---|" * self.names + "---:|" * (len(self.columns) - self.names)
        lines = [
            "| " + " | ".join(str(cell).replace("|", r"\|") for cell in cells) + " |"
            for cells in (self.columns, *self.rows)
        ]
        return "\n".join([lines[0], rule, *lines[1:]]) + "\n"

    def page(self) -> str:
        """The table as Markdown, below its title."""
        return f"{self.title}\n\n{self.markdown()}"

    def csv(self) -> str:
        """The table as CSV. A column of estimates becomes four columns: the unscaled value, its bounds, and n."""
        estimates = [any(isinstance(row[index], Shown) for row in self.rows) for index in range(len(self.columns))]
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


class OnTerminal:
    """A table on a console.

    If it is wider than the console, it is split into parts between columns of figures. Each part begins with as many
    columns of names as are needed to tell the rows apart. Long names are broken into lines.
    """

    def __init__(self, table: Table) -> None:
        self.table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RichTable]:
        for part, columns in enumerate(self._cut(options.max_width)):
            yield self._part(columns, self.table.title if part == 0 else None)

    def _cut(self, width: int) -> list[list[int]]:
        """The columns of each part, chosen so that everything but names fits on one line."""
        needed = self._needed()
        parts, left = [list(range(self.table.names))], width - self._for_names(needed, self.table.names, width)
        for column in range(self.table.names, len(self.table.columns)):
            if needed[column] > left:
                names = self._telling()
                parts.append(list(range(names)))
                left = width - self._for_names(needed, names, width)
            parts[-1].append(column)
            left -= needed[column]
        return parts

    def _for_names(self, needed: Sequence[int], names: int, width: int) -> int:
        """How many characters names may take before they are broken, plus one for the frame's right edge."""
        return 1 + min(sum(needed[:names]), width // 2)

    def _telling(self) -> int:
        """How many names are needed to tell the rows apart."""
        rows, names = self.table.rows, self.table.names
        return next((count for count in range(1, names) if len({row[:count] for row in rows}) == len(rows)), names)

    def _needed(self) -> list[int]:
        """How many characters each column needs, including its frame."""
        lines = [self.table.columns, *self.table.rows]
        return [3 + max(cell_len(str(line[column])) for line in lines) for column in range(len(self.table.columns))]

    def _part(self, columns: Sequence[int], title: str | None) -> RichTable:
        # Text, because the name of a run must not be read as markup.
        shown = RichTable(title=None if title is None else Text(title))
        for column in columns:
            is_name = column < self.table.names
            justify, overflow = ("left", "fold") if is_name else ("right", "ellipsis")
            shown.add_column(Text(self.table.columns[column]), justify=justify, overflow=overflow, no_wrap=not is_name)
        for index, row in enumerate(self.table.rows):
            cells = (Text(str(row[column])) for column in columns)
            shown.add_row(*cells, style="green" if index in self.table.better else None)
        return shown


def _parts(cell: Entry, wide: bool) -> list[Any]:
    if isinstance(cell, Shown):
        return list(cell.estimate)
    return [cell, "", "", ""] if wide else [cell]
