"""What NUPA found, in a few lines: shares over all questions, by representation and by operation (exact match)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from lab.benchmarks.nupa.tables import Change, tasks, total
from lab.benchmarks.results import NupaSummary, grouped
from lab.drawing.tables import percent, points, probability
from lab.drawing.terminal import ranked
from lab.numbers.statistics import Estimate, pooled
from lab.numbers.tasks import Task

_NAMED = 3
"""How many of the largest changes a line names."""


def found(summary: NupaSummary) -> list[str]:
    """Exact match over all questions in the strict, loose and final reading, and by representation, operation and range
    if these differ.

    If rules are followed, a last line counts the first errors.
    """
    shares = _by(summary, lambda task, part: "all")
    if not shares:
        return ["no question was answered"]
    right = shares["all"]
    others = {name: _by(summary, lambda task, part: "all", name).get("all") for name in ("loose", "final")}
    otherwise = ", ".join(f"with the {name} reading {percent(share)}" for name, share in others.items() if share)
    groups = {
        "representation": _by(summary, lambda task, part: task.representation.name),
        "operation": _by(summary, lambda task, part: task.name),
        "range": _by(summary, lambda task, part: part),
    }
    return [
        f"exact match, % (95 % interval), n={right.n}: {percent(right)}; {otherwise}",
        *(f"by {name}: {ranked(parts)}" for name, parts in groups.items() if _differ(parts)),
        *_first_errors(summary),
    ]


def _differ(parts: Mapping[str, Estimate]) -> bool:
    return len({share.value for share in parts.values()}) > 1


def compared(summaries: Mapping[str, NupaSummary]) -> list[str]:
    """Exact match in a line for each model: over all questions, and by representation."""
    lines = ["exact match, % (95 % interval)"]
    for label, summary in summaries.items():
        right = _by(summary, lambda task, part: "all")
        parts = ranked(_by(summary, lambda task, part: task.representation.name))
        found = f"{percent(right['all'])}, n={right['all'].n}; {parts}" if right else "no question was answered"
        lines.append(f"{label}: {found}")
    return lines


def changed(rows: Sequence[Change]) -> list[str]:
    """What tuning changed: over all problems, by representation, and the largest changes beyond chance."""
    if not rows:
        return ["no problem was answered both before and after"]
    whole = total(rows)
    by_representation = grouped(rows, lambda row: row.representation)
    parts = [
        f"{name} {percent(total(of).first)} to {percent(total(of).second)}" for name, of in by_representation.items()
    ]
    real = sorted((row for row in rows if row.p < 0.05), key=lambda row: -abs(row.difference.estimate.value))
    named = [f"{r.task} {r.representation} {r.range} {points(r.difference.estimate)}" for r in real[:_NAMED]]
    return [
        f"exact match, % (95 % interval), n={whole.n}: {percent(whole.first)} before, {percent(whole.second)} after; "
        f"p {probability(whole.p)}",
        f"by representation: {', '.join(parts)}",
        f"largest changes, in points: {', '.join(named) or 'none beyond chance'}"
        + (f"; {len(real)} of {len(rows)} rows changed beyond chance" if real else ""),
    ]


def _first_errors(summary: NupaSummary) -> list[str]:
    """If rules are followed: how often each kind of line was the first to depart from a rule, most frequent first."""
    kinds = Counter[str]()
    for task in summary.values():
        for counts in task.first_errors.values():
            kinds.update(counts)
    told = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common() if count)
    return [f"the first line that departs from a rule: {told}"] if told else []


def _by(summary: NupaSummary, group: Callable[[Task, str], str], reading: str = "strict") -> dict[str, Estimate]:
    """Exact match over each group of tasks and ranges; groups without an answer are left out."""
    shares = defaultdict(list)
    for task in tasks(summary):
        for part, figures in summary[task.key].ranges.items():
            if share := figures.metric(reading, "exact_match"):
                shares[group(task, part)].append(share)
    return {name: pooled(parts) for name, parts in shares.items()}
