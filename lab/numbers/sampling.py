"""Problems as a pure function of (seed, split, task, length, index).

Nothing is pre-generated: any problem is computed when it is asked for, and is the same on every machine. Problems
come in blocks. Each block has its own counter-based generator (Philox), keyed by a hash of everything that names the
block. Only the generator's raw words are used: numpy guarantees that their streams never change, but it gives no such
guarantee for the distributions built on them.

Raw numbers follow Number Cookbook A.1.7: the first has the full length L, the second a length uniform in L/2..L.
"""

import itertools
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lab.errors import TaskError
from lab.numbers.philox import philox
from lab.numbers.representations import Float, Fraction, Integer, Scientific
from lab.numbers.several import Integers
from lab.numbers.splits import Split, split_of, unordered
from lab.numbers.tasks import KNOWN, Operands, Prepare, Task

BLOCK = 128
"""Problems of a block."""
_ROUND = 160
"""Candidates that are drawn together."""
_ROUNDS_WITHOUT_RESULT = 64
"""A split is assumed to be empty if this many rounds of candidates contain none of its problems."""


class Problem(NamedTuple):
    """A question and its exact answer; the numbers are canonical text."""

    task: str
    representation: str
    a: str
    b: str | None
    answer: str
    length: int
    """How many digits the longest part of the longest operand has."""


def task_of(problem: Problem) -> Task:
    return KNOWN[f"{problem.task}_{problem.representation}"]


class Cell(NamedTuple):
    """The problems of one task at one length."""

    task: Task
    length: int
    prepare: Prepare | None = None
    """How a raw pair becomes the question; None for the task's own rule."""


def posed(task: Task, a: str, b: str | None, length: int) -> Problem | None:
    """The problem of a task with these operands, with its answer computed. None if there is no such question, as for
    3/0, 3 - 5, digit 9 of 1234, how often 12 occurs in 1212, or 50400 with one significant figure.

    Args:
        task: what is asked.
        a: the first operand, in the task's notation.
        b: the second operand, or None.
        length: the length to record in the problem; it is not checked.
    """
    if (b is None) != (task.second is None):
        return None
    try:
        first = task.representation.parse(a)
        second = task.second.parse(b) if task.second and b is not None else None
        if (task.name == "count" and int(str(second)) > 9) or (task.name == "sig" and int(str(second)) < 2):
            return None
        answer = str(task.solve(first, second))
    except (ValueError, IndexError, ZeroDivisionError):
        return None
    if not task.answer.pattern.fullmatch(answer):
        return None
    return Problem(
        task.name, task.representation.name, str(first), None if second is None else str(second), answer, length
    )


