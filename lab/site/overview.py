"""The first page: what each run scored, when, and with which command. The seeds of one setting share a row.

A score is the share of right answers (exact match, strict reading) among all problems of one part of a run: its trained
lengths, the lengths beyond, or the answers before or after fine-tuning.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from lab.config.schema import RunConfig
from lab.drawing.tables import percent
from lab.numbers.statistics import Estimate, pooled, seeds_proportion
from lab.site.gather import Record
from lab.site.series import SUMS, Series

Scores = Mapping[str, Estimate]


@dataclass
class Row:
    """A run in the overview."""

    number: int
    """The index of the run, in the order of the records."""
    record: Record
    ended: str
    minutes: float | None
    """Minutes of training, over all starts of the run; None if it trained nothing."""
    scores: Scores
    series: list[tuple[str, int]] = field(default_factory=list)
    """The label of each series, and in how many tasks it has scores by range."""
    sets: list[tuple[Any, ...]] = field(default_factory=list)
    """Of each file of samples: its label, its folder, its number of samples and the digest of its problems."""
    trained: bool = False
    """Whether there are training curves."""

    def shown(self) -> dict[str, Any]:
        """What the page knows of a run before it opens it."""
        record, seed = self.record, self.record.config.get("seed")
        facts = {key: getattr(self, key) for key in ("number", "ended", "minutes", "series", "sets", "trained")}
        facts |= {key: getattr(record, key) for key in ("name", "command", "model", "status", "notes")}
        return {**facts, "seed": seed if isinstance(seed, int) else None, "scores": _shown(self.scores)}


class Fold(NamedTuple):
    """One row of the overview: a run, or the seeds of one setting."""

    name: str
    rows: list[Row]
    scores: Scores

    def shown(self) -> dict[str, Any]:
        """The row, with those of its runs."""
        return {"name": self.name, "runs": [one.shown() for one in self.rows], "scores": _shown(self.scores)}


def row(number: int, record: Record, found: Sequence[Series], sets: Sequence[tuple[Any, ...]] = ()) -> Row:
    """The row of a run with these series and sets of samples."""
    scored: Scores = {}
    with record.noting("summary.json"):
        scored = scores(record, found)
    heads = [(one.label, len(one.ranges)) for one in found if one.ranges or one.lengths]
    return Row(number, record, _ended(record), _minutes(record), scored, heads, list(sets))


def _shown(scores: Scores) -> list[list[Any]]:
    return [[label, found.value, str(percent(found))] for label, found in scores.items()]


def scores(record: Record, found: Sequence[Series]) -> dict[str, Estimate]:
    """The scores of a run by the name of the scored part (such as "trained lengths" or "after"), the latest first."""
    whole = record.summary if record.command == "adder" else record.summary.get("own_questions") or {}
    if isinstance(estimate := whole.get("exact_match"), dict):
        return {"": Estimate(**estimate)}
    parts = {}
    for one in reversed(found):
        for label, lengths in _parts(one).items():
            name = ", ".join(filter(None, (one.label.removeprefix(record.name).strip(", "), label)))
            if share := _pooled(cell for by_length in lengths for cell in by_length.values()):
                parts[SUMS.get(name, name)] = share
    return parts


def fold(rows: Sequence[Row]) -> list[Fold]:
    """Combines rows whose configs differ only in the seed, or in other keys of `RunConfig`, into one, at the place of
    the first."""
    groups: dict[str, list[Row]] = {}
    for one in rows:
        setting = {key: value for key, value in one.record.config.items() if key not in RunConfig.model_fields}
        groups.setdefault(json.dumps([one.record.command, setting], default=str), []).append(one)
    folded = []
    for members in groups.values():
        seeds = [one.record.config.get("seed") for one in members]
        together = len(set(map(str, seeds))) == len(seeds) and None not in seeds
        folded += [members] if together else [[one] for one in members]
    return [
        Fold(
            _shared_name([one.record.name for one in members]),
            members,
            _mean([one.scores for one in members], members[0].record.command != "pretrain"),
        )
        for members in sorted(folded, key=lambda members: members[0].number)
    ]


def _parts(one: Series) -> dict[str, list[dict[str, Any]]]:
    """The cells of each part of a run, by length, or by range if there are no scores by length."""
    cells = [one.lengths.get(task) or one.ranges.get(task, {}) for task in {**one.ranges, **one.lengths}]
    if not one.trained:
        return {"": cells}
    first, last = one.trained
    parts: dict[str, list[dict[str, Any]]] = {"trained lengths": [], "beyond": []}
    for lengths in cells:
        for length, cell in lengths.items():
            parts["trained lengths" if first <= int(length) <= last else "beyond"].append({length: cell})
    return parts


def _pooled(cells: Iterable[list[Any]]) -> Estimate | None:
    found = [Estimate(*cell[0][0]) for cell in cells if cell[0][0] and cell[0][0][3]]
    return pooled(found) if found else None


def _mean(runs: Sequence[Scores], same_problems: bool) -> Scores:
    """Means over the seeds that have scores; those that are still running have none. `same_problems`: see
    `seeds_proportion`."""
    seeds = [scores for scores in runs if scores]
    if len(seeds) < 2:
        return seeds[0] if seeds else {}
    shared = [label for label in seeds[0] if all(label in scores for scores in seeds)]
    counts = {label: min(one[label].n for one in seeds) for label in shared}
    return {
        label: seeds_proportion([one[label].value for one in seeds], count, same_problems)
        for label, count in counts.items()
    }


def _shared_name(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    without_seeds = {re.sub(r"[_-]?\d+$", "", name) for name in names}
    return without_seeds.pop() if len(without_seeds) == 1 else f"{names[0]} and others"


def _ended(record: Record) -> str:
    """When the status was last written, according to the file's date (which copying may change). Empty for a run that
    has not ended."""
    if record.status in ("running", "interrupted"):
        return ""  # it was written at the start
    path = record.run.path / "status"
    written = path.stat().st_mtime if path.is_file() else 0
    return datetime.fromtimestamp(written, UTC).strftime("%Y-%m-%d %H:%M") if written else ""


def _minutes(record: Record) -> float | None:
    times = []
    with record.noting("training_times.jsonl"):
        times = [float(start["seconds"]) for start in record.run.read("training_times")]
    return sum(times) / 60 if times else None
