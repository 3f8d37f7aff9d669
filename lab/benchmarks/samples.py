"""Samples sorted out, and summed up: those that have a score, those of a kind, and what their scores amount to."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from lab.benchmarks.benchmark import Sample
from lab.numbers.statistics import bootstrap_mean, bootstrap_share, wilson

Item = TypeVar("Item")
Key = TypeVar("Key")


def answered(samples: Iterable[Sample]) -> list[Sample]:
    """Those that an endpoint answered: only they have a score."""
    return [sample for sample in samples if not sample["api_error"]]


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    groups: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def estimates(scores: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """The mean of each metric with n and 95 % interval; raises ValueError when there are no scores."""
    return {
        "exact_match": wilson(sum(score["exact_match"] for score in scores), len(scores)).to_json(),
        "digit_match": bootstrap_share([score["digit_match"] for score in scores]).to_json(),
        "dlength": bootstrap_mean([score["dlength"] for score in scores]).to_json(),
    }
