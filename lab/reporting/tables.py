"""Summaries as tables: for the terminal and as Markdown."""

from typing import Any, NamedTuple

from rich.table import Table

from lab.numbers.tasks import TASKS


class Change(NamedTuple):
    """One task in one range, before and after tuning: exact match, strict reading, with its interval."""

    task: str
    representation: str
    range: str
    lengths: str
    n: int
    before: dict[str, float]
    after: dict[str, float]


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """Rows in the order of the task table; both summaries are of the same problems."""
    rows = []
    for key, task in TASKS.items():
        for name, figures in before.get(key, {"ranges": {}})["ranges"].items():
            shortest, longest = figures["lengths"]
            old, new = (part[key]["ranges"][name]["exact_match_strict"] for part in (before, after))
            lengths = f"{shortest}-{longest}" if shortest < longest else str(shortest)
            rows.append(Change(task.name, task.representation.name, name, lengths, old["n"], old, new))
    return rows


def _percent(estimate: dict[str, float]) -> str:
    return "{value:.0f} ({low:.0f}-{high:.0f})".format(
        **{name: 100 * estimate[name] for name in ("value", "low", "high")}
    )


_COLUMNS = ("task", "representation", "range", "digits", "n", "before % (95 %)", "after % (95 %)")


def _cells(row: Change) -> tuple[str, ...]:
    return row.task, row.representation, row.range, row.lengths, str(row.n), _percent(row.before), _percent(row.after)


def terminal(rows: list[Change], title: str) -> Table:
    table = Table(title=title)
    for place, column in enumerate(_COLUMNS):
        table.add_column(column, justify="left" if place < 3 else "right")
    for row in rows:
        better = row.after["low"] > row.before["high"]
        table.add_row(*_cells(row), style="green" if better else None)
    return table


def markdown(rows: list[Change]) -> str:
    lines = ["| " + " | ".join(_COLUMNS) + " |", "|---|---|---|" + "---:|" * 4]
    return "\n".join(lines + ["| " + " | ".join(_cells(row)) + " |" for row in rows]) + "\n"
