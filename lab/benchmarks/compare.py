"""The tables and figures of one run, or of several runs side by side."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from lab.benchmarks.length_curves import tables as length_curves
from lab.benchmarks.length_curves.figures import length_curves as draw_length_curves
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
    "lengths": "By length",
    "two_integers": "The sum of two integers of 2-30 digits",
    "carry_free": "Carry-free addition",
}

SHOWN = {
    "nupa": ("exact_match_strict", "readings", "first_errors_of_traces"),
    "lengths": ("exact_match", "digit_match"),
    "two_integers": ("success", "outcomes", "format_failures", "wrong_sums"),
    "carry_free": ("success", "outcomes", "parse_errors", "flags", "right_in_text"),
}
"""What of its tables a command prints; all of them are written."""

Summaries = Mapping[str, Mapping[str, Any]]


def collect(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Summaries of run directories by benchmark and label; a fine-tuning run has two, before and after.

    Raises RunError for what is no finished run, one without figures of a benchmark (a probe, a sweep), or one of
    another version of the lab.
    """
    found: dict[str, dict[str, Any]] = {}
    for place, label in _labels(paths).items():
        if not (place / "status").is_file() or Run(place).status != "finished":
            raise RunError(f"{place}: not a finished run (its status is another, or it has none)")
        for name, part in _parts(_summary(place), label).items():
            for benchmark in TITLES.keys() & part.keys():
                found.setdefault(benchmark, {})[name] = part[benchmark]
    return found


def _parts(summary: Mapping[str, Any], label: str) -> dict[str, Mapping[str, Any]]:
    """Figures by label and benchmark."""
    if "before" in summary:
        return {f"{label}, {part}": {"nupa": summary[part]} for part in ("before", "after")}
    return {label: summary} if TITLES.keys() & summary.keys() else {}


def _summary(place: Path) -> Mapping[str, Any]:
    summary = Run(place).read_json("summary") if (place / "summary.json").is_file() else {}
    if not isinstance(summary, dict):
        raise RunError(f"{place}: its summary.json is damaged")
    has_figures = bool(_parts(summary, ""))
    if summary.get("version", None if has_figures else VERSION) != VERSION:
        raise RunError(f"{place}: of another version of the lab; run its command again with resume=true")
    if not has_figures:
        raise RunError(f"{place}: nothing to compare; evaluations, fine-tuned models and models from scratch can be")
    return summary


def _labels(paths: Iterable[Path]) -> dict[Path, str]:
    """Each run once, by the name of its folder, and by that of the folder above where two are named alike."""
    places = list(dict.fromkeys(path.resolve() for path in paths))
    names = [place.name for place in places]
    return {
        place: place.name if names.count(place.name) == 1 else f"{place.parent.name}/{place.name}" for place in places
    }


def settings(paths: Iterable[Path]) -> Table:
    """What was measured, and how, in each run: figures of unlike settings are not to be compared.

    Raises RunError for a config that is damaged.
    """
    keys = ("setting", "shots", "language", "problems_per_range", "problems_per_length", "problems", "max_tokens")
    rows = []
    for path, label in _labels(paths).items():
        config = _config(path)
        engine, benchmark = config.get("engine", {}), config.get("benchmark", config.get("evaluation", {}))
        from_scratch = "lengths" in _summary(path)
        chosen = {"trained on digits": config["data"]["lengths"]} if from_scratch else {}
        chosen |= {key: benchmark[key] for key in (*keys, "sharpness") if key in benchmark}
        chosen |= {f"sampling {key}": value for key, value in config.get("sampling", {}).items()}
        chosen |= {"seed": config.get("seed"), "limit": config.get("limit")}
        said = ", ".join(f"{key} {value}" for key, value in chosen.items() if value is not None)
        kind = benchmark.get("kind", "lengths" if from_scratch else "nupa")
        rows.append((label, model_of(config), engine.get("kind", "local"), kind, said))
    return Table("What was measured", ("run", "model", "engine", "benchmark", "settings"), rows, 5)


def _config(place: Path) -> dict[str, Any]:
    try:
        config = yaml.safe_load(Run(place).config)
    except (yaml.YAMLError, UnicodeError):
        config = None
    if not isinstance(config, dict):
        raise RunError(f"{place}: its config.yaml is damaged")
    return config


def model_of(config: Mapping[str, Any]) -> str:
    """The name of a config's model, or what it is built of if it is from scratch."""
    model = (config.get("engine") or {}).get("model") or config.get("model") or ""
    if isinstance(model, dict):
        model = " ".join(str(model[key]) for key in ("name", "size", "encoding") if model.get(key))
    return str(model)


def write(benchmark: str, summaries: Summaries, folder: Path, with_published: bool = False) -> list[Table]:
    """Write tables/*.md, tables/*.csv and figures/*.png below `folder`; returns the tables to print."""
    title = f"{TITLES[benchmark]}: {', '.join(summaries)}"
    if benchmark == "nupa":
        found = nupa.all_tables(summaries, with_published)
    elif benchmark == "lengths":
        found = length_curves.all_tables(summaries, title)
    else:
        found = sums.all_tables(summaries)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for name, table in found.items():
        (folder / "tables" / f"{name}.md").write_text(f"{table.title}\n\n{table.markdown()}", encoding="utf-8")
        (folder / "tables" / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
    if benchmark == "nupa":
        for metric in METRICS:
            shown = f"{title}. {metric.replace('_', ' ')}, strict reading, 95 % intervals"
            nupa_by_range(summaries, metric, "strict", shown, folder / "figures" / f"{metric}.png")
    elif benchmark == "lengths":
        draw_length_curves(summaries, None, title, folder / "figures" / "lengths.png")
    else:
        accuracy_by_digits(summaries, title, folder / "figures" / "accuracy.png")
        for place, (label, summary) in enumerate(summaries.items(), start=1):
            name = f"outcomes_{place}.png" if len(summaries) > 1 else "outcomes.png"
            outcomes_by_digits(summary, f"{TITLES[benchmark]}: {label}", folder / "figures" / name)
    return [found[name] for name in SHOWN[benchmark] if name in found]
