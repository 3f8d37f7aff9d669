"""Writes the site, as a whole or not at all: a page with its scripts and styles, and the files that it loads on demand.

index.html            the page; it holds nothing of the runs
written.js            this version's name: as long as a run is active, the page checks whether there is a newer one
<version>/            what this version loads, so that a page that is still open never shows files of a later version:
  plotly.min.js ...   what draws charts and tables
  index.js            what the page needs to know of all runs: tasks, metrics, and the number of parts
  index/<k>.js        the overview in parts: a row for each run
  runs/<n>/           how run n was run, its scores, tables and training; its figures and its samples
"""

import secrets
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from lab.benchmarks.length_curves.tables import METRIC_NAMES
from lab.benchmarks.nupa.summary import RANGES
from lab.errors import RunError
from lab.runs import put_in_place
from lab.site import overview, run_page, samples, series, training
from lab.site.gather import Record
from lab.site.scripts import write_script
from lab.text.answers import ALL_READINGS

MARK = '<meta name="generator" content="the number lab">'
"""Marks a site of the lab, which may be replaced. A folder without this mark is never changed."""

SCRIPTS = ("data", "elements", "text", "charts", "performance", "samples", "compare", "training", "runs", "main")
VENDORED = ("tabulator.min.js", "tabulator_simple.min.css")
ROWS = 500
"""The number of rows of the overview in a part of the index."""


def write(records: Sequence[Record], out: Path) -> Path:
    """Writes the site as a whole, or not at all, and returns the path of its page.

    Args:
        records: the runs to show.
        out: the folder of the site.

    Raises RunError, without writing anything, unless `out` is absent, an empty folder, or a site of the lab.
    """
    check(out)
    out = out.resolve()
    try:
        with put_in_place(out, replace=True) as staged:
            version = secrets.token_hex(4)
            write_script("written", version, staged)
            _write_version(records, staged / version)
            (staged / "index.html").write_text(page(version), encoding="utf-8")
            check(out)
    except OSError as error:
        raise RunError(f"{out}: {error.strerror or error}") from error
    return out / "index.html"


def check(out: Path) -> None:
    """Raises RunError unless `out` is absent, an empty folder, or a site of the lab."""
    if not out.exists():
        return
    if not out.is_dir():
        raise RunError(f"{out}: is a file; give the folder of a site, or a name that is not in use")
    try:
        written = out / "index.html"
        ours = written.is_file() and MARK in written.read_text(encoding="utf-8", errors="replace")[:1000]
        free = ours or not any(out.iterdir())
    except OSError as error:
        raise RunError(f"{out}: {error.strerror}") from error
    if not free:
        raise RunError(f"{out}: is not a site of the lab (its index.html is missing or different), so it is left alone")


def page(version: str) -> str:
    """The HTML of the page."""
    parts = {
        "mark": MARK,
        "version": version,
        "style": files("lab.drawing").joinpath("page.css").read_text(encoding="utf-8") + _text("site.css"),
        "script": "\n".join(_text(f"{name}.js") for name in SCRIPTS),
    }
    html = _text("index.html")
    for name, text in parts.items():
        html = html.replace(f"<<{name}>>", text)
    return html


def plain(text: object) -> str:
    """The text with every invisible character replaced by its code."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in str(text))


def _write_version(records: Sequence[Record], folder: Path) -> None:
    rows = [_write_run(number, record, folder) for number, record in enumerate(records)]
    folds = [fold.shown() for fold in overview.fold(rows)]
    parts = [folds[start : start + ROWS] for start in range(0, len(folds), ROWS)]
    for number, part in enumerate(parts):
        write_script(f"index/{number}", part, folder)
    running = any(record.status == "running" for record in records)
    write_script("index", {**_constants(), "parts": len(parts), "running": running}, folder)
    for name in VENDORED:
        folder.joinpath(name).write_bytes(files("lab.site").joinpath("vendor", name).read_bytes())
    folder.joinpath("plotly.min.js").write_bytes(files("plotly").joinpath("package_data/plotly.min.js").read_bytes())


def _constants() -> dict[str, Any]:
    return {
        "metrics": METRIC_NAMES,
        "ranges": RANGES,
        "readings": ALL_READINGS,
        "outcomes": samples.OUTCOMES,
        "quantities": training.QUANTITIES,
        "tasks": series.task_rows(),
        "published": [one.shown() for one in series.published()],
    }


def _write_run(number: int, record: Record, folder: Path) -> overview.Row:
    """Writes all files of a run, and returns its row in the overview."""
    name, found = f"runs/{number}", list[series.Series]()
    with record.noting("summary.json"):
        found = series.of_record(record)
    sets = [said for path in _sample_files(record) if (said := _write_samples(name, record, path, folder))]
    row = overview.row(number, record, found, [said[:-1] for said in sets])
    said = run_page.of(name, record, row.scores, folder)
    curves = training.of_record(record)
    row.trained = any(curves.values())
    shown = [one.shown() for one in found]
    outcomes = {label: counts for label, *_, counts in sets}
    write_script(f"{name}/run", {**said, "series": shown, "training": curves, "outcomes": outcomes}, folder)
    return row


def _sample_files(record: Record) -> list[Path]:
    """The samples files of a run, with those before a training first."""
    return sorted(record.run.path.glob("samples*.jsonl"), key=lambda path: ("before" not in path.stem, path.stem))


def _write_samples(name: str, record: Record, path: Path, folder: Path) -> tuple[Any, ...] | None:
    """Writes the side files of a samples file. Returns its label, its folder, its number of samples, the digest of its
    problems, and its outcomes; None if it has no samples."""
    benchmark = (record.config.get("benchmark") or {}).get("kind", "")
    with record.noting(path.name):
        said = samples.write(f"{name}/{path.stem}", record.run.read(path.stem), folder, benchmark)
        if said:
            record.notes += [f"{path.name}: {note}" for note in said.notes]
            part = path.stem.removeprefix("samples").strip("_").replace("_", " ")
            label = f"{record.name}, {part}" if part else record.name
            return label, f"{name}/{path.stem}", said.n, said.problems, said.outcomes
    return None


def _text(name: str) -> str:
    return files("lab.site").joinpath("templates", name).read_text(encoding="utf-8")
