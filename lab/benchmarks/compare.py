"""The tables and figures of one run or of several runs side by side, and tests of the differences between runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.benchmarks import arrivals
from lab.benchmarks.kinds import REPORTS, Summaries
from lab.benchmarks.nupa import in_short as nupa_in_short
from lab.benchmarks.results import Part, Question, Summary, answered, grouped, read_samples, read_summary, task_key
from lab.config.commands import model_of
from lab.drawing.tables import Table, percent, points, probability
from lab.errors import RunError
from lab.numbers.paired import Difference, holm
from lab.runs import Run, labels


def collect(paths: Iterable[Path], names: Sequence[str] = ()) -> dict[str, dict[str, Part]]:
    """Summaries of run directories, by benchmark and label; a fine-tuning run has two: before and after tuning.

    `names`: what to call the runs (`lab.runs.labels`).

    Raises RunError if a path is not a finished run, if the run has no figures of a benchmark (a probe, a sweep), or if
    it was written by another version of the lab.
    """
    found: dict[str, dict[str, Part]] = {}
    for path, label in labels(map(Path.resolve, paths), names).items():
        if not path.exists():
            raise RunError(f"{path}: there is no such run")
        Run(path).check_finished()
        parts = by_benchmark(_summary(path), label)
        if not parts:
            raise RunError(f"{path}: nothing to compare; only evaluations and trained models have figures")
        for benchmark, labelled in parts.items():
            found.setdefault(benchmark, {}).update(labelled)
    return found


def by_benchmark(summary: Summary, label: str) -> dict[str, dict[str, Part]]:
    """The parts of a run's summary by benchmark and label."""
    if summary.before is not None and summary.after is not None:
        return {"nupa": {f"{label}, before": summary.before, f"{label}, after": summary.after}}
    return {name: {label: part} for name in REPORTS if (part := getattr(summary, name)) is not None}


def _summary(path: Path) -> Summary:
    return read_summary(Run(path)) if (path / "summary.json").is_file() else Summary()


class Compared(NamedTuple):
    """How a run differs from the first run, on those problems of a task that both were asked."""

    run: str
    task: str
    """A task's key, or "all"."""
    difference: Difference
    p: float
    """McNemar's p-value, adjusted for all tasks of all runs (Holm 1979)."""


def differences(paths: Iterable[Path], names: Sequence[str] = ()) -> tuple[str, list[Compared]]:
    """The first run's label, and how the others differ from it (exact match, strict reading): over all problems and, if
    there are several tasks, also task by task.

    A fine-tuning run counts as two runs: before and after tuning. The list is empty if no other run shares a problem
    with the first.
    """
    named = labels(map(Path.resolve, paths), names)
    runs = [(name, found) for path, label in named.items() for name, found in _answers(path, label)]
    found = []
    for label, second in runs[1:]:
        shared = [key for key in runs[0][1] if key in second]
        tasks = grouped(shared, lambda key: task_key(key[0]))
        for name, keys in {"all": shared, **(tasks if len(tasks) > 1 else {})}.items():
            if keys:
                difference = Difference.of([runs[0][1][key] for key in keys], [second[key] for key in keys])
                found.append(Compared(label, name, difference, difference.p))
    adjusted = holm([row.p for row in found])
    return runs[0][0] if runs else "", [row._replace(p=p) for row, p in zip(found, adjusted, strict=True)]


def differences_table(first: str, found: Sequence[Compared]) -> Table:
    """One row per run and task. `detectable` is the smallest difference that would have been significant on the row's
    problems, at 0.05 divided by the number of rows (Holm's level for the smallest p-value).

    Args:
        first: the label of the first run.
        found: the differences from it.
    """
    rows = []
    for run, task, difference, p in found:
        shares = percent(difference.first), percent(difference.second), points(difference.estimate)
        rows.append((run, task, str(difference.n), *shares, probability(p), _detectable(difference, len(found))))
    columns = ("run", "task", "n", "first %", "run %", "difference", "p", "detectable")
    better = frozenset(index for index, row in enumerate(found) if row.p < 0.05)
    return Table(f"Differences from {first}, in points, on the same problems", columns, rows, 2, better)


def differences_in_short(first: str, found: Sequence[Compared]) -> list[str]:
    """A line for each run: its difference over all problems, and its largest task differences with p < 0.05."""
    lines = []
    for run, rows in grouped(found, lambda row: row.run).items():
        whole, *tasks = rows
        real = sorted((row for row in tasks if row.p < 0.05), key=lambda row: -abs(row.difference.estimate.value))
        named = ", ".join(f"{row.task} {points(row.difference.estimate)}" for row in real[:3])
        least = _detectable(whole.difference, len(found))
        power = f", a difference of {least} points would be significant" if least and whole.p >= 0.05 else ""
        shown = f"{points(whole.difference.estimate)}, p {probability(whole.p)}, n={whole.difference.n}{power}"
        few = "too few problems to show any difference" if not least else ""
        told = [shown, named or few or "no task beyond chance"] if tasks else [shown, few]
        lines.append(f"{run} against {first}, in points: {'; '.join(filter(None, told))}")
    return lines


