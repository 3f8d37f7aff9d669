"""Pairs of problems of any number task, whose numbers differ in one thing and whose answers differ for that reason.

    first, middle, last   one digit of a number changes, and the answers, which have the same length, first differ at
                          their first character, between, or only at their last one
    comparison            one digit changes, and the other number becomes the larger one
    order                 the two numbers change places
    point                 the point of a decimal number moves by one place

    from lab.probing.task_pairs import task_pairs

    pairs = task_pairs("max_float", "comparison", length=3, count=64, seed=0)

All are drawn from the lab's problems (lab/numbers/sampling.py), and depend only on the arguments. A task without such a
pair is refused: no single digit changes how many digits a number has, and 3 + 5 does not depend on the order.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lab.errors import TaskError, check_one_of
from lab.numbers.philox import philox
from lab.numbers.sampling import Cell, Problem, distinct_problems, posed, task_of
from lab.numbers.tasks import KNOWN, Task
from lab.probing.contrast import Contrast, Right
from lab.probing.prompt_pairs import contrast_of
from lab.probing.readings import Reading, reader_of

_TRIED = 6
"""How many problems are tried for each pair that is wanted."""
_LEAST = 60
"""The least number of problems that are tried."""


class TaskPairs(NamedTuple):
    """Base and source, problem by problem."""

    base: Sequence[Problem]
    source: Sequence[Problem]
    right: Right = "first"
    """See `Contrast`."""

    def contrast(self, subject: Any) -> Contrast:
        """The pairs as a model reads them. Roles: "a", "b", "operator", "changed", "last token", "answer so far", and
        digits by their order in writing, such as "digit 2 of a".

        Raises TaskError if the model does not know the task, or if the prompts of a pair have different lengths.
        """
        reader = reader_of(subject)
        readings = [tuple(map(reader.problem, pair)) for pair in zip(self.base, self.source, strict=True)]
        roles: dict[str, list[list[list[int]]]] = {}
        for number, pair in enumerate(readings):
            for name, at in _roles(pair).items():
                roles.setdefault(name, [[[], []] for _ in readings])[number] = at
        ordered = sorted(roles, key=lambda name: (name.startswith("digit"), list(roles).index(name)))
        return contrast_of(
            readings, {name: roles[name] for name in ordered}, reader, whole=False, pad=getattr(reader, "pad", 0),
            right=self.right,
        )  # fmt: skip


def _roles(pair: Sequence[Reading]) -> dict[str, list[list[int]]]:
    """The tokens of each part, and of each digit of a number, in base and source. A part that a token shares with
    another part belongs to both."""
    found = {name: [one.tokens_of(one.parts[name]) for one in pair] for name in pair[0].parts if name in pair[1].parts}
    for number in ("a", "b"):
        digits = [_digits(one, number) for one in pair]
        for at, both in enumerate(zip(*digits, strict=False), 1):
            found[f"digit {at} of {number}"] = [[token] for token in both]
    return found


def _digits(reading: Reading, number: str) -> list[int]:
    """The token of each digit of a number, in the order of writing."""
    start, end = reading.parts.get(number, (0, 0))
    return [reading.tokens_of((at, at + 1))[0] for at in range(start, end) if reading.text[at].isdigit()]


def task_pairs(task: str, change: str, length: int, count: int, seed: int, right: Right = "first") -> TaskPairs:
    """Pairs of problems of a task.

    Args:
        task: the key of the task, such as "max_float".
        change: one of `CHANGES`.
        length: how many digits the longest part of the longest number has.
        count: how many pairs.
        seed: selects the problems.
        right: when a pair counts as answered right: if each answer is the most likely of all tokens ("first"), or is
            likelier than the other one ("likelier"), for models that were not tuned on the task.

    Raises TaskError for an unknown task or change, and if there are no such pairs.
    """
    check_one_of("task", task, list(KNOWN))
    check_one_of("change", change, list(CHANGES))
    found, asked = [], KNOWN[task]
    split = "test" if length in asked.tested_lengths else "train"
    for number, base in enumerate(distinct_problems(Cell(asked, length), split, seed, max(_LEAST, _TRIED * count))):
        generator = np.random.Generator(philox("task pairs", task, change, length, seed, number))
        change_of, fits = CHANGES[change]
        candidates = (posed(asked, a, b, length) for a, b in change_of(base, generator))
        good = (one for one in candidates if one and _differs(base, one) and fits(base, one))
        if source := next(good, None):
            found.append((base, source))
        if len(found) == count:
            break
    if not found:
        raise TaskError(f"{task} has no pairs of the kind {change!r} with {length} digits: {_why(asked, change)}")
    base, source = (list(side) for side in zip(*found, strict=True))
    return TaskPairs(base, source, right)


def _why(task: Task, change: str) -> str:
    if change == "order":
        return "its answer does not depend on the order of the numbers, or there is one number"
    if change == "point":
        return "its numbers have no point that can move"
    return "no change of one digit changes its answer there; try another change or length"


def _differs(base: Problem, source: Problem) -> bool:
    """Whether the answers differ before the end of the shorter one, where a model reads it."""
    return not (base.answer.startswith(source.answer) or source.answer.startswith(base.answer))


def _digit_changes(problem: Problem, generator: np.random.Generator) -> Iterator[tuple[str, str | None]]:
    """The operands with one digit replaced, in a random order. No number begins with a new 0, or becomes another kind
    of number."""
    numbers = [problem.a] if problem.b is None else [problem.a, problem.b]
    spots = [
        (which, at, digit)
        for which, number in enumerate(numbers)
        for at, old in enumerate(number)
        if old.isdigit()
        for digit in "0123456789"
        if digit != old
    ]
    for index in generator.permutation(len(spots)):
        which, at, digit = spots[index]
        changed = [*numbers]
        changed[which] = f"{numbers[which][:at]}{digit}{numbers[which][at + 1 :]}"
        if _is_canonical(task_of(problem), changed):
            yield changed[0], changed[1] if len(changed) > 1 else None


def _is_canonical(task: Task, numbers: Sequence[str]) -> bool:
    """Whether each number is written as the lab would write it."""
    kinds = [task.representation, task.second]
    try:
        return all(str(kind.parse(text)) == text for kind, text in zip(kinds, numbers, strict=False) if kind)
    except (ValueError, ZeroDivisionError):
        return False


def _exchanged(problem: Problem, generator: np.random.Generator) -> Iterator[tuple[str, str | None]]:
    if problem.b is not None and not task_of(problem).has_parameter:
        yield problem.b, problem.a


def _point_moved(problem: Problem, generator: np.random.Generator) -> Iterator[tuple[str, str | None]]:
    for step in (-1, 1):
        whole, point, rest = problem.a.partition(".")
        moved = f"{whole[:-1]}.{whole[-1]}{rest}" if step < 0 else f"{whole}{rest[:1]}.{rest[1:]}"
        if point and _is_canonical(task_of(problem), [moved]):
            yield moved, problem.b


def _first_difference(base: Problem, source: Problem) -> int | None:
    """Where answers of the same length first differ; None if their lengths differ."""
    if len(base.answer) != len(source.answer):
        return None
    pairs = zip(base.answer, source.answer, strict=True)
    return next(at for at, (own, other) in enumerate(pairs) if own != other)


def _at_first(base: Problem, source: Problem) -> bool:
    return _first_difference(base, source) == 0


def _in_the_middle(base: Problem, source: Problem) -> bool:
    return (_first_difference(base, source) or 0) in range(1, len(base.answer) - 1)


def _at_last(base: Problem, source: Problem) -> bool:
    return _first_difference(base, source) == len(base.answer) - 1


def _flipped(base: Problem, source: Problem) -> bool:
    """Whether the answer was one number and is now the other."""
    sides = [[one.answer == number for number in (one.a, one.b)] for one in (base, source)]
    return base.b is not None and sum(sides[0]) == sum(sides[1]) == 1 and sides[0] != sides[1]


Changes = Callable[[Problem, np.random.Generator], Iterator[tuple[str, str | None]]]
Fits = Callable[[Problem, Problem], bool]
CHANGES: Mapping[str, tuple[Changes, Fits]] = {
    "first": (_digit_changes, _at_first),
    "middle": (_digit_changes, _in_the_middle),
    "last": (_digit_changes, _at_last),
    "comparison": (_digit_changes, _flipped),
    "order": (_exchanged, _differs),
    "point": (_point_moved, _differs),
}
"""How the numbers change, and what must come of it."""


def changes_of(task: str, length: int) -> list[str]:
    """The kinds of change of which a task has pairs at a length."""
    return [change for change in CHANGES if _has(task, change, length)]


def _has(task: str, change: str, length: int) -> bool:
    try:
        return bool(task_pairs(task, change, length, 1, 0).base)
    except TaskError:
        return False
