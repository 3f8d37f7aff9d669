"""What each model scored, in the form from which all charts are drawn.

A series is one model in one setting: {task: {range: cell}} and {task: {length: cell}}. For each reading, in the order
of ALL_READINGS, a cell contains three estimates in the order of METRICS, and nothing for a reading that was not made;
if all readings agree, it contains the first alone. An estimate is [value, low, high, n], or None if it was not
measured. The benchmarks of sums are treated like NUPA's tasks, but have only an exact match.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lab.benchmarks.nupa.published import PUBLISHED
from lab.benchmarks.nupa.summary import RANGES
from lab.benchmarks.results import VERSION
from lab.errors import RunError
from lab.numbers.metrics import METRICS
from lab.numbers.tasks import SUM, TASKS
from lab.site.gather import Record
from lab.text.answers import ALL_READINGS, READINGS

Cells: TypeAlias = dict[str, dict[str, list[Any]]]

SUMS = {"two_integers": "sum of two integers", "carry_free": "carry-free sum"}


@dataclass
class Series:
    """One model in one setting."""

    label: str
    benchmark: str
    trained: list[int] | None = None
    """The shortest and longest trained length in digits; None if that is unknown or differs between tasks."""
    ranges: Cells = field(default_factory=dict)
    lengths: Cells = field(default_factory=dict)
    readings: list[str] = field(default_factory=list)
    """The readings of its cells, in the order of ALL_READINGS."""

    def shown(self) -> dict[str, Any]:
        """What the page draws of it."""
        return {key: getattr(self, key) for key in ("label", "trained", "ranges", "lengths", "readings")}


def task_rows() -> list[dict[str, Any]]:
    """The tasks that the page lets its reader choose: key, name, bounds of the ranges."""
    rows = [
        {
            "key": task.key,
            "name": f"{task.name.replace('_', ' ')}, {task.representation.name}",
            "ranges": {name: [span[0], span[-1]] for name, span in task.difficulty.ranges.items()},
        }
        for task in TASKS.values()
    ]
    others = {**SUMS, SUM.key: "sum of integers"}
    return rows + [{"key": key, "name": name, "ranges": {}} for key, name in others.items()]


def of_record(record: Record) -> list[Series]:
    """The series of a run; empty if it has no scores. Raises RunError if the summary is from another version."""
    summary, name = record.summary, record.name
    if not summary or record.command in ("adder", "cost", "probe"):
        return []
    if summary.get("version") != VERSION:
        raise RunError("summary.json: from another version of the lab; run its command again with resume=true")
    if "before" in summary:
        return [_nupa(Series(f"{name}, {part}", "nupa"), summary[part]) for part in ("before", "after")]
    if "lengths" in summary:
        return [_lengths(Series(name, "lengths", trained=record.config["data"]["lengths"]), summary["lengths"])]
    found = [_nupa(Series(name, "nupa"), summary["nupa"])] if "nupa" in summary else []
    return found + [_sums(Series(name, kind), summary[kind]) for kind in SUMS if kind in summary]


def published() -> list[Series]:
    """The paper's own figures by range. They are means without interval or n, which the paper does not report."""
    found: dict[str, Series] = {}
    for row in PUBLISHED:
        if row.ranges:
            series = found.setdefault(row.label, Series(row.label, "published"))
            cells = series.ranges.setdefault(row.task, {})
            for name, value in row.ranges.items():
                estimates = cells.setdefault(name, [[None] * len(METRICS)])[0]
                estimates[METRICS.index(row.metric)] = [value, None, None, None]
    return list(found.values())


def estimate(found: Mapping[str, Any] | None) -> list[float | int | None] | None:
    """[value, low, high, n], rounded to the precision of a chart; None if there is no finite value."""
    if not found or not math.isfinite(found["value"]):
        return None
    parts = [found[key] for key in ("value", "low", "high")]
    return [*(None if part is None or not math.isfinite(part) else round(part, 4) for part in parts), found["n"]]


def _nupa(series: Series, summary: Mapping[str, Any]) -> Series:
    for key, figures in summary.items():
        for part, into, names in (("ranges", series.ranges, RANGES), ("lengths", series.lengths, None)):
            found = figures.get(part, {})
            cells = {name: _cell(found[name]) for name in names or sorted(found, key=int) if name in found}
            into[key] = {name: cell for name, cell in cells.items() if cell}
            _note_readings(series, found.values())
    return series


def _lengths(series: Series, summary: Mapping[str, Any]) -> Series:
    for key, found in summary.items():
        series.lengths[key] = {name: _cell({"strict": found[name]}) for name in sorted(found, key=int)}
    return series


def _sums(series: Series, summary: Mapping[str, Any]) -> Series:
    found = summary["by_digits"]
    cells = {
        length: {name: {"exact_match": rates.get(name)} for name in ALL_READINGS if name in READINGS or name in rates}
        for length, rates in found.items()
    }
    series.lengths[series.benchmark] = {length: _cell(cells[length]) for length in sorted(cells, key=int)}
    _note_readings(series, cells.values())
    return series


def _note_readings(series: Series, cells: Iterable[Mapping[str, Any]]) -> None:
    made = {*series.readings}.union(*cells)
    series.readings = [name for name in ALL_READINGS if name in made]


def _cell(readings: Mapping[str, Any]) -> list[Any]:
    cell = {
        name: [estimate(readings[name].get(metric)) for metric in METRICS] for name in readings if name in ALL_READINGS
    }
    first = next(iter(cell.values()), None)
    if all(found == first for found in cell.values()):
        return list(cell.values())[:1]
    last = max(map(ALL_READINGS.index, cell), default=-1)
    return [cell.get(name, []) for name in ALL_READINGS[: last + 1]]