def problem(cell: Cell, split: Split, seed: int, index: int) -> Problem:
    """Problem number `index` of an endless stream. Raises TaskError if the split is empty at that length.

    Args:
        cell: the task and the length.
        split: "train", "valid" or "test".
        seed: selects the stream.
        index: the problem's number in the stream, from 0.
    """
    return block(cell, split, seed, index // BLOCK)[index % BLOCK]


def has_problems(cell: Cell, split: Split, seed: int) -> bool:
    """Whether the split has any problem of the cell's task and length."""
    try:
        return next(_drawn(cell, split, seed, 0), None) is not None
    except TaskError:
        return False


def distinct_problems(cell: Cell, split: Split, seed: int, count: int) -> list[Problem]:
    """The first `count` distinct problems of the stream; problems with swapped operands are the same.

    Nothing is drawn beyond the last of them, because draws are costly: among long numbers, only one in 16 is a test
    problem. The list is shorter if there are fewer such problems: drawing stops when the last draws, at least a block
    of them and at least 20 for each problem found so far, have contained no new problem.
    """
    kept: dict[tuple[str, str], Problem] = {}
    number = since_last = 0
    while len(kept) < count and since_last < max(BLOCK, 20 * len(kept)):
        try:
            for candidate in itertools.islice(_drawn(cell, split, seed, number), BLOCK):
                key = unordered(candidate.a, candidate.b)
                since_last = since_last + 1 if key in kept else 0
                kept.setdefault(key, candidate)
                if len(kept) == count:
                    break
        except TaskError:
            break
        number += 1
    return list(kept.values())


class Mixture(Sequence[Problem]):
    """An endless mixture of cells in equal shares, cut off at `size` problems.

    Each round visits every cell once, in a random order of its own; round r takes problem r of each cell. So every
    prefix is balanced, and computing one item costs no more than computing its block. Streams are endless, but there
    are only finitely many short problems, so problems of the shortest lengths repeat. Raises TaskError if there are no
    cells.
    """

    def __init__(self, cells: Sequence[Cell], split: Split, seed: int, size: int) -> None:
        if not cells:
            raise TaskError("a mixture needs at least one task at one length")
        self.cells, self.seed, self.size = list(cells), seed, size
        self.split: Split = split

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Problem:  # type: ignore[override]
        if not 0 <= index < self.size:
            raise IndexError(index)
        return problem(self.cell(index), self.split, self.seed, index // len(self.cells))

    def cell(self, index: int) -> Cell:
        """The cell that problem `index` comes from."""
        number, place = divmod(index, len(self.cells))
        return self.cells[_order(len(self.cells), self.split, self.seed, number)[place]]


class Curriculum(Sequence[Problem]):
    """A mixture whose lengths grow: `size` problems in `stages` of equal size; the last stage has all cells.

    Stage s of n contains the shortest s/n of each task's lengths, and at least one length.
    """

    def __init__(self, cells: Sequence[Cell], split: Split, seed: int, size: int, stages: int) -> None:
        lengths: dict[Task, list[int]] = {}
        for cell in cells:
            lengths.setdefault(cell.task, []).append(cell.length)
        self.size, self._stages = size, list[tuple[int, int, Mixture]]()
        starts, before = [-(-stage * size // stages) for stage in range(stages + 1)], 0
        for stage, (start, end) in enumerate(itertools.pairwise(starts), 1):
            longest = {task: sorted(own)[max(1, len(own) * stage // stages) - 1] for task, own in lengths.items()}
            mixture = Mixture([c for c in cells if c.length <= longest[c.task]], split, seed, sys.maxsize)
            self._stages.append((start, before * len(mixture.cells), mixture))
            before += -(-(end - start) // len(mixture.cells))

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Problem:  # type: ignore[override]
        if not 0 <= index < self.size:
            raise IndexError(index)
        mixture, place = self._place(index)
        return mixture[place]

    def cell(self, index: int) -> Cell:
        """The cell that problem `index` comes from."""
        mixture, place = self._place(index)
        return mixture.cell(place)

    def _place(self, index: int) -> tuple[Mixture, int]:
        """The mixture of a problem's stage, and its place there, after all problems that earlier stages have used."""
        stage = min(index * len(self._stages) // self.size, len(self._stages) - 1)
        start, used, mixture = self._stages[stage]
        return mixture, used + index - start


@lru_cache(maxsize=8)
def _order(count: int, split: Split, seed: int, number: int) -> list[int]:
    words = philox("order", count, split, seed, number).random_raw(count)
    return np.argsort(words, kind="stable").tolist()


@lru_cache(maxsize=8192)
def block(cell: Cell, split: Split, seed: int, number: int) -> list[Problem]:
    """Problems number * BLOCK to (number + 1) * BLOCK of a cell's stream."""
    return list(itertools.islice(_drawn(cell, split, seed, number), BLOCK))


def _drawn(cell: Cell, split: Split, seed: int, number: int) -> Iterator[Problem]:
    """The problems of a block, and endlessly more, one at a time; each is drawn only when it is asked for."""
    task, length, prepare = cell
    name, solve, representation, tested = task.name, task.solve, task.representation.name, task.tested_lengths
    if split != "train" and length not in tested:
        raise TaskError(f"{task.key} has no {split} problems of length {length}")
    generator = philox(task.key, length, split, seed, number)
    found = False
    for draws in itertools.count(1):
        for a, b in questions(task, length, generator, prepare):
            a_text = str(a)
            b_text = None if b is None else str(b)
            if split_of(representation, a_text, b_text, length, tested) == split:
                found = True
                yield Problem(name, representation, a_text, b_text, str(solve(a, b)), length)
        if not found and draws == _ROUNDS_WITHOUT_RESULT:
            raise TaskError(f"{task.key} has no {split} problems of length {length}")


def questions(
    task: Task, length: int, generator: np.random.Philox, prepare: Prepare | None = None
) -> Iterator[Operands]:
    """One round of operands of a task at a length; pairs that do not make a question are left out.

    Args:
        task: the task.
        length: digits of the longest part.
        generator: the source of random words.
        prepare: how a raw pair becomes the question; the task's own rule if not given.
    """
    prepare = prepare or task.prepare
    draw = _DRAW[task.representation]
    shortest = length if task.same_length else max(1, length // 2)
    width = 2 * length + 1
    text = _digit_rows(2 * _ROUND, width, generator)
    lengths_b = length - shortest + 1
    words = generator.random_raw(3 * _ROUND).tolist()
    for i in range(_ROUND):
        middle = (2 * i + 1) * width
        a = draw(text[middle - width : middle], length, words[3 * i])
        word_b = words[3 * i + 1]
        b = draw(text[middle : middle + width], shortest + (word_b >> 32) % lengths_b, word_b)
        word = words[3 * i + 2]
        if a is not None and b is not None and (operands := prepare(a, b, word)) is not None:
            yield operands


def _digit_rows(rows: int, width: int, generator: np.random.Philox) -> str:
    """Rows of random digits, joined; the first and the last digit of each row are not 0.

    Each digit is a 32-bit word modulo 10 (or 9), which is uniform to within 3e-9.
    """
    words_RW = generator.random_raw((rows * width + 1) // 2).view(np.uint32)[: rows * width].reshape(rows, width)
    digits_RW = (words_RW % 10).astype(np.uint8) + ord("0")
    digits_RW[:, [0, -1]] = words_RW[:, [0, -1]] % 9 + ord("1")
    return digits_RW.tobytes().decode()


# Raw numbers of a length, made from a row of at least 2 * length + 1 digits and a random word. None: draw again.


def _integer(row: str, length: int, word: int) -> Integer:
    return Integer(int(row[:length] if length > 1 else row[1]))


def _float(row: str, length: int, word: int) -> Float:
    whole_digits = 1 + word % length
    return Float(int(row[:whole_digits] + row[-length:]), -length)


def _fraction(row: str, length: int, word: int) -> Fraction | None:
    fraction = Fraction.reduced(int(row[1 : length + 1]), int(row[-1 : -length - 1 : -1]))
    return fraction if fraction.denominator >= 10 ** (length - 1) else None


def _scientific(row: str, length: int, word: int) -> Scientific:
    return Scientific(int(row[0] + row[-length:]), word % 100 - length)


_DRAW = {Integer: _integer, Integers: _integer, Float: _float, Fraction: _fraction, Scientific: _scientific}
