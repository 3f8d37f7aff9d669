"""Ranks adders: Markdown, and one HTML file that needs nothing else. Declared adders and foreign Python have a table
each.

Verdicts are kept in the lab's cache, under the bytes of the file and the version of the judge; a file beside an adder
came with it and could be forged. Names and reasons come from untrusted files: they are squeezed into a line and
escaped. Does not import torch.
"""

import csv
import hashlib
import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from jinja2 import Environment

from lab.adders import files
from lab.adders.challenge import source
from lab.adders.verdict import FOREIGN, NOT_EXCLUDED, Verdict, plain
from lab.drawing.tables import Shown, Table
from lab.errors import TaskError
from lab.models.sources import cache_folder
from lab.numbers.statistics import wilson

VERSION = 13
"""Increased when a file could be judged differently than before."""
NOTES = {
    "declared": "The lab built, ran and counted these. Parameters: numbers in tables, the challenge's rule. Numbers: "
    "literal ones too, such as a fixed period. Kind: a convolution's attention weighs alike in all problems, and mean "
    "weights do as well. Seeds: of how many this is the best, according to the file. Smallest first, then earliest.",
    "python": f"{FOREIGN[0].upper()}{FOREIGN[1:]}. {NOT_EXCLUDED}",
}
PUBLISHED = (
    "Counts as their authors published them, collected by hand in 2026; nothing of it was verified here. Several of 57 "
    "and 67 count over 1,200 by the challenge's rule, because their position tables are float buffers."
)
TITLES = {"declared": "The smallest adders", "python": f"Python files, {FOREIGN}"}
COLUMNS = ("rank", "name", "kind", "category", "parameters", "numbers", "right, % (95 %)", "n", "seeds", "verified",
           "objection")  # fmt: skip


def adders(folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """(name, file) of everything below the folders that looks like an adder: Python with the five exports, and JSON or
    YAML with numbers and prompt among its keys. Raises TaskError if there is no such folder."""
    for folder in folders:
        if not folder.is_dir():
            raise TaskError(f"{folder}: there is no such folder")
        for path in sorted(folder.rglob("*")):
            if looks_like_one(path):
                named = path.relative_to(folder)
                named = named.with_suffix("") if named.suffix == ".json" else named
                yield str(named.parent if named.name == "adder" and named.parent.name else named), path


def looks_like_one(path: Path) -> bool:
    try:
        if path.suffix == ".py":
            return bool(source.read(path))
        if not path.is_file() or path.stat().st_size > files.LARGEST.get(path.suffix, -1):
            return False
        text, quote = path.read_text(encoding="utf-8"), '"' if path.suffix == ".json" else ""
        return all(f"{key}{quote}:" in text for key in ("numbers", "prompt"))
    except (TaskError, OSError, ValueError):
        return False


def verdict_of(path: Path, judge: Callable[[Path], Verdict]) -> Verdict:
    """The stored verdict on a file, or a new one, which is stored."""
    if (stored := known(path)) is not None:
        return stored
    verdict, kept = judge(path), _place(path)
    with suppress(OSError):  # if the cache cannot be written, the next call judges again
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(".new")
        fresh.write_text(json.dumps(verdict.plainly(), indent=2) + "\n", encoding="utf-8")
        fresh.replace(kept)
    return verdict


def known(path: Path) -> Verdict | None:
    """The stored verdict on a file, if there is one."""
    try:
        return Verdict.read(json.loads(_place(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _place(path: Path) -> Path:
    digest = hashlib.sha256(f"{VERSION} {path.suffix}\n".encode() + path.read_bytes()).hexdigest()
    return cache_folder() / "verdicts" / f"{digest}.json"


def boards(verdicts: Mapping[str, Verdict]) -> list[tuple[Table, str]]:
    """A table of declared adders and one of Python files, if there are any, and the published records, with their
    notes."""
    shown = []
    for form, title in TITLES.items():
        if own := {name: verdict for name, verdict in verdicts.items() if verdict.form == form}:
            shown.append((_board(own, title), NOTES[form]))
    return [*shown, (published(), PUBLISHED)]


def _board(verdicts: Mapping[str, Verdict], title: str) -> Table:
    """Those that qualify come first, ordered by parameters, then by date."""
    rows = []
    for rank, (name, verdict) in enumerate(sorted(verdicts.items(), key=_order), start=1):
        share = str(Shown(wilson(verdict.right, verdict.problems), "{:.2f} ({:.2f}-{:.2f})", 100))
        kind = verdict.looks.kind if verdict.looks else ""
        counts = ("" if number is None else f"{number:,}" for number in (verdict.parameters, verdict.numbers))
        figures = (*counts, share, f"{verdict.problems:,}", str(verdict.seeds or ""), verdict.verified)
        placed = str(rank) if verdict.qualified else "-"
        rows.append(
            (placed, plain(name, 120), kind, verdict.category, *figures, plain("; ".join(verdict.objections), 120))
        )
    good = frozenset(place for place, row in enumerate(rows) if row[0] != "-")
    return Table(title, COLUMNS, rows, 4, good)


def _order(item: tuple[str, Verdict]) -> tuple:
    name, verdict = item
    size = float("inf") if verdict.parameters is None else verdict.parameters
    return not verdict.qualified, size, verdict.verified, name


def published() -> Table:
    """The records that others have published."""
    columns = ("category", "status", "source", "parameters")
    with Path(__file__).with_name("published.csv").open(newline="") as file:
        rows = [tuple(row[column] for column in columns) for row in csv.DictReader(file)]
    return Table("Published records", columns, rows, 3)


def write(verdicts: Mapping[str, Verdict], folder: Path) -> list[Table]:
    """Writes leaderboard.md and leaderboard.html below `folder`; returns the tables to print."""
    shown = boards(verdicts)
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for table, note in shown:  # viewers of Markdown would render HTML
        rows = [tuple(html.escape(str(cell), quote=False) for cell in row) for row in table.rows]
        parts.append(f"# {table.title}\n\n{table._replace(rows=rows).markdown()}\n{note}\n")
    (folder / "leaderboard.md").write_text("\n".join(parts), encoding="utf-8")
    template = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    page = Environment(autoescape=True).from_string(template).render(shown=shown)
    (folder / "leaderboard.html").write_text(page, encoding="utf-8")
    return [table for table, _ in shown[:-1]]
