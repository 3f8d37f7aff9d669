"""The site: one page with its scripts, styles and aggregates in it, and side files beside it, written at once or not.

index.html            everything but what is loaded on demand
runs/<n>/*.js         of run n: how it was run, its tables, its training, scores by length, its samples
runs/<n>/figures/     its figures
probing/<n>.html      the page of a probing run, figures and attention patterns
experiments/*.png     the figures of the findings
"""

import secrets
import shutil
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from lab.benchmarks.cost import tables as cost
from lab.benchmarks.nupa.tables import RANGES
from lab.drawing.tables import Table, percent
from lab.errors import RunError
from lab.numbers.metrics import METRICS
from lab.runs import Run
from lab.site import experiments, overview, run_page, samples, series, training
from lab.site.gather import Record
from lab.site.overview import Best, Fold
from lab.site.scripts import as_json, write_script
from lab.smallest_adder import leaderboard as adders

MARK = '<meta name="generator" content="the number lab">'
"""What tells a site of ours, which may be replaced, from a folder that is not to be touched."""

SCRIPTS = ("data", "elements", "text", "charts", "choosers", "performance", "heatmap", "errors", "samples", "training")
SCRIPTS += ("runs", "main")

METRIC_NAMES = {"exact_match": "exact match", "digit_match": "digit match", "dlength": "dlength"}


class Shown(NamedTuple):
    """What the page itself holds: data for its charts, and tables as they stand."""

    data: dict[str, Any]
    records: list[Record]
    overview: list[Fold]
    best: list[Best]
    costs: list[tuple[str, list[Table]]]
    boards: list[tuple[Table, str]]
    probing: list[Record]
    findings: list[experiments.Entry]


def write(records: Sequence[Record], out: Path, log: Path) -> Path:
    """Write the site to `out` and return its page; `log` is the folder of experiments.

    It is made beside `out` and moved there whole. Raises RunError, having written nothing, where `out` is neither
    free nor a site of ours.
    """
    check(out)
    out = out.resolve()
    staged = out.with_name(f".{out.name}.{secrets.token_hex(4)}")
    discarded = staged.with_name(f"{staged.name}.old")
    try:
        staged.mkdir(parents=True)
        page = render(collect(records, log, staged))
        (staged / "index.html").write_text(page, encoding="utf-8", errors="backslashreplace")
        check(out)
        if out.exists():
            out.rename(discarded)
        staged.rename(out)
    except OSError as error:
        raise RunError(f"{out}: {error.strerror or error}") from error
    finally:
        if discarded.exists() and not out.exists():
            discarded.rename(out)
        for left in (staged, discarded):
            shutil.rmtree(left, ignore_errors=True)
    return out / "index.html"


def check(out: Path) -> None:
    """Raises RunError where a site may not be written."""
    if not out.exists():
        return
    if not out.is_dir():
        raise RunError(f"{out}: is a file; give the folder of a site, or a name that is free")
    try:
        page = out / "index.html"
        ours = page.is_file() and MARK in page.read_text(encoding="utf-8", errors="replace")[:1000]
        free = ours or not any(out.iterdir())
    except OSError as error:
        raise RunError(f"{out}: {error.strerror}") from error
    if not free:
        raise RunError(f"{out}: is not a site of the lab (no such index.html), so it is left alone")


def collect(records: Sequence[Record], log: Path, folder: Path) -> Shown:
    """Write the side files below `folder`, and return what the page itself shows."""
    data: dict[str, Any] = {"runs": [], "series": [], "sets": []}
    shown = Shown(data, list(records), [], [], [], _boards(records, log), [], experiments.entries(log, folder))
    scored = [(record, _write_run(number, record, shown, folder)) for number, record in enumerate(records)]
    rows = [overview.row(number, record, found) for number, (record, found) in enumerate(scored)]
    shown.overview.extend(overview.fold(rows))
    shown.best.extend(overview.best(zip(rows, (found for _, found in scored), strict=True)))
    data["series"] += [_entry(found, None) for found in series.published()]
    return shown


