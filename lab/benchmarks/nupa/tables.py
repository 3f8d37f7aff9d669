"""Tables of NUPA summaries: what the paper shows in Figures 5-7 and Tables 7-10, and what tuning changed.

A summary covers the samples of one model in one setting (summary.py). Several summaries are shown side by side, by
label.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from lab.benchmarks.nupa.published import Published
from lab.benchmarks.nupa.summary import DOMAINS, RANGES
from lab.benchmarks.results import Figures, NupaSummary, Sample, TaskSummary, grouped
from lab.drawing.tables import NOT_MEASURED, Entry, Table, number, percent, probability
from lab.numbers.metrics import METRICS
from lab.numbers.paired import Difference, holm
from lab.numbers.sampling import Cell
from lab.numbers.tasks import TASKS, Task
from lab.numbers.taxonomy import OUTCOMES
from lab.rules.traces.errors import KINDS
from lab.text.answers import ALL_READINGS

UNITS = {"exact_match": "exact match, %", "digit_match": "digit match, %", "dlength": "dlength, digits"}


TRAINED, BEYOND = "trained", "beyond"
"""Lengths up to the longest of a task's training problems, and longer ones."""


class Change(NamedTuple):
    """Exact match on one task in one range, before and after tuning (strict reading)."""

    task: str
    representation: str
    range: str
    """S, M, L or XL; or TRAINED or BEYOND."""
    lengths: str
    difference: Difference
    p: float
    """McNemar's p-value, adjusted for the number of rows (Holm 1979)."""

    @property
    def gained(self) -> bool:
        """Whether exact match rose significantly (p < 0.05)."""
        return self.p < 0.05 and self.difference.estimate.value > 0


def changes(
    before: Sequence[Sample], after: Sequence[Sample], range_of: Callable[[Task, int], str] = Task.range_of
) -> list[Change]:
    """What tuning changed, in the order of the task table.

    Args:
        before: the samples of the untuned model.
        after: the samples of the tuned model, for the same problems in the same order.
        range_of: the range of a task's problems of a length; NUPA's ranges by default.

    Problems that were not answered both times do not count.
    """
    pairs = [(old, new) for old, new in zip(before, after, strict=True) if old.answered and new.answered]
    by_row = grouped(pairs, lambda pair: (pair[0].task, range_of(TASKS[pair[0].task], pair[0].length)))
    rows = []
    for task in TASKS.values():
        for name in (*RANGES, TRAINED, BEYOND):
            if members := by_row.get((task.key, name)):
                lengths = sorted({old.length for old, _ in members})
                shown = f"{lengths[0]}-{lengths[-1]}" if len(lengths) > 1 else str(lengths[0])
                found = Difference.of([old.right for old, _ in members], [new.right for _, new in members])
                rows.append(Change(task.name, task.representation.name, name, shown, found, found.p))
    adjusted = holm([row.p for row in rows])
    return [row._replace(p=p) for row, p in zip(rows, adjusted, strict=True)]


def change_table(rows: Sequence[Change], title: str) -> Table:
    """A row for each task and range, and a last one for all problems. Rows with a significant gain are highlighted."""
    if not rows:
        return Table(title, _CHANGE_COLUMNS, [], 3)
    all_of_them = total(rows)
    lines = [*rows, Change("all", "", "", "", all_of_them, all_of_them.p)]
    cells = [
        (row.task, row.representation, row.range, row.lengths, str(row.difference.n), percent(row.difference.first),
         percent(row.difference.second), probability(row.p))
        for row in lines
    ]  # fmt: skip
    better = frozenset(index for index, row in enumerate(lines) if row.gained)
    return Table(title, _CHANGE_COLUMNS, cells, 3, better)


def by_training(cells: Iterable[Cell]) -> Callable[[Task, int], str]:
    """A `range_of` for `changes` that gives TRAINED or BEYOND. `cells`: the tasks and lengths of training."""
    longest: dict[str, int] = {}
    for cell in cells:
        longest[cell.task.key] = max(cell.length, longest.get(cell.task.key, 0))
    return lambda task, length: BEYOND if length > longest.get(task.key, 0) else TRAINED


