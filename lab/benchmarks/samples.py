"""Samples sorted out: those that have a score, and those of a kind."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from lab.benchmarks.benchmark import Sample

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
