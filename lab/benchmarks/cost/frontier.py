"""What right answers cost in finished runs: accuracy against seconds and tokens, on the problems that all runs share.

A "way to answer" is one samples file of a run: that of an evaluation, of a model after training, or of one variant in a
cost comparison. Lengths are divided into those that the answering model was trained on and longer ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from lab.benchmarks.cost.tables import significant
from lab.benchmarks.results import Sample, answered, read_samples
from lab.drawing.figures import COLORS, error_bars, figure_at, headed, legend_below, plain
from lab.drawing.tables import Table, number, percent
from lab.errors import RunError
from lab.numbers.sampling import Problem
from lab.numbers.statistics import Estimate, bootstrap_mean, bootstrap_ratio, wilson
from lab.numbers.tasks import EASY, KNOWN
from lab.runs import Run, labels

GROUPS = ("trained lengths", "beyond")
COSTS = ("seconds", "completion_tokens", "prompt_tokens")
ALL_TASKS = "all tasks"


class Way(NamedTuple):
    """One way to answer."""

    label: str
    detail: str
    """"direct", or the detail of the traces if rules are followed."""
    engine: str
    """How answers were computed: "plain loop", "shared prompt", or the kind of another engine;
    in runs of earlier versions also "drafts", which were looked up in earlier text and checked several at a time."""
    samples: dict[Problem, Sample]
    trained: Mapping[str, Sequence[int]]
    """The shortest and the longest trained length for hard and for easy tasks; empty if the lab did not train the
    model."""


def ways(paths: Iterable[Path], names: Sequence[str] = ()) -> list[Way]:
    """The ways to answer in these runs, restricted to the problems that all of them answered.

    Args:
        paths: the directories of the runs.
        names: what to call the runs (`lab.runs.labels`).

    Raises RunError if there are no runs, if a run is not finished or has no samples of NUPA, if no problem is common to
    all, or if the names do not fit.
    """
    found = [way for path, label in labels(map(Path.resolve, paths), names).items() for way in _of_run(path, label)]
    if not found:
        raise RunError("no runs to compare: give the directories of finished runs")
    shared = set.intersection(*(set(way.samples) for way in found))
    if not shared:
        raise RunError(f"{', '.join(way.label for way in found)}: no problem was answered in all of them")
    return [way._replace(samples={q: s for q, s in way.samples.items() if q in shared}) for way in found]


def _of_run(path: Path, label: str) -> list[Way]:
    Run(path).check_finished()
    with Run(path).reading_settings() as config:
        return _of_config(path, label, config)


def _of_config(path: Path, label: str, config: Mapping[str, Any]) -> list[Way]:
    files = [name for name in ("samples", "samples_after") if (path / f"{name}.jsonl").is_file()]
    if "rule_following" in config:
        files = sorted(file.stem for file in path.glob("samples_*.jsonl"))
    found = []
    for name in files:
        answers = answered(read_samples(Run(path), name))
        samples = {sample.problem: sample for sample in answers if isinstance(sample.question, Problem)}
        if unknown := next((sample for sample in samples.values() if sample.task not in KNOWN), None):
            raise RunError(f"{path / name}.jsonl: sample {unknown.index}: there is no task {unknown.task}")
        if not samples:
            continue
        variant = name.removeprefix("samples_").replace("_", " ") if "rule_following" in config else ""
        known = _detail(config, variant), _engine(config, variant)
        found.append(Way(", ".join(filter(None, (label, variant))), *known, samples, _trained(path, config, variant)))
    if not found:
        raise RunError(f"{path}: no samples of NUPA that were answered")
    return found


def _detail(config: Mapping[str, Any], variant: str) -> str:
    asked = config.get("benchmark") or config.get("data") or {}
    if asked.get("style") == "running_totals":
        return "running totals"
    followed = "rule_following" in (asked.get("setting"), asked.get("style")) or variant.startswith("rule following")
    rules = asked.get("rules") or config.get("rules") or {}
    return rules.get("detail", "full") if followed else "direct"


def _engine(config: Mapping[str, Any], variant: str) -> str:
    engine = config.get("engine") or {"kind": "local", **(config.get("evaluation") or {})}
    if "tokenizer" in config:  # a model from scratch
        return "plain loop"
    if variant:
        return "plain loop" if "plain" in variant else "drafts" if "speculation" in variant else "shared prompt"
    if engine["kind"] != "local":
        return engine["kind"]
    return "drafts" if engine.get("speculation") else "shared prompt"


def _trained(path: Path, config: Mapping[str, Any], variant: str) -> Mapping[str, Sequence[int]]:
    """The trained lengths of the run itself, or of the run that its model comes from."""
    if "data" in config:
        return _by_difficulty(config["data"]["lengths"])
    part = config.get("rule_following" if variant.startswith("rule") else "direct") if variant else None
    model = part or (config.get("engine") or {}).get("model") or {}
    name = model.get("name", "") if isinstance(model, dict) else str(model)
    for place in (Path(name), path.parent / Path(name).name):
        if name and (place / "config.yaml").is_file():
            with Run(place).reading_settings() as settings:
                return _by_difficulty((settings.get("data") or {}).get("lengths") or {})
    return {}


def _by_difficulty(lengths: Any) -> Mapping[str, Sequence[int]]:
    """The shortest and the longest length of a config for hard and for easy tasks. Raises ValueError or TypeError if
    there are no such lengths."""
    found = lengths if isinstance(lengths, dict) else {"hard": lengths, "easy": lengths}
    for shortest, longest in found.values():
        range(shortest, longest)
    return found


def _group(way: Way, sample: Sample) -> str:
    task = KNOWN[sample.task]
    bounds = way.trained.get("easy" if task.difficulty is EASY else "hard")
    inside = bounds and bounds[0] <= sample.length <= bounds[1]
    return GROUPS[0] if inside else GROUPS[1] if bounds else "all lengths"


class Point(NamedTuple):
    """The figures of one way to answer, for one task (or all tasks) and one group of lengths."""

    task: str
    lengths: str
    way: Way
    accuracy: Estimate
    spent: dict[str, Estimate]
    """The mean cost of an answer, for each of COSTS."""
    per_right: dict[str, Estimate | None]
    """The total cost divided by the number of right answers; None if there are none."""


def points(found: Sequence[Way]) -> list[Point]:
    """The points of these ways: first all tasks together, then each task in the order of the task table; trained
    lengths come before longer ones."""
    rows = []
    for way in found:
        groups: dict[tuple[str, str], list[Sample]] = {}
        for sample in way.samples.values():
            for task in (ALL_TASKS, sample.task):
                groups.setdefault((task, _group(way, sample)), []).append(sample)
        rows += [_point(task, group, way, samples) for (task, group), samples in groups.items()]
    tasks = [ALL_TASKS, *KNOWN]
    return sorted(rows, key=lambda row: (tasks.index(row.task), row.lengths != GROUPS[0]))


def _point(task: str, group: str, way: Way, samples: Sequence[Sample]) -> Point:
    right = [sample.right for sample in samples]
    spent = {cost: [getattr(sample.completion, cost) for sample in samples] for cost in COSTS}
    return Point(
        task,
        group,
        way,
        wilson(sum(right), len(right)),
        {cost: bootstrap_mean(values) for cost, values in spent.items()},
        {cost: bootstrap_ratio(values, right) if any(right) else None for cost, values in spent.items()},
    )


def table(rows: Sequence[Point]) -> Table:
    """One row per point. Prompt tokens have a column of their own, because the shared part of prompts is read only
    once."""
    columns = ("task", "lengths", "way", "detail", "engine", "n", "right, %", "s per right answer")
    columns += ("tokens written per right answer", "tokens written", "prompt tokens")
    cells = [
        (
            *(row.task, row.lengths, row.way.label, row.way.detail, row.way.engine, str(row.accuracy.n)),
            percent(row.accuracy),
            significant(row.per_right["seconds"]),
            significant(row.per_right["completion_tokens"]),
            number(row.spent["completion_tokens"]),
            number(row.spent["prompt_tokens"]),
        )
        for row in rows
    ]
    return Table("What right answers cost, on the problems that all were asked (95 % intervals)", columns, cells, 5)


def in_short(rows: Sequence[Point]) -> list[str]:
    """A line for each way to answer and group of lengths: accuracy over all tasks, and seconds per right answer."""
    lines = []
    for row in rows:
        if row.task == ALL_TASKS:
            seconds = significant(row.per_right["seconds"]) or "none is right"
            said = f"{percent(row.accuracy)} % right, n={row.accuracy.n}; seconds per right answer: {seconds}"
            lines.append(f"{row.way.label}, {row.lengths}: {said}")
    return lines


def draw(rows: Sequence[Point], title: str, path: Path) -> None:
    """Accuracy over all tasks, against seconds and against written tokens per right answer (log scale).

    Each group of lengths has a row of panels. A way without any right answer is a hollow marker at the right edge.
    """
    overall = [row for row in rows if row.task == ALL_TASKS]
    groups = list(dict.fromkeys(row.lengths for row in overall))
    labels = list(dict.fromkeys(row.way.label for row in overall))
    with figure_at(path, figsize=(9.5, 3.2 * len(groups) + 0.8)) as figure:
        grid = figure.subplots(len(groups), 2, sharey=True, squeeze=False)
        for axes_of, group in zip(grid, groups, strict=True):
            members = [row for row in overall if row.lengths == group]
            for axes, cost in zip(axes_of, ("seconds", "completion_tokens"), strict=True):
                _panel(axes, members, labels, cost)
                spent = "seconds" if cost == "seconds" else "tokens written"
                axes.set(title=group, xlabel=f"{spent} per right answer")
            axes_of[0].set_ylabel("right answers (95 %)")
        legend_below(figure, 3)
        headed(figure, title)


def _panel(axes: Any, rows: Sequence[Point], labels: Sequence[str], cost: str) -> None:
    most = max([found.value for row in rows if (found := row.per_right[cost])], default=1.0)
    for row in rows:
        color, found = COLORS[labels.index(row.way.label) % len(COLORS)], row.per_right[cost]
        place, bars = found.value if found else 3 * most, error_bars([row.accuracy])
        filled, label = color if found else "none", plain(row.way.label)
        axes.errorbar([place], [row.accuracy.value], bars, fmt="o", ms=5, color=color, mfc=filled, label=label)
    axes.set(xscale="log", ylim=(-0.04, 1.04))
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(color="#eeeeee")
