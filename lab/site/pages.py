"""Writes the site, as a whole or not at all: one page with its scripts, styles and aggregates, and side files.

index.html            everything except what is loaded on demand
written.js            this version's name: as long as a run is active, the page checks whether there is a newer one
<version>/            what this version loads, so that a page that is still open never shows files of a later version:
  runs/<n>/*.js       how run n was run, its tables, its training, scores by length, its samples
  runs/<n>/figures/   the figures of run n
  probing/<n>.html    the page of a probing run: figures and attention patterns
  experiments/*       the figures of the findings
"""

import secrets
import shutil
from collections.abc import Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from lab.adders import leaderboard as adders
from lab.adders.leaderboard import known
from lab.benchmarks.cost import tables as cost
from lab.benchmarks.length_curves.tables import METRIC_NAMES
from lab.benchmarks.nupa.summary import RANGES
from lab.benchmarks.results import CostSummary
from lab.drawing.tables import Table, counted, percent
from lab.errors import RunError
from lab.runs import put_in_place
from lab.site import overview, run_page, samples, series, training
from lab.site.findings import Article, entries
from lab.site.gather import Record
from lab.site.overview import Best, Fold
from lab.site.scripts import as_json, write_script
from lab.text.answers import ALL_READINGS

MARK = '<meta name="generator" content="the number lab">'
"""Marks a site of the lab, which may be replaced. A folder without this mark is never changed."""

SCRIPTS = ("data", "elements", "address", "saving", "text", "charts", "choosers", "performance", "heatmap", "errors")
SCRIPTS += ("samples", "compare", "training", "runs", "refresh", "main")


class Shown(NamedTuple):
    """The content of the page itself: data for its charts, and finished tables."""

    data: dict[str, Any]
    records: list[Record]
    overview: list[Fold]
    best: list[Best]
    costs: list[tuple[str, list[Table]]]
    boards: list[tuple[Table, str]]
    probing: list[Record]
    findings: list[Article]

    @property
    def groups(self) -> list[tuple[str, list[Article]]]:
        """The findings by group, in the order in which the page shows them."""
        return [(name, list(found)) for name, found in groupby(self.findings, lambda one: one.finding.group)]


def write(records: Sequence[Record], out: Path, log: Path) -> Path:
    """Writes the site as a whole, or not at all, and returns the path of its page.

    Args:
        records: the runs to show.
        out: the folder of the site.
        log: the folder of experiments.

    Raises RunError, without writing anything, unless `out` is absent, an empty folder, or a site of the lab.
    """
    check(out)
    out = out.resolve()
    try:
        with put_in_place(out, replace=True) as staged:
            page = render(collect(records, log, staged))
            (staged / "index.html").write_text(page, encoding="utf-8", errors="backslashreplace")
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
        page = out / "index.html"
        ours = page.is_file() and MARK in page.read_text(encoding="utf-8", errors="replace")[:1000]
        free = ours or not any(out.iterdir())
    except OSError as error:
        raise RunError(f"{out}: {error.strerror}") from error
    if not free:
        raise RunError(f"{out}: is not a site of the lab (its index.html is missing or different), so it is left alone")


def collect(records: Sequence[Record], log: Path, folder: Path) -> Shown:
    """Writes the side files below `folder`, and returns what the page itself shows."""
    written = secrets.token_hex(4)
    write_script("written", written, folder)
    folder = folder / written
    folder.mkdir()
    running = any(record.status == "running" for record in records)
    data: dict[str, Any] = {"runs": [], "series": [], "sets": [], "written": written, "running": running}
    shown = Shown(data, list(records), [], [], [], _boards(records, log), [], entries(log, folder))
    scored = [_write_run(number, record, shown, folder) for number, record in enumerate(records)]
    shown.overview.extend(overview.fold([row for row, _ in scored]))
    shown.best.extend(overview.best(scored))
    data["series"] += [_entry(found, None) for found in series.published()]
    return shown


def render(shown: Shown) -> str:
    """The HTML of the page."""
    from jinja2 import Environment, FunctionLoader

    room = files("lab.site").joinpath("templates")
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(lambda name: _text(room, name))
    )
    environment.filters |= {"plain": plain, "counted": counted, "percent": percent}
    constants = {
        "metrics": [{"key": key, "name": name} for key, name in METRIC_NAMES.items()],
        "ranges": RANGES,
        "readings": ALL_READINGS,
        "outcomes": samples.OUTCOMES,
        "quantities": training.QUANTITIES,
        "tasks": series.task_rows(),
    }
    return environment.get_template("index.html").render(
        mark=MARK,
        style=files("lab.drawing").joinpath("page.css").read_text(encoding="utf-8") + _text(room, "site.css"),
        script="\n".join(_text(room, f"{name}.js") for name in SCRIPTS),
        data=as_json({**constants, **shown.data}),
        shown=shown,
    )