def _detectable(difference: Difference, tests: int) -> str:
    """The smallest significant difference, in points, at the level that Holm's method demands of the smallest p-value:
    0.05 divided by the number of tests."""
    least = difference.detectable(0.05 / tests)
    return "" if least is None else f"{100 * least:.0f}"


def _answers(path: Path, label: str) -> list[tuple[str, dict[tuple[Question, int], bool]]]:
    """Whether each question was answered right. The keys are the question and how many times it was asked before."""
    run, found = Run(path), []
    for file, suffix in (("samples", ""), ("samples_before", ", before"), ("samples_after", ", after")):
        right: dict[tuple[Question, int], bool] = {}
        asked: Counter[Question] = Counter()
        for sample in answered(read_samples(run, file)):
            right[sample.question, asked[sample.question]] = sample.right
            asked[sample.question] += 1
        if right:
            found.append((label + suffix, right))
    return found


def settings(paths: Iterable[Path], names: Sequence[str] = ()) -> Table:
    """What was measured in each run, and how: figures from different settings must not be compared.

    Raises RunError if a config is damaged.
    """
    counts = ("problems_per_range", "problems_per_length", "problems", "max_tokens")
    keys = ("file", "setting", "shots", "language", *counts)
    rows = []
    for path, label in labels(map(Path.resolve, paths), names).items():
        with Run(path).reading_settings() as config:
            rows.append((label, *_setting(config, keys, read_summary(Run(path)).lengths is not None)))
    return Table("What was measured", ("run", "model", "engine", "benchmark", "settings"), rows, 5)


def _setting(config: Mapping[str, Any], keys: Sequence[str], from_scratch: bool) -> tuple[str, str, str, str]:
    """The model, the engine, the benchmark and the settings of a config, as far as `keys` name them."""
    engine, benchmark = config.get("engine", {}), config.get("benchmark", config.get("evaluation", {}))
    chosen = {"trained on digits": config["data"]["lengths"]} if from_scratch else {}
    chosen |= {key: benchmark[key] for key in keys if key in benchmark}
    chosen |= {f"sampling {key}": value for key, value in config.get("sampling", {}).items() if value != "run"}
    chosen |= {"seed": config.get("seed"), "limit": config.get("limit")}
    said = ", ".join(f"{key} {value}" for key, value in chosen.items() if value is not None)
    kind = benchmark.get("kind", "lengths" if from_scratch else "nupa")
    return model_of(config), engine.get("kind", "local"), kind, said


def arrivals_in_short(paths: Iterable[Path], names: Sequence[str] = ()) -> list[str]:
    """For each run, a line for each thing that went wrong with its answers, such as that they were cut off."""
    return [
        f"{label}: {line}"
        for path, label in labels(map(Path.resolve, paths), names).items()
        if (came := _summary(path).arrivals)
        for line in arrivals.in_short(came, _kind(path))
    ]


def _kind(path: Path) -> str:
    with Run(path).reading_settings() as config:
        return config.get("benchmark", {}).get("kind", "nupa")


def write(benchmark: str, summaries: Summaries, folder: Path, compared: bool = False) -> None:
    """Writes tables/*.md, tables/*.csv and figures/*.png below `folder`.

    Args:
        benchmark: a key of REPORTS.
        summaries: the summaries to show, by label.
        folder: the folder to write to.
        compared: whether to write the tables that a comparison shows.
    """
    report = REPORTS[benchmark]
    found = report.compared(summaries) if compared and report.compared else report.tables(summaries)
    for name, table in found.items():
        write_table(name, table, folder)
    if report.draw:
        report.draw(summaries, report.title, folder / "figures")


def in_short(benchmark: str, summaries: Summaries, compared: bool = False) -> list[str]:
    """What the summaries of a benchmark say, in a few lines. `compared`: whether other runs are shown too, so that each
    line should begin with the label of its run."""
    if benchmark == "nupa" and len(summaries) > 1:
        return nupa_in_short.compared(summaries)
    told = REPORTS[benchmark].in_short
    if len(summaries) == 1 and not compared:
        return told(next(iter(summaries.values())))
    return [f"{label}: {line}" for label, summary in summaries.items() for line in told(summary)]


def write_table(name: str, table: Table, folder: Path) -> None:
    """Writes a table as tables/NAME.md and tables/NAME.csv below `folder`."""
    tables = folder / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    (tables / f"{name}.md").write_text(table.page(), encoding="utf-8")
    (tables / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