def trained_and_beyond(rows: Sequence[Change], title: str) -> Table:
    """Exact match in % (95 %) at trained lengths and beyond, side by side, with the numbers of digits and n.

    A row for each task, and a last one for all problems. Tasks with a significant gain at either are highlighted.
    """
    parts = [name for name in (TRAINED, BEYOND) if any(row.range == name for row in rows)]
    columns = chain(*((f"{name} (n)", "before", "after") for name in parts))
    cells, better = [], set()
    for index, members in enumerate(grouped(rows, lambda row: (row.task, row.representation)).values()):
        found = {row.range: row for row in members}
        sides = [_side(found[name].lengths, found[name].difference) if name in found else _NO_SIDE for name in parts]
        cells.append((*members[0][:2], *chain(*sides)))
        if any(row.gained for row in members):
            better.add(index)
    if rows:
        whole = [total([row for row in rows if row.range == name]) for name in parts]
        cells.append(("all", "", *chain(*(_side("", one) for one in whole))))
    return Table(title, ("task", "representation", *columns), cells, 2, frozenset(better))


def _side(lengths: str, found: Difference) -> tuple[Entry, ...]:
    return f"{lengths} ({found.n})".strip(), percent(found.first), percent(found.second)


_NO_SIDE: tuple[Entry, ...] = (NOT_MEASURED,) * 3


def total(rows: Sequence[Change]) -> Difference:
    """The difference over the problems of all rows."""
    return Difference(*map(sum, zip(*(row.difference for row in rows), strict=True)))


_CHANGE_COLUMNS = ("task", "representation", "range", "digits", "n", "before % (95 %)", "after % (95 %)", "p")


def all_tables(summaries: Mapping[str, NupaSummary], published: Sequence[Published] = ()) -> dict[str, Table]:
    """All tables, by file name.

    `published`: rows of the paper's own figures. They are shown beside the strict reading, and beside the reading of
    the released code, with which they were measured.
    """
    by_name = {
        f"{metric}_{reading}": by_range(summaries, metric, reading, published if reading in _AS_PUBLISHED else ())
        for metric in METRICS
        for reading in readings_of(summaries)
    }
    by_name |= {f"digits_by_{metric}": digits(summaries, metric, published) for metric in METRICS}
    by_name["by_length"] = by_length(summaries)
    by_name |= {"readings": readings(summaries), "errors_of_sums": errors(summaries)}
    traces = first_errors(summaries)
    return by_name | ({"first_errors_of_traces": traces} if traces.rows else {})


def by_range(summaries: Mapping[str, NupaSummary], metric: str, reading: str, published: Sequence[Published]) -> Table:
    """Figures 5-7 and Table 10: one row per task and model. S+M and L+XL pool the problems of both ranges.

    Args:
        summaries: the summary of each model, by label.
        metric: exact_match, digit_match or dlength.
        reading: one of ALL_READINGS.
        published: the paper's own rows to show beside them.
    """
    rows = []
    for task in tasks(*summaries.values()):
        for label, summary in summaries.items():
            if task.key in summary:
                parts = {**summary[task.key].ranges, **summary[task.key].domains}
                cells = [_shown(parts.get(part), reading, metric) for part in (*RANGES, *DOMAINS)]
                rows.append((task.key, label, *cells, " ".join(_n(parts.get(part)) for part in RANGES)))
        for row in published:
            if (row.task, row.metric) == (task.key, metric) and row.ranges:
                cells = [
                    f"{100 * row.ranges[part]:.0f}" if part in row.ranges else NOT_MEASURED
                    for part in (*RANGES, *DOMAINS)
                ]
                rows.append((task.key, row.label, *cells, NOT_MEASURED))
    title = f"NUPA, {UNITS[metric]} (95 % interval), {reading} reading"
    return Table(title, ("task", "model", *RANGES, *DOMAINS, "n by range"), rows, 2)


def by_length(summaries: Mapping[str, NupaSummary]) -> Table:
    """Every metric in every reading at every length: the data of length curves."""
    names = readings_of(summaries)
    rows = [
        (key, label, str(length), *(_shown(figures, reading, metric) for metric in METRICS for reading in names),
         _n(figures))
        for key, label, task in _answered(summaries)
        for length, figures in sorted(task.lengths.items())
    ]  # fmt: skip
    columns = [f"{metric.replace('_', ' ')}, {reading}" for metric in METRICS for reading in names]
    return Table("NUPA by length (95 % interval)", ("task", "model", "length", *columns, "n"), rows, 3)