def plain(text: object) -> str:
    """The text with every invisible character replaced by its code."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in str(text))


def _text(room: Any, name: str) -> str:
    return room.joinpath(name).read_text(encoding="utf-8")


def _write_run(number: int, record: Record, shown: Shown, folder: Path) -> tuple[overview.Row, list[series.Series]]:
    data = shown.data
    found: list[series.Series] = []
    with record.noting("summary.json"):
        found = series.of_record(record)
    sets = _write_samples(number, record, data["sets"], folder)
    for index, one in enumerate(found):
        file = f"runs/{number}/lengths-{index}"
        write_script(file, one.lengths, folder)
        data["series"].append({**_entry(one, number), "file": file, "set": sets.get(one.samples)})
    if record.command == "cost" and record.summary:
        with record.noting("summary.json"):
            shown.costs.append(
                (record.name, list(cost.all_tables(CostSummary.model_validate(record.summary)).values()))
            )
    page = record.run.path / "page.html"
    if record.command == "probe" and page.is_file():
        (folder / "probing").mkdir(exist_ok=True)
        shutil.copyfile(page, folder / "probing" / f"{number}.html")
        shown.probing.append(record)
    trained = _write_training(number, record, folder)
    row = overview.row(number, record, found)
    run_page.write(f"runs/{number}", record, row.scores, folder)
    facts = {"name": record.name, "command": record.command, "model": record.model, "status": record.status}
    data["runs"].append({**facts, "notes": record.notes, "training": trained})
    return row, found


def _write_samples(number: int, record: Record, into: list[dict[str, Any]], folder: Path) -> dict[str, int]:
    """Writes side files for each samples file of a run, and appends what the page should know about it to `into`.

    Returns the index in `into` of each samples file, by its name.
    """
    benchmark = (record.config.get("benchmark") or {}).get("kind", "")
    indices = {}
    for path in sorted(record.run.path.glob("samples*.jsonl")):
        with record.noting(path.name):
            name = f"runs/{number}/{path.stem}"
            if said := samples.write(name, record.run.read(path.stem), folder, benchmark):
                if left := said.pop("left_out"):
                    record.notes.append(f"{path.name}: {counted(left, 'line')} without a sample")
                if failed := said.pop("failed"):
                    record.notes.append(f"{path.name}: {failed} of {counted(said['n'], 'question')} have no answer")
                write_script(f"{name}/errors", said.pop("errors"), folder)
                part = path.stem.removeprefix("samples").strip("_").replace("_", " ")
                label = f"{record.name}, {part}" if part else record.name
                indices[path.stem] = len(into)
                into.append({"label": label, "run": number, "file": name, **said})
    return indices


def _write_training(number: int, record: Record, folder: Path) -> bool:
    """Writes the training curves of a run; returns whether there are any."""
    curves: dict[str, Any] = {}
    with record.noting("metrics.jsonl"):
        curves["metrics"] = training.curves(record.run.read("metrics"))
    with record.noting("curve.jsonl"):
        curves["exact_match"] = training.exact_match(record.run.read("curve"))
    if not any(curves.values()):
        return False
    write_script(f"runs/{number}/training", curves, folder)
    return True


def _entry(found: series.Series, run: int | None) -> dict[str, Any]:
    shared = {"label": found.label, "benchmark": found.benchmark, "run": run, "trained": found.trained}
    return {**shared, "ranges": found.ranges, "readings": found.readings, "tasks": list(found.lengths or found.ranges)}


def _boards(records: Sequence[Record], log: Path) -> list[tuple[Table, str]]:
    """The leaderboards of the adders in runs and in the folder of experiments, and the published one. Each table has
    its note."""
    places = [(record.name, record.run.path / "adder.json") for record in records]
    places += [(path.name.removesuffix(".json"), path) for path in sorted(log.glob("*/*.json"))]
    found = {name: known(path) for name, path in places if adders.looks_like_one(path)}
    verdicts = {name: verdict for name, verdict in found.items() if verdict}
    return adders.boards(verdicts) if verdicts else []
