"""The tables and figures of one run, or of several runs side by side."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from lab.benchmarks.nupa import tables as nupa
from lab.benchmarks.nupa.figures import nupa_by_range
from lab.benchmarks.sums import tables as sums
from lab.benchmarks.sums.figures import accuracy_by_digits, outcomes_by_digits
from lab.drawing.tables import Table
from lab.errors import RunError
from lab.numbers.metrics import METRICS
from lab.runs import Run

VERSION = 1
"""Of what summary.json holds; raised when a reader of it would have to change."""

TITLES = {
    "nupa": "NUPA",
    "two_integers": "The sum of two integers of 2-30 digits",
    "carry_free": "Carry-free addition",
}

SHOWN = {
    "nupa": ("exact_match_strict", "readings", "first_errors_of_traces"),
    "two_integers": ("success", "outcomes", "format_failures", "wrong_sums"),
    "carry_free": ("success", "outcomes", "parse_errors", "flags", "right_in_text"),
}
"""What of its tables a command prints; all of them are written."""

Summaries = Mapping[str, Mapping[str, Any]]


def collect(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Summaries of run directories by benchmark and label; a fine-tuning run has two, before and after.

    Raises RunError for what is no finished run, or one of another version of the lab.
    """
    found: dict[str, dict[str, Any]] = {}
    for place, label in _labels(paths).items():
        if not place.exists():
            raise RunError(f"{place}: there is no such run")
        if not (place / "summary.json").is_file() or Run(place).status != "finished":
            raise RunError(f"{place}: not a finished run (no summary.json, or its status is another)")
        summary = Run(place).read_json("summary")
        if not isinstance(summary, dict) or summary.pop("version", None) != VERSION:
            raise RunError(f"{place}: of another version of the lab; run its command again with resume=true")
        if "before" in summary:
            parts = {f"{label}, before": {"nupa": summary["before"]}, f"{label}, after": {"nupa": summary["after"]}}
        else:
            parts = {label: summary}
        for name, part in parts.items():
            for benchmark in TITLES.keys() & part.keys():
                found.setdefault(benchmark, {})[name] = part[benchmark]
    return found


def _labels(paths: Iterable[Path]) -> dict[Path, str]:
    """Each run once, by the name of its folder, and by that of the folder above where two are named alike."""
    places = list(dict.fromkeys(path.resolve() for path in paths))
    names = [place.name for place in places]
    return {
        place: place.name if names.count(place.name) == 1 else f"{place.parent.name}/{place.name}" for place in places
    }


def settings(paths: Iterable[Path]) -> Table:
    """What was measured, and how, in each run: figures of unlike settings are not to be compared."""
    keys = ("setting", "shots", "language", "problems_per_range", "problems_per_length", "problems", "max_tokens")
    rows = []
    for path, label in _labels(paths).items():
        config = yaml.safe_load(Run(path).config)
        engine, benchmark = config.get("engine", {}), config.get("benchmark", config.get("evaluation", {}))
        model = engine.get("model") or config.get("model") or {}
        name = model["name"] if isinstance(model, dict) else model
        chosen = {key: benchmark[key] for key in keys if key in benchmark}
        chosen |= {f"sampling {key}": value for key, value in config.get("sampling", {}).items()}
        chosen |= {"seed": config.get("seed"), "limit": config.get("limit")}
        said = ", ".join(f"{key} {value}" for key, value in chosen.items() if value is not None)
        rows.append((label, str(name), engine.get("kind", "local"), benchmark.get("kind", "nupa"), said))
    return Table("What was measured", ("run", "model", "engine", "benchmark", "settings"), rows, 5)


def write(benchmark: str, summaries: Summaries, folder: Path, with_published: bool = False) -> list[Table]:
    """Write tables/*.md, tables/*.csv and figures/*.png below `folder`; returns the tables to print."""
    found = nupa.all_tables(summaries, with_published) if benchmark == "nupa" else sums.all_tables(summaries)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for name, table in found.items():
        (folder / "tables" / f"{name}.md").write_text(f"{table.title}\n\n{table.markdown()}", encoding="utf-8")
        (folder / "tables" / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
    title = f"{TITLES[benchmark]}: {', '.join(summaries)}"
    if benchmark == "nupa":
        for metric in METRICS:
            shown = f"{title}. {metric.replace('_', ' ')}, strict reading, 95 % intervals"
            nupa_by_range(summaries, metric, "strict", shown, folder / "figures" / f"{metric}.png")
    else:
        accuracy_by_digits(summaries, title, folder / "figures" / "accuracy.png")
        for place, (label, summary) in enumerate(summaries.items(), start=1):
            name = f"outcomes_{place}.png" if len(summaries) > 1 else "outcomes.png"
            outcomes_by_digits(summary, f"{TITLES[benchmark]}: {label}", folder / "figures" / name)
    return [found[name] for name in SHOWN[benchmark] if name in found]
