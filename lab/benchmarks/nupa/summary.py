"""Summarizes the answers to NUPA for each task: by range, domain and length, with digits and errors."""

from collections import Counter
from collections.abc import Mapping, Sequence

from lab.benchmarks.nupa.problems import has_enough
from lab.benchmarks.results import Digits, Figures, NupaSummary, Sample, TaskSummary, answered, grouped, shared_readings
from lab.numbers.metrics import METRICS, PERFORMANCE_PRESERVING, WELL_LEARNED, contiguous_passing, longest_passing
from lab.numbers.sampling import Cell
from lab.numbers.tasks import HARD, TASKS, Task
from lab.text.answers import READINGS

RANGES = tuple(HARD.ranges)
"""S, M, L and XL."""

DOMAINS = {"S+M": ("S", "M"), "L+XL": ("L", "XL")}
"""In-domain and out-of-domain: the paper trains on S and M, and also tests beyond them."""

CLASSIFIED = ("add_integer", "sub_integer")
"""The tasks whose wrong answers have an error class (lab/numbers/taxonomy.py)."""


def summarize(samples: Sequence[Sample], left_out: Mapping[str, int]) -> NupaSummary:
    """The summary of each task, in the order of the task table; `left_out` counts problems that were not asked."""
    by_task = grouped(samples, lambda sample: sample.task)
    return {key: _summary(task, by_task[key], left_out.get(key, 0)) for key, task in TASKS.items() if key in by_task}


def _summary(task: Task, samples: Sequence[Sample], left_out: int) -> TaskSummary:
    by_range = grouped(samples, lambda sample: task.range_of(sample.length))
    domains = {name: [s for part in parts for s in by_range.get(part, [])] for name, parts in DOMAINS.items()}
    by_length = grouped(samples, lambda sample: sample.length)
    found = {
        "ranges": {name: Figures.of(members) for name, members in by_range.items()},
        "domains": {name: Figures.of(members) for name, members in domains.items() if members},
        "lengths": {length: Figures.of(by_length[length]) for length in sorted(by_length)},
        "digits": {
            reading: {metric: _digits(task, by_length, reading, metric) for metric in METRICS}
            for reading in shared_readings(answered(samples)) or READINGS
        },
    }
    if task.key in CLASSIFIED:
        found["errors"] = {name: _errors(members) for name, members in by_range.items()}
    if any("first_error" in sample.remarks for sample in samples):
        found["first_errors"] = {name: _first_errors(members) for name, members in by_range.items()}
    return TaskSummary(**found, **({"left_out": left_out} if left_out else {}))  # type: ignore[arg-type]


def _digits(task: Task, by_length: Mapping[int, Sequence[Sample]], reading: str, metric: str) -> Digits | None:
    """Well-learned and performance-preserving digits (A.1.8); None if a length has too few answers to tell."""
    values = {
        length: [getattr(sample.readings[reading], metric) for sample in answered(members)]
        for length, members in by_length.items()
    }
    if not all(has_enough(Cell(task, length), len(members)) for length, members in values.items()):
        return None
    means = {length: sum(members) / len(members) for length, members in values.items()}
    return Digits(
        well_learned=longest_passing(means, metric, WELL_LEARNED),
        well_learned_contiguous=contiguous_passing(means, metric, WELL_LEARNED),
        performance_preserving=longest_passing(means, metric, PERFORMANCE_PRESERVING),
        performance_preserving_contiguous=contiguous_passing(means, metric, PERFORMANCE_PRESERVING),
    )


def _first_errors(samples: Sequence[Sample]) -> dict[str, int]:
    """How often each kind of line was the first to depart from the rule; "none" if no line did."""
    return dict(Counter((sample.remarks["first_error"] or {"kind": "none"})["kind"] for sample in answered(samples)))


def _errors(samples: Sequence[Sample]) -> dict[str, int]:
    """How often each class of error occurred, in the strict reading."""
    return dict(
        Counter(sample.readings["strict"].error if sample.answered else "api_error" for sample in samples)  # type: ignore[arg-type]
    )
