"""The tables and figures of one run, or of several runs side by side."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lab.errors import RunError
from lab.reporting import figures, nupa, sums
from lab.reporting.tables import Table
from lab.runs import Run

TITLES = {
    "nupa": "NUPA",
    "two_integers": "The sum of two integers of 2-30 digits",
    "carry_free": "Carry-free addition",
}

SHOWN = {
    "nupa": ("exact_match_strict", "readings"),
    "two_integers": ("success", "outcomes", "format_failures", "wrong_sums"),
    "carry_free": ("success", "outcomes", "parse_errors", "flags", "right_in_text"),
}
"""What of its tables a command prints; all of them are written."""

Summaries = Mapping[str, Mapping[str, Any]]


def collect(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Summaries of run directories by benchmark and label; a fine-tuning run has two, before and after.

    Raises RunError for a run that is not finished, and for a directory that is none.
    """
    found: dict[str, dict[str, Any]] = {}
    labels = set()
    for path in paths:
        label = path.name if path.name not in labels else str(path)
        labels.add(label)
        if not (path / "summary.json").is_file():
            raise RunError(f"{path}: no summary.json; not a run directory, or one whose run was cut short")
        summary = Run(path).read_json("summary")
        if "before" in summary:
            summary = {"nupa": summary["before"]}, {"nupa": summary["after"]}
            parts = zip((f"{label}, before", f"{label}, after"), summary, strict=True)
        else:
            parts = [(label, summary)]
        for name, part in parts:
            for benchmark, figures_of_it in part.items():
                found.setdefault(benchmark, {})[name] = figures_of_it
    return found


def write(benchmark: str, summaries: Summaries, folder: Path, with_published: bool = False) -> list[Table]:
    """Write tables/*.md, tables/*.csv and figures/*.png below `folder`; returns the tables to print."""
    tables = nupa.tables(summaries, with_published) if benchmark == "nupa" else sums.tables(summaries)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        (folder / "tables" / f"{name}.md").write_text(f"{table.title}\n\n{table.markdown()}", encoding="utf-8")
        (folder / "tables" / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
    title = f"{TITLES[benchmark]}: {', '.join(summaries)}"
    if benchmark == "nupa":
        for metric, name in nupa.METRICS.items():
            shown = f"{title}. {name.partition(',')[0]}, strict reading, 95 % intervals"
            figures.nupa_by_range(summaries, metric, "strict", shown, folder / "figures" / f"{metric}.png")
    else:
        figures.accuracy_by_digits(summaries, title, folder / "figures" / "accuracy.png")
        for label, summary in summaries.items():
            name = f"outcomes_{label}.png" if len(summaries) > 1 else "outcomes.png"
            figures.outcomes_by_digits(summary, f"{TITLES[benchmark]}: {label}", folder / "figures" / name)
    return [tables[name] for name in SHOWN[benchmark] if name in tables]
