"""What the page of one run shows: its result, tables, figures and error, then how it was run."""

import shutil
from pathlib import Path
from urllib.parse import quote

from markdown_it import MarkdownIt

from lab.drawing.tables import percent
from lab.site.gather import Record
from lab.site.overview import Scores
from lab.site.scripts import write_script
from lab.sweeping.processes import last_lines

_TABLES = MarkdownIt("zero").enable("table")
"""Tables and nothing else: links, images and HTML are text."""

LARGEST_TABLE = 200_000
"""Characters: what is longer is only on disk."""
PICTURES = (".png", ".svg")


def write(name: str, record: Record, scores: Scores, folder: Path) -> None:
    """Write the side file `folder`/<name>/run.js, and copy the run's figures below it."""
    said = {
        "scores": [[label, str(percent(found)), found.n] for label, found in scores.items()],
        "error": _error(record),
        "tables": _tables(record),
        "figures": _figures(name, record, folder),
        "config": record.config_text,
        "command": _text(record.run.path / "command.txt"),
        "environment": _text(record.run.path / "environment.json"),
    }
    write_script(f"{name}/run", said, folder)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _error(record: Record) -> str:
    """The last lines of a run that did not finish, if a sweep beside it kept its log."""
    if record.status == "finished":
        return ""
    logs = sorted(record.run.path.parent.glob(f"*/logs/{record.run.path.name}.log"))
    return last_lines(logs[-1]) if logs else ""


def _tables(record: Record) -> list[tuple[str, str]]:
    """(file name, HTML) of the run's Markdown files."""
    files = [*sorted(record.run.path.glob("*.md")), *sorted(record.run.path.glob("tables/*.md"))]
    texts = [(path.relative_to(record.run.path).as_posix(), _text(path)) for path in files]
    return [(name, _TABLES.render(text)) for name, text in texts if len(text) <= LARGEST_TABLE]


def _figures(name: str, record: Record, folder: Path) -> list[str]:
    """Addresses of the copies."""
    pictures = [path for path in sorted((record.run.path / "figures").glob("*")) if path.suffix in PICTURES]
    for path in pictures:
        (folder / name / "figures").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name / "figures" / path.name)
    return [f"{name}/figures/{quote(path.name)}" for path in pictures]
