"""The page of one run: its result, tables, figures and error, and how it was run."""

import json
import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markdown_it import MarkdownIt

from lab.benchmarks import compare
from lab.benchmarks.results import read_summary
from lab.drawing.tables import percent
from lab.errors import RunError
from lab.runs import leaves
from lab.site.gather import Record
from lab.site.overview import Scores
from lab.sweeping.processes import last_lines

_TABLES = MarkdownIt("zero").enable("table")
"""Renders tables only: links, images and HTML stay text."""

LARGEST_TABLE = 200_000
"""Maximum number of characters in a table that is shown; longer tables are only on disk."""
PICTURES = (".png", ".svg")


def of(name: str, record: Record, scores: Scores, folder: Path) -> dict[str, Any]:
    """What the page of a run shows. Copies the run's figures to `folder`/<name>/figures, and a probe's own page."""
    probed = record.run.path / "page.html"
    if probed.is_file():
        linked(probed, folder / name / "page.html")
    return {
        "found": _found(record),
        "scores": [[label, str(percent(found)), found.n] for label, found in scores.items()],
        "error": _error(record),
        "tables": _tables(record),
        "figures": _figures(name, record, folder),
        "page": f"{name}/page.html" if probed.is_file() else None,
        "config": record.config_text,
        "settings": {key: _shown(value) for key, value in leaves(record.config) if key},
        "command": _text(record.run.path / "command.txt"),
        "environment": _text(record.run.path / "environment.json"),
    }


def linked(source: Path, to: Path) -> None:
    """A copy that takes no space where the file system has hard links; a run replaces its files as a whole."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, to)
    except OSError:
        shutil.copyfile(source, to)


def _found(record: Record) -> list[str]:
    """The lines that the command printed at its end, or the progress of a run that is still running."""
    if record.status == "running":
        return _progress(record)
    if not record.summary:
        return []
    try:
        parts = compare.by_benchmark(read_summary(record.run), record.name)
        return [line for kind, found in parts.items() for line in compare.in_short(kind, found)]
    except (RunError, ValueError):
        return []  # from another version, or of a command that asks no problems: a probe, a sweep, an adder


def _progress(record: Record) -> list[str]:
    """The last step that was logged, and its loss."""
    steps = (record.config.get("training") or {}).get("max_steps")
    for line in reversed(_text(record.run.path / "metrics.jsonl").splitlines()):
        try:
            told = json.loads(line)
            step, loss = int(told["step"]), float(told["loss"])
        except (ValueError, KeyError, TypeError):
            continue  # the record of a validation, or a line that is still being written
        return [f"step {step:,}{f' of {steps:,}' if isinstance(steps, int) else ''}, loss {loss:.3f}"]
    return []


def _shown(setting: Any) -> str:
    return json.dumps(setting, default=str) if isinstance(setting, list) else str(setting)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _error(record: Record) -> str:
    """The last lines of the log of a run that did not finish, if a sweep beside it has its log."""
    if record.status == "finished":
        return ""
    logs = sorted(record.run.path.parent.glob(f"*/logs/{record.run.path.name}.log"))
    return last_lines(logs[-1]) if logs else ""


def _tables(record: Record) -> list[tuple[str, str]]:
    """The name and the HTML of each of the run's Markdown files."""
    files = [*sorted(record.run.path.glob("*.md")), *sorted(record.run.path.glob("tables/*.md"))]
    texts = [(path.relative_to(record.run.path).as_posix(), _text(path)) for path in files]
    return [(name, _TABLES.render(text)) for name, text in texts if len(text) <= LARGEST_TABLE]


def _figures(name: str, record: Record, folder: Path) -> list[str]:
    """Copies the run's figures, each as PNG or else as SVG, and returns the addresses of the copies."""
    files = (record.run.path / "figures").glob("*")
    found = sorted(files, key=lambda path: (path.stem != "exact_match", path.stem, path.suffix))
    pictures = list({path.stem: path for path in reversed(found) if path.suffix in PICTURES}.values())[::-1]
    for path in pictures:
        linked(path, folder / name / "figures" / path.name)
    return [f"{name}/figures/{quote(path.name)}" for path in pictures]
