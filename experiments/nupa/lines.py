"""Lines as rows of training: what a rule sees at a place, and the line that it writes.

    <begin> add 1 _ _ _ _ _ 7 _ 5 _ _ _ _ _ = > add 1 ; 3 <end>

A row is one line of one question: what is needed to write it stands at its place and in the line before.
"""

import functools
from collections.abc import Iterator, Sequence

import numpy as np
from datasets import Dataset

from experiments.nupa.rules import step, worked
from experiments.nupa.rules.phases import PHASES, STARTS
from experiments.nupa.tape import BLANK, CELL, DONE, MOVES, ONES, SAME, WROTE, Line, View
from lab.numbers.philox import philox
from lab.numbers.sampling import Cell, Problem, posed, problem
from lab.numbers.splits import Split
from lab.numbers.tasks import TASKS, Task
from lab.text.notation import BEGIN, DIGITS, END, EQUALS, PAD
from lab.tune.problem_sets import ProblemSet

LONGEST_EASY = 15
"""How many digits the longest numbers of training have in tasks whose test goes to 100 digits."""
EASY, HARD = 20, 240
"""How many questions of each task and length the lines of training are taken from, by how far its test goes."""
EVENNESS = 0.7
"""How much more often phases with more different lines are drawn: 0 for equally often, 1 in proportion."""
SIGNS = (
    "a",
    "b",
    "zeros",
    "x",
    "n",
    "above",
    "equal",
    "less",
    "more",
    "nothing",
    "decimal",
    "moving",
    "below",
    ".",
    "e",
    "/",
)
"""The words of states, cells and answers that are neither digits nor the names of phases."""
GOALS = ("length", "count", "scientific", "digit", "figures")


@functools.cache
def vocabulary() -> tuple[str, ...]:
    words = [
        PAD,
        BEGIN,
        END,
        EQUALS,
        *DIGITS,
        BLANK,
        SAME,
        ONES,
        CELL,
        WROTE,
        DONE,
        *MOVES,
        *STARTS,
        *PHASES,
        *SIGNS,
        *GOALS,
    ]
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


def questions(cell: Cell, split: Split, seed: int, share: float = 1) -> Iterator[Problem]:
    """Questions of training; every second number whose digits are counted has only two different digits."""
    for index in range(max(1, round(share * (EASY if cell.task.difficulty.longest > 20 else HARD)))):
        item = problem(cell, split, seed, index)
        if cell.task.name == "count" and index % 2:
            other = str((int(item.b or 0) + 1 + int(item.a[0])) % 10)
            number = "".join(item.b or "" if int(digit) % 4 else other for digit in item.a)
            item = posed(cell.task, str(int(number)), item.b, cell.length) or item
        yield item


def counted_on(view: View) -> Iterator[View]:
    """What a walk that counts sees if it has come to any other digit: in training, counts begin anywhere, as coupled
    ids do. Otherwise, only very long numbers would have each digit in a second walk, which counts in tens."""
    if view.phase in ("count", "index") and view.cell[0] not in GOALS:
        for digit in DIGITS:
            yield view._replace(state=(digit, *view.state[1:]))


def different_lines(cells: Sequence[Cell], split: Split, seed: int, share: float) -> list[list[tuple[View, Line]]]:
    """The different lines of the questions, those of a phase together."""
    phases: dict[str, dict[tuple[str, ...], tuple[View, Line]]] = {}
    for cell in cells:
        for item in questions(cell, split, seed, share):
            for view, line in worked(item).lines:
                for one in (view, *counted_on(view)):
                    lines = phases.setdefault(view.phase, {})
                    if tuple(one.words) not in lines:
                        lines[tuple(one.words)] = one, line if one is view else step(one)
    return [list(lines.values()) for lines in phases.values()]


def line_rows(cells: Sequence[Cell], split: Split, seed: int, size: int, share: float = 1) -> ProblemSet:
    """`size` rows, drawn from the different lines of questions: a phase with twice as many lines is drawn 2 ** EVENNESS
    times as often, and its lines have the same chance. `share`: of the questions whose lines are collected."""
    phases = different_lines(cells, split, seed, share)
    shares = np.array([len(lines) for lines in phases], float) ** EVENNESS
    generator = np.random.Generator(philox("lines", seed, split))
    drawn = generator.choice(len(phases), size, p=shares / shares.sum())
    within = generator.random(size)
    encoded = [[(prompt(view), completion(line)) for view, line in lines] for lines in phases]

    def look_up(asked: dict[str, list[int]]) -> dict[str, list]:
        some = [encoded[drawn[i]] for i in asked["index"]]
        rows = [lines[int(within[i] * len(lines))] for lines, i in zip(some, asked["index"], strict=True)]
        return {"index": asked["index"], "prompt_ids": [p for p, _ in rows], "completion_ids": [c for _, c in rows]}

    return ProblemSet(Dataset.from_dict({"index": np.arange(size)}).with_transform(look_up), {})


def tasks_of(names: Sequence[str]) -> list[Task]:
    return [TASKS[name] for name in names]
