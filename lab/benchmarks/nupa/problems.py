"""Which problems NUPA asks, how many are enough, and the solved examples that may stand before a question."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TypeAlias

from lab.benchmarks.nupa.files import read_published
from lab.benchmarks.results import grouped
from lab.config.evaluation import NupaConfig
from lab.errors import TaskError
from lab.numbers.sampling import Cell, Problem, distinct_problems, problem, task_of
from lab.numbers.splits import unordered
from lab.numbers.tasks import Task

Identity: TypeAlias = tuple[str, str, str]

ENOUGH = 20
"""Answers at every length that make the longest length that passes a threshold more than luck: of 96 lengths with one
answer each, one will be right. If there are fewer test problems, all of them are enough."""


def problems_of(config: NupaConfig, seed: int) -> list[Problem]:
    """The problems of a config, drawn or taken from a published file.

    Raises TaskError if the file cannot be read, or holds none of the config's tasks.
    """
    cells, per_range = config.cells(), config.problems_per_range
    if config.published is None:
        return pick_problems(cells, seed, per_range)
    published = read_published(config.published, {cell.task.key for cell in cells})
    return pick_published(published, cells, per_range)


def pick_problems(cells: Iterable[Cell], seed: int, per_range: int) -> list[Problem]:
    """The same problems for every model: `per_range` distinct ones of each task's range, evenly over its lengths."""
    return _even(cells, per_range, lambda cell, count: distinct_problems(cell, "test", seed, count))


def pick_published(published: Sequence[Problem], cells: Iterable[Cell], per_range: int) -> list[Problem]:
    """As `pick_problems` does, but the first ones of a file, each once; raises TaskError when there is none."""
    distinct = {_identity(item): item for item in reversed(published)}
    found = grouped(reversed(distinct.values()), lambda item: (task_of(item).key, item.length))
    problems = _even(cells, per_range, lambda cell, count: found.get((cell.task.key, cell.length), [])[:count])
    if not problems:
        raise TaskError("the published file holds no problem of benchmark.tasks at benchmark.lengths")
    return problems


def _even(cells: Iterable[Cell], per_range: int, draw: Callable[[Cell, int], list[Problem]]) -> list[Problem]:
    problems = []
    for members in _by_range(cells):
        for place, cell in enumerate(members):
            count = (place + 1) * per_range // len(members) - place * per_range // len(members)
            problems += draw(cell, count)
    return problems


def _by_range(cells: Iterable[Cell]) -> Iterable[list[Cell]]:
    return grouped(cells, lambda cell: (cell.task.key, cell.task.range_of(cell.length))).values()


def out_of_reach(config: NupaConfig, limit: int | None = None) -> str:
    """That well-learned digits will be missing for want of problems, and the setting that has enough; else nothing.

    `limit`: of the questions that are asked at all.
    """
    needed: dict[int, int] = {}
    for members in _by_range(config.cells()):
        longest = members[0].task.difficulty.longest
        needed[longest] = max(needed.get(longest, 0), ENOUGH * len(members))
    if limit is None and max(needed.values()) <= config.problems_per_range:
        return ""
    enough = " and ".join(f"{count} for tasks of up to {longest} digits" for longest, count in sorted(needed.items()))
    now = f"now {config.problems_per_range}" + ("" if limit is None else f" with limit={limit}")
    return (
        f"too few problems for well-learned digits, which need {ENOUGH} answers at every length: "
        f"benchmark.problems_per_range should be {enough} ({now})"
    )


def solved_before(problems: Sequence[Problem], shots: int, seed: int = 0) -> Mapping[str, list[Problem]]:
    """The solved examples of each task, by its key; none of them is among the problems."""
    tasks = {task_of(item).key: task_of(item) for item in problems}
    asked = {_identity(item) for item in problems}
    return {key: solved_examples(task, shots, seed, asked) for key, task in tasks.items()}


def solved_examples(task: Task, count: int, seed: int, asked: Set[Identity] = frozenset()) -> list[Problem]:
    """Training problems of as many lengths, evenly spaced from the shortest that is tested to the longest of M.

    None is among those `asked`, as a published question might be.
    """
    shortest, longest = task.tested_lengths[0], task.difficulty.ranges["M"][-1]
    lengths = [shortest + (longest - shortest) * place // max(1, count - 1) for place in range(count)]
    examples = []
    for place, length in enumerate(lengths):
        drawn = (problem(Cell(task, length), "train", seed, index) for index in itertools.count(place))
        examples.append(next(item for item in drawn if _identity(item) not in asked))
    return examples


def _identity(item: Problem) -> Identity:
    """What makes two problems the same question; swapped operands do."""
    return task_of(item).key, *unordered(item.a, item.b)


def has_enough(cell: Cell, answers: int) -> bool:
    """Whether so many answers at one length tell more than luck."""
    return answers >= ENOUGH or 0 < answers == len(distinct_problems(cell, "test", 0, ENOUGH))
