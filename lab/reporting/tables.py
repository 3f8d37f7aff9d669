"""One table, three ways out: terminal, Markdown, CSV."""

import csv
import io
from collections.abc import Mapping
from typing import Any, NamedTuple

from rich.table import Table as RichTable

NOT_MEASURED = ""


class Table(NamedTuple):
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    names: int
    """How many columns, from the left, hold names; the rest are figures."""
    better: frozenset[int] = frozenset()
    """Rows to point out on a terminal."""

    def terminal(self) -> RichTable:
        table = RichTable(title=self.title)
        for place, column in enumerate(self.columns):
            table.add_column(column, justify="left" if place < self.names else "right")
        for place, row in enumerate(self.rows):
            table.add_row(*row, style="green" if place in self.better else None)
        return table

    def markdown(self) -> str:
        rule = "|" + "---|" * self.names + "---:|" * (len(self.columns) - self.names)
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.columns, *self.rows)]
        return "\n".join([lines[0], rule, *lines[1:]]) + "\n"

    def csv(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        return text.getvalue()


def percent(estimate: Mapping[str, Any] | None) -> str:
    """A proportion as "42 (27-58)", with its interval, in percent."""
    if estimate is None:
        return NOT_MEASURED
    return "{:.0f} ({:.0f}-{:.0f})".format(*(100 * estimate[name] for name in ("value", "low", "high")))


def number(estimate: Mapping[str, Any] | None) -> str:
    """A mean as "3.2 (2.8-3.7)", with its interval."""
    if estimate is None:
        return NOT_MEASURED
    return "{value:.1f} ({low:.1f}-{high:.1f})".format(**estimate)