def digits(summaries: Mapping[str, NupaSummary], metric: str, published: Sequence[Published]) -> Table:
    """Tables 7-9: well-learned / performance-preserving digits, strict reading.

    Each cell has the largest length that passes and, in brackets, the largest up to which every measured length passes.
    A cell is empty if too few problems were asked at some length for a pass to mean anything.
    """
    shown = {task.key for task in tasks(*summaries.values())}
    papers = [row for row in published if row.metric == metric and row.digits and row.task in shown]
    models = list(dict.fromkeys((row.model, row.source) for row in papers))
    known = {(row.model, row.source, row.task): row.digits for row in papers}
    rows = []
    for task in tasks(*summaries.values()):
        cells = [_digits(summary.get(task.key), metric) for summary in summaries.values()]
        paper = [known.get((*model, task.key)) for model in models]
        cells += [f"{found[0]} / {found[1]}" if found else NOT_MEASURED for found in paper]
        rows.append((task.key, *cells))
    title = f"NUPA, well-learned / performance-preserving digits by {metric.replace('_', ' ')}, strict reading"
    labels = [f"{model} (paper, {source})" for model, source in models]
    return Table(title, ("task", *summaries, *labels), rows, 1)


def readings(summaries: Mapping[str, NupaSummary]) -> Table:
    """Exact match in every reading: shows whether a model fails to compute, or to answer in the required form."""
    names = readings_of(summaries)
    rows = [
        (key, label, name, *(_shown(figures, reading, "exact_match") for reading in names), _n(figures))
        for key, label, task in _answered(summaries)
        for name in DOMAINS
        if (figures := task.domains.get(name))
    ]
    columns = ("task", "model", "ranges", *names, "n")
    return Table("NUPA, exact match, % (95 % interval), in every reading", columns, rows, 3)


def errors(summaries: Mapping[str, NupaSummary]) -> Table:
    """How integer sums and differences go wrong, by value, in the strict reading (lab/numbers/taxonomy.py)."""
    rows = [
        (key, label, name, *(str(counts.get(kind, 0)) for kind in (*OUTCOMES, "api_error")))
        for key, label, task in _answered(summaries)
        for name in RANGES
        if (counts := task.errors.get(name))
    ]
    columns = ("task", "model", "range", *OUTCOMES, "api_error")
    return Table("NUPA, errors of integer sums, number of answers", columns, rows, 3)


def first_errors(summaries: Mapping[str, NupaSummary]) -> Table:
    """If rules are followed: the kind of the first wrong line (lab/rules/traces/errors.py), and how many problems of
    each task were left out because their trace does not fit the window."""
    rows = [
        (key, label, name, *(str(counts.get(kind, 0)) for kind in ("none", *KINDS)), str(task.left_out))
        for key, label, task in _answered(summaries)
        for name in RANGES
        if (counts := task.first_errors.get(name))
    ]
    columns = ("task", "model", "range", "none", *KINDS, "left out of the task")
    return Table("NUPA, the first line that departs from a rule, number of answers", columns, rows, 3)


def tasks(*summaries: NupaSummary) -> list[Task]:
    """The tasks that any of the summaries contains, in the order of the task table."""
    return [task for key, task in TASKS.items() if any(key in summary for summary in summaries)]


def readings_of(summaries: Mapping[str, NupaSummary]) -> list[str]:
    """The readings that any of the summaries has, in the order in which they are shown."""
    found = {name for summary in summaries.values() for task in summary.values() for name in task.digits}
    return [name for name in ALL_READINGS if name in found]


_AS_PUBLISHED = ("strict", "released")


def _answered(summaries: Mapping[str, NupaSummary]) -> Iterator[tuple[str, str, TaskSummary]]:
    """For each task, and each model that was asked it: the task's key, the model's label, the summary of its
    answers."""
    for task in tasks(*summaries.values()):
        for label, summary in summaries.items():
            if task.key in summary:
                yield task.key, label, summary[task.key]


def _shown(figures: Figures | None, reading: str, metric: str) -> Entry:
    found = figures and figures.metric(reading, metric)
    return number(found) if metric == "dlength" else percent(found)


def _n(figures: Figures | None) -> str:
    return str(figures.n) if figures else "0"


def _digits(task: TaskSummary | None, metric: str) -> str:
    found = task.digits["strict"][metric] if task else None
    if found is None:
        return NOT_MEASURED
    well = f"{found.well_learned} ({found.well_learned_contiguous})"
    return f"{well} / {found.performance_preserving} ({found.performance_preserving_contiguous})"
