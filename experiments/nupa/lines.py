"""Lines as rows of training: what a rule sees at a place, and the line that it writes.

    <begin> add 1 _ _ _ _ _ 7 _ 5 _ _ _ _ _ = > add 1 ; 3 <end>

A row is one line of one question: what is needed to write it stands at its place and in the line before.
"""

import functools
from collections.abc import Sequence

import numpy as np
from datasets import Dataset

from experiments.nupa.rules import worked
from experiments.nupa.rules.phases import PHASES, STARTS
from experiments.nupa.tape import BLANK, CELL, DONE, MOVES, ONES, SAME, WROTE, Line, View
from lab.numbers.philox import philox
from lab.numbers.sampling import Cell, problem
from lab.numbers.splits import Split
from lab.numbers.tasks import TASKS, Task
from lab.text.notation import BEGIN, DIGITS, END, EQUALS, PAD
from lab.tune.problem_sets import ProblemSet

LONGEST_EASY = 15
"""How many digits the longest numbers of training have in tasks whose test goes to 100 digits."""
LINES = 16
"""How many rows of training are lines of the same question."""
SIGNS = ("a", "b", "zeros", "x", "n", "above", "equal", "less", "more", ".", "e", "/")
"""The words of states, cells and answers that are neither digits nor the names of phases."""
GOALS = ("length", "count", "scientific", "digit", "figures")


@functools.cache
def vocabulary() -> tuple[str, ...]:
    words = [PAD, BEGIN, END, EQUALS, *DIGITS, BLANK, SAME, ONES, CELL, WROTE, DONE, *MOVES, *STARTS, *PHASES, *SIGNS, *GOALS]
    return tuple(dict.fromkeys(words))


@functools.cache
def ids() -> dict[str, int]:
    return {word: index for index, word in enumerate(vocabulary())}


def prompt(view: View) -> list[int]:
    return [ids()[word] for word in (BEGIN, *view.words, EQUALS)]


def completion(line: Line) -> list[int]:
    return [ids()[word] for word in (*line.words, END)]


def trained_cells(tasks: Sequence[Task], longest: int) -> list[Cell]:
    """The tasks and lengths of training; `longest` holds for tasks whose test goes to 20 digits."""
    return [
        Cell(task, length)
        for task in tasks
        for length in range(1, (longest if task.difficulty.longest <= 20 else LONGEST_EASY) + 1)
    ]


def line_rows(cells: Sequence[Cell], split: Split, seed: int, size: int) -> ProblemSet:
    """Rows of training: `LINES` lines of each question, each with the same chance for every phase that the question
    has, or, every second line, for every line."""

    def look_up(asked: dict[str, list[int]]) -> dict[str, list]:
        rows = [_row(cells, split, seed, index) for index in asked["index"]]
        return {
            "index": asked["index"],
            "prompt_ids": [prompt(view) for view, _ in rows],
            "completion_ids": [completion(line) for _, line in rows],
        }

    return ProblemSet(Dataset.from_dict({"index": np.arange(size)}).with_transform(look_up), {})


def _row(cells: Sequence[Cell], split: Split, seed: int, index: int) -> tuple[View, Line]:
    number, which = divmod(index, LINES)
    draws = philox("line", seed, split, index)
    cell = cells[int(philox("question", seed, split, number).random_raw()) % len(cells)]
    phases = _lines(cell, split, seed, number // len(cells))
    every = [line for lines in phases for line in lines]
    some = every if which % 2 else phases[int(draws.random_raw()) % len(phases)]
    return some[int(draws.random_raw()) % len(some)]


@functools.lru_cache(maxsize=256)
def _lines(cell: Cell, split: Split, seed: int, number: int) -> list[list[tuple[View, Line]]]:
    """The lines of a question, those of the same phase together."""
    phases: dict[str, list[tuple[View, Line]]] = {}
    for view, line in worked(problem(cell, split, seed, number)).lines:
        phases.setdefault(view.phase, []).append((view, line))
    return list(phases.values())


def tasks_of(names: Sequence[str]) -> list[Task]:
    return [TASKS[name] for name in names]
