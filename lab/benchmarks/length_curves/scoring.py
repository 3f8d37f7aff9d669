"""Measures how good a model trained from scratch is at every length, trained or not.

The model reads and writes numbers in its own notation (lab/text/notation.py), so no answer is searched for in its text:
a completion is either a number in that notation or no answer.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from statistics import mean

import torch
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.benchmarks.benchmark import ask
from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.results import Curve, CurvePoint, Curves, Sample, Scored, Scores, answered, grouped
from lab.engines.engine import Completion, Engine, Request
from lab.numbers.sampling import Cell, Problem, distinct_problems, task_of
from lab.scratch.llama import NumberLlama
from lab.text.scratch_notation import ScratchNotation
from lab.text.wording import NotatedWording

SURPLUS_TOKENS = 8
"""Tokens allowed beyond the longest right answer of a task and length, so that surplus digits become visible."""

_UNSEEN = 2**32
"""Added to the seed if there is no test split, so that problems do not come from the training stream."""


def unseen_problems(cells: Iterable[Cell], seed: int, count: int) -> list[Problem]:
    """`count` distinct problems of each cell (or all, if there are fewer), which training has not seen if that is
    possible.

    Lengths with a test split get test problems. Lengths beyond those of the published test have no splits; their
    problems are new unless the model was trained on that length. The shortest lengths belong entirely to training, so
    their problems may have been seen.

    Args:
        cells: the tasks and lengths.
        seed: the seed from which problems are drawn.
        count: how many problems of each cell.
    """
    problems = []
    for cell in cells:
        split = "test" if cell.length in cell.task.tested_lengths else "train"
        problems += distinct_problems(cell, split, seed if split == "test" else seed + _UNSEEN, count)
    return problems


class LengthCurves(Nupa):
    """Problems in the notation of a model, with one reading, and budgets by length."""

    def __init__(self, problems: Sequence[Problem], notation: ScratchNotation, trained: range = range(0)) -> None:
        """
        Args:
            problems: what is asked, in this order.
            notation: how the model writes numbers.
            trained: the lengths that the model was trained on; the shortest of them have no held-out problems.
        """
        super().__init__(problems, NotatedWording(notation))
        self.notation, self.trained = notation, trained

    @property
    def note(self) -> str:
        found = {item.length for item in self.problems if item.length not in task_of(item).tested_lengths}
        seen = sorted(found & set(self.trained))
        return f"no test split: problems of {seen} digits may have been trained on" if seen else ""

    def requests(self, count_tokens: Callable[[str], int] = len) -> list[Request]:
        """The requests, in one group per task and length.

        The token budget of a group fits its longest answer, however this is cut into tokens. Requests are made only
        once, because they do not depend on the engine. Raises TaskError if the notation cannot write a problem.
        """
        return self._requests

    @functools.cached_property
    def _requests(self) -> list[Request]:
        longest: dict[str, int] = {}
        for item in self.problems:
            # random groups may have one digit each
            words = max(len(self.notation.answer(item)), self.notation.words_a_digit * len(item.answer))
            longest[_cell(item)] = max(longest.get(_cell(item), 0), words)
        return [
            Request(" ".join(self.notation.question(item, seed)), longest[_cell(item)] + SURPLUS_TOKENS, _cell(item))
            for seed, item in enumerate(self.problems)
        ]

    def check(self, model: NumberLlama, tokenizer: PreTrainedTokenizerBase) -> None:
        """Raises ModelError, in one line, if the model has too few position ids for what it might write, and TaskError
        if the notation cannot write a problem.
        """
        prompts = [tokenizer.encode(str(request.prompt)) for request in self._requests]
        longest, budget = max(prompts, key=len), max(request.max_tokens for request in self._requests)
        digit = tokenizer.convert_tokens_to_ids("1")
        model.check_rows(torch.tensor([[*longest, *[digit] * budget]], device=model.device))
        model.check_digits(max(len(item.answer) for item in self.problems))

    def score(self, index: int, completion: Completion) -> Scored:
        """The only reading. A completion that did not end is not an exact match, but its digits and length are
        scored."""
        return Scored({"": super().score(index, completion).readings["strict"]._replace(error=None)})

    def summarize(self, samples: Sequence[Sample]) -> Curves:  # type: ignore[override]
        by_task = grouped(samples, lambda sample: sample.task)
        return {task: _curve(mine) for task, mine in by_task.items()}

    def points(self, engine: Engine, step: int, seen: int) -> list[CurvePoint]:
        """Asks everything and returns the scores of each task and length; the answers are not recorded.

        Args:
            engine: the model that is being trained.
            step: how many steps it has been trained.
            seen: how many training problems it has seen.
        """
        asked = [sample for batch in ask(self, engine) for sample in batch]
        written = grouped(asked, lambda sample: (sample.task, sample.length))
        tokens = {cell: mean(item.completion.completion_tokens for item in mine) for cell, mine in written.items()}
        return [
            CurvePoint(step=step, samples=seen, task=task, length=length, tokens=tokens[task, length], **vars(scores))
            for task, curve in self.summarize(asked).items()
            for length, scores in curve.items()
        ]


def _curve(samples: Sequence[Sample]) -> Curve:
    by_length = grouped(answered(samples), lambda sample: sample.length)
    return {length: Scores.of(sample.readings[""] for sample in by_length[length]) for length in sorted(by_length)}


def _cell(item: Problem) -> str:
    return f"{task_of(item).key} {item.length}"
