"""How models from scratch write long products and sums of many terms step by step, in whole numbers, as on paper.

    <begin> 7 4 <multiply_hard_integer> 3 2 = part 1 4 1 total 1 4 1 part 4 9 0 total 8 0 1 answer 1 8 0 1 <end>

This is 47 x 23 = 1081. All numbers are written with the ones digit first. For each digit of the second factor, starting
with the ones digit, `part` is the first factor times that digit. `total` is this part plus the previous total with its
ones digit dropped: 47 x 3 = 141; 47 x 2 = 94, and 94 + 14 = 108. The ones digit of each total, followed by the other
digits of the last one, make up the answer. Parts and totals have one digit more than the first factor.

    <begin> <sum_integers> 5 2 1 <sum_integers> 7 9 <sum_integers> 3 = total 5 2 1 total 2 2 2 total 5 2 2 <end>

This is 125 + 97 + 3 = 225. Each total adds one term to the previous one; the last total is the answer.

The scratchpads follow Nye et al. 2021 (arXiv 2112.00114). Cho et al. 2024 (arXiv 2410.15787) trained on such products
and sums with position ids for rows and places; here, lab/scratch/grid_places.py computes these ids.
"""

import functools
from collections.abc import Sequence

from lab.errors import TaskError
from lab.numbers.representations import Representation
from lab.numbers.sampling import Problem
from lab.numbers.tasks import SUM, Task
from lab.text.notation import BEGIN, DIGITS, END, EQUALS, PAD, ScratchNotation

PART, TOTAL, RESULT = "part", "total", "answer"
"""The words before a number: a multiple of the first factor, a running total, the answer of a product."""
PRODUCTS = ("multiply_hard_integer", "multiply_easy_integer")


class RunningTotals(ScratchNotation):
    """The notation of a model that writes parts and totals."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        """Raises TaskError for a task without running totals."""
        for task in tasks:
            if task.key not in (*PRODUCTS, SUM.key):
                known = ", ".join((*PRODUCTS, SUM.key))
                raise TaskError(f"data.style=running_totals: {task.key} has no running totals; these have: {known}")
        super().__init__(tasks)

    @functools.cached_property
    def vocabulary(self) -> list[str]:
        """Special words, operators, the words before numbers, digits."""
        operators = [f"<{task.key}>" for task in self.tasks]
        return [PAD, BEGIN, END, EQUALS, *operators, PART, TOTAL, RESULT, *DIGITS]

    def question(self, problem: Problem, seed: int | None = None) -> list[str]:
        task = self._task(problem)
        operator = f"<{task.key}>"
        if task is SUM:
            return [word for term in problem.a.split("+") for word in (operator, *term[::-1])] + [EQUALS]
        return [*problem.a[::-1], operator, *(problem.b or "")[::-1], EQUALS]

    def answer(self, problem: Problem, seed: int | None = None) -> list[str]:
        if self._task(problem) is SUM:
            return _sum(list(map(int, problem.a.split("+"))))
        return _product(problem.a, problem.b or "", problem.answer)

    def read(self, words: Sequence[str], representation: Representation) -> str | None:
        """The number after the last word that is no digit, without leading zeros.

        None if there is none, or if that word is not `answer`, or `total` in a sum.
        """
        signs = [index for index, word in enumerate(words) if word not in DIGITS]
        number = "".join(reversed(words[signs[-1] + 1 :])) if signs else ""
        if not number or words[signs[-1]] != (RESULT if PART in words else TOTAL):
            return None
        return number.lstrip("0") or "0"


def _sum(terms: Sequence[int]) -> list[str]:
    words: list[str] = []
    total = 0
    for term in terms:
        total += term
        words += [TOTAL, *str(total)[::-1]]
    return words


def _product(a: str, b: str, answer: str) -> list[str]:
    width, total = len(a) + 1, 0
    words: list[str] = []
    for digit in reversed(b):
        part = int(a) * int(digit)
        total = total // 10 + part
        words += [PART, *_ones_first(part, width), TOTAL, *_ones_first(total, width)]
    return [*words, RESULT, *_ones_first(int(answer), len(a) + len(b))]


def _ones_first(number: int, width: int) -> str:
    return str(number).zfill(width)[::-1]
