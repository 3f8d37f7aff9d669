"""Chooses the problems that NUPA asks, and the solved examples that may come before a question."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache
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
"""How many answers each length needs, so that "the longest length that passes a threshold" is not a matter of luck:
with one answer at each of 96 lengths, some long one would pass by chance. If a length has fewer test problems than
this, all of them are enough."""


def problems_of(config: NupaConfig, seed: int) -> list[Problem]:
    """The problems of a config, either drawn or taken from a published file.

    Raises TaskError if the file cannot be read, or contains none of the config's tasks.
    """
    cells, per_range = config.cells(), config.problems_per_range
    if config.published is None:
        return pick_problems(cells, seed, per_range)
    published = read_published(config.published, {cell.task.key for cell in cells})
    return pick_published(published, cells, per_range)


def pick_problems(cells: Iterable[Cell], seed: int, per_range: int) -> list[Problem]:
    """`per_range` distinct test problems of each task in each range, spread evenly over the lengths of the range.

    The problems are the same for every model.

    Args:
        cells: the tasks and lengths.
        seed: the seed from which problems are drawn.
        per_range: how many problems each task has in each range of lengths.
    """
    return _even(cells, per_range, lambda cell, count: distinct_problems(cell, "test", seed, count))


def pick_published(published: Sequence[Problem], cells: Iterable[Cell], per_range: int) -> list[Problem]:
    """Like `pick_problems`, but takes the first distinct problems of a file. Raises TaskError if there are none."""
    distinct = {_identity(item): item for item in reversed(published)}
    found = grouped(reversed(distinct.values()), lambda item: (task_of(item).key, item.length))
    problems = _even(cells, per_range, lambda cell, count: found.get((cell.task.key, cell.length), [])[:count])
    if not problems:
        raise TaskError("the published file holds no problem of benchmark.tasks at benchmark.lengths")
    return problems


def _even(cells: Iterable[Cell], per_range: int, draw: Callable[[Cell, int], list[Problem]]) -> list[Problem]:
    problems = []
    for members in _by_range(cells):
        for index, cell in enumerate(members):
            count = (index + 1) * per_range // len(members) - index * per_range // len(members)
            problems += draw(cell, count)
    return problems


def _by_range(cells: Iterable[Cell]) -> Iterable[list[Cell]]:
    return grouped(cells, lambda cell: (cell.task.key, cell.task.range_of(cell.length))).values()


def out_of_reach(config: NupaConfig, limit: int | None = None) -> str:
    """Why there is no table of well-learned digits, with the setting to change; empty if there are enough problems.

    Args:
        config: the benchmark's config.
        limit: the maximum number of questions in all; None if there is no limit.
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
        f"no well-learned digits, which need {ENOUGH} answers at every length: "
        f"benchmark.problems_per_range should be {enough} ({now})"
    )


def solved_before(problems: Sequence[Problem], shots: int, seed: int = 0) -> Mapping[str, list[Problem]]:
    """The solved examples of each task, by its key; none of them is among `problems`."""
    tasks = {task_of(item).key: task_of(item) for item in problems}
    asked = {_identity(item) for item in problems}
    return {key: solved_examples(task, shots, seed, asked) for key, task in tasks.items()}


def solved_examples(task: Task, count: int, seed: int, asked: Set[Identity] = frozenset()) -> list[Problem]:
    """`count` training problems whose lengths are evenly spaced, from the shortest tested length to the longest of M.

    Args:
        task: the task.
        count: how many examples.
        seed: the seed from which problems are drawn.
        asked: questions that must not be among the examples; a question from a published file might be.

    Raises TaskError if all training questions that are found at one of these lengths are among those asked.
    """
    shortest, longest = task.tested_lengths[0], task.difficulty.ranges["M"][-1]
    lengths = [shortest + (longest - shortest) * i // max(1, count - 1) for i in range(count)]
    examples = []
    for i, length in enumerate(lengths):
        drawn = (problem(Cell(task, length), "train", seed, index) for index in range(i, i + _SEARCHED))
        free = next((item for item in drawn if _identity(item) not in asked), None)
        if free is None:
            raise TaskError(
                f"{task.key}: no training question of {length} digits was found that is not asked; use shots=0"
            )
        examples.append(free)
    return examples


_SEARCHED = 1000
"""How many training problems of a length are searched for one that is not asked. There are few of the shortest."""


def _identity(item: Problem) -> Identity:
    """What two problems have in common if they are the same question; the order of operands does not matter."""
    return task_of(item).key, *unordered(item.a, item.b)


def has_enough(cell: Cell, answers: int) -> bool:
    """Whether a length has enough answers (see ENOUGH)."""
    return answers >= ENOUGH or answers >= max(1, _distinct(cell))


@cache
def _distinct(cell: Cell) -> int:
    """How many distinct test problems there are, up to ENOUGH."""
    return len(distinct_problems(cell, "test", 0, ENOUGH))
