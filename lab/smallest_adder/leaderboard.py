"""The leaderboard of small adders, from verdicts on disk: Markdown, and one HTML file that needs nothing else.

A verdict is what lab/smallest_adder/stored_verdicts.py keeps. Names and reasons come from untrusted files: they are
squeezed into a line and escaped.
"""

import csv
import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment

from lab.drawing.tables import Shown, Table
from lab.numbers.statistics import wilson
from lab.smallest_adder.verdict import plain

Verdict = Mapping[str, Any]

NOTE = (
    "Parameters: distinct storage elements of all parameters and of non-boolean buffers, the challenge's rule. "
    "Literals: different numbers in the code of a pass, less those that everybody knows; they do not rank. "
    "Tokens: the most that an attention weight changes from one problem to another; at 0, attention depends on "
    "position alone and is a fixed causal convolution. Every verdict draws its own problems. "
    "Seeds: how many were trained, according to the file, of which this one is the best. "
    "Papers: parameters without buffers. Submissions that qualify come first, smallest first, then earliest. "
    "A verdict does not say that the numbers were learned."
)
SOURCE = (
    "Counts as their authors published them, collected by hand in 2026; nothing of it was verified here. Several of 57 "
    "and 67 count over 1,200 by the rule above, because their position tables are float buffers."
)

TEMPLATE = Path(__file__).with_suffix(".html")
COLUMNS = ("rank", "name", "category", "layers", "parameters", "literals", "right, % (95 %)", "n", "tokens", "seeds",
           "papers", "trainable", "bits", "by data_ptr", "verified")  # fmt: skip


def board(verdicts: Mapping[str, Verdict]) -> Table:
    """The table of verdicts, given by name: those that qualify come first, ordered by parameters, then by date."""
    rows = []
    for rank, (name, verdict) in enumerate(sorted(verdicts.items(), key=_order), start=1):
        counts, n = verdict["counts"] or {}, verdict["problems"]
        size, literals, *others = (
            f"{counts[key]:,}" if counts else ""
            for key in ("parameters", "literals", "buffers_free", "trainable", "bits", "by_data_ptr")
        )
        share = str(Shown(wilson(verdict["right"], n), "{:.2f} ({:.2f}-{:.2f})", 100)) if n else ""
        looks = "" if verdict["content"] is None else f"{verdict['content']:.4f}"
        seeds = str(verdict["seeds"] or "")
        named = (str(rank) if verdict["qualified"] else "-", plain(name, 120), verdict["category"], _layers(verdict))
        figures = (size, literals, share, f"{n:,}", looks, seeds, *others)
        rows.append((*named, *figures, verdict["verified"]))
    good = frozenset(place for place, row in enumerate(rows) if row[0] != "-")
    return Table("The smallest transformer that adds two 10-digit integers", COLUMNS, rows, 4, good)


def published() -> Table:
    """The records that others have published."""
    columns = ("category", "status", "source", "parameters")
    with Path(__file__).with_name("published.csv").open(newline="") as file:
        rows = [tuple(row[column] for column in columns) for row in csv.DictReader(file)]
    return Table("Published records", columns, rows, 3)


def write(verdicts: Mapping[str, Verdict], folder: Path) -> Table:
    """Write leaderboard.md and leaderboard.html below `folder`; returns the table to print."""
    shown = ((board(verdicts), NOTE), (published(), SOURCE))
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for table, note in shown:  # viewers of Markdown would render HTML
        rows = [tuple(html.escape(str(cell), quote=False) for cell in row) for row in table.rows]
        parts.append(f"# {table.title}\n\n{table._replace(rows=rows).markdown()}\n{note}\n")
    (folder / "leaderboard.md").write_text("\n".join(parts), encoding="utf-8")
    page = Environment(autoescape=True).from_string(TEMPLATE.read_text(encoding="utf-8")).render(shown=shown)
    (folder / "leaderboard.html").write_text(page, encoding="utf-8")
    return shown[0][0]


def _order(item: tuple[str, Verdict]) -> tuple:
    name, verdict = item
    size = verdict["counts"]["parameters"] if verdict["counts"] else float("inf")
    return not verdict["qualified"], size, verdict["verified"], name


def _layers(verdict: Verdict) -> str:
    passed = sum(layer["passed"] is True for layer in verdict["verdicts"])
    failed = ", ".join(layer["layer"] for layer in verdict["verdicts"] if layer["passed"] is False)
    return f"{passed} of {len(verdict['verdicts'])}" + (f"; failed: {failed}" if failed else "")