def render(shown: Shown) -> str:
    from jinja2 import Environment, FunctionLoader

    room = files("lab.site").joinpath("templates")
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(lambda name: _text(room, name))
    )
    environment.filters |= {"plain": plain, "counted": counted, "percent": percent}
    constants = {
        "metrics": [{"key": key, "name": METRIC_NAMES[key]} for key in METRICS],
        "ranges": RANGES,
        "outcomes": samples.OUTCOMES,
        "quantities": training.QUANTITIES,
        "tasks": series.task_rows(),
    }
    return environment.get_template("index.html").render(
        mark=MARK,
        style=_text(room, "site.css"),
        script="\n".join(_text(room, f"{name}.js") for name in SCRIPTS),
        data=as_json({**constants, **shown.data}),
        shown=shown,
    )


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def plain(text: object) -> str:
    """Text on a page of which nothing is hidden: what cannot be seen is written as its code."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in str(text))


def _text(room: Any, name: str) -> str:
    return room.joinpath(name).read_text(encoding="utf-8")


def _write_run(number: int, record: Record, shown: Shown, folder: Path) -> list[series.Series]:
    data = shown.data
    found: list[series.Series] = []
    with record.noting("summary.json"):
        found = series.of_record(record)
    sets = _write_samples(number, record, data["sets"], folder)
    for place, one in enumerate(found):
        file = f"runs/{number}/lengths-{place}"
        write_script(file, one.lengths, folder)
        data["series"].append({**_entry(one, number), "file": file, "set": sets.get(one.samples)})
    if record.kind == "cost" and record.summary:
        with record.noting("summary.json"):
            shown.costs.append((record.name, list(cost.all_tables(record.summary).values())))
    page = record.run.path / "page.html"
    if record.kind == "probing" and page.is_file():
        (folder / "probing").mkdir(exist_ok=True)
        shutil.copyfile(page, folder / "probing" / f"{number}.html")
        shown.probing.append(record)
    trained = _write_training(number, record, folder)
    run_page.write(f"runs/{number}", record, overview.scores(record, found), folder)
    facts = {"name": record.name, "kind": record.kind, "model": record.model, "status": record.status}
    data["runs"].append({**facts, "notes": record.notes, "training": trained})
    return found


def _write_samples(number: int, record: Record, into: list[dict[str, Any]], folder: Path) -> dict[str, int]:
    """Side files of each file of samples; what the page should know goes `into` its list, and its place is returned."""
    benchmark = (record.config.get("benchmark") or {}).get("kind", "")
    places = {}
    for path in sorted(record.run.path.glob("samples*.jsonl")):
        with record.noting(path.name):
            name = f"runs/{number}/{path.stem}"
            if said := samples.write(name, record.run.read(path.stem), folder, benchmark):
                if left := said.pop("left_out"):
                    record.notes.append(f"{path.name}: {counted(left, 'line')} without a sample")
                write_script(f"{name}/errors", said.pop("errors"), folder)
                part = path.stem.removeprefix("samples").strip("_").replace("_", " ")
                label = f"{record.name}, {part}" if part else record.name
                places[path.stem] = len(into)
                into.append({"label": label, "run": number, "file": name, **said})
    return places


def _write_training(number: int, record: Record, folder: Path) -> bool:
    """Whether there is anything to draw."""
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
    return {**shared, "ranges": found.ranges, "tasks": list(found.lengths or found.ranges)}


def _boards(records: Sequence[Record], log: Path) -> list[tuple[Table, str]]:
    """Of the runs' submissions, and of those that lie in the folder of the log."""
    its_own = Record(Run(log), "experiments")
    places = [(record, record.name, "submission.verdict") for record in records]
    places += [(its_own, path.stem.removesuffix(".verdict"), path.stem) for path in sorted(log.glob("*.verdict.json"))]
    verdicts = {}
    for record, name, stored in places:
        if (record.run.path / f"{stored}.json").is_file():
            with record.noting(f"{stored}.json"):
                verdict = record.run.read_json(stored)
                adders.board({name: verdict})  # a stored one may hold anything
                verdicts[name] = verdict
    return [(adders.board(verdicts), adders.NOTE), (adders.published(), adders.SOURCE)] if verdicts else []
