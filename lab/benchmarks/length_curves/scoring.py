"""How good a model that was trained from scratch is at every length, inside and outside of its training.

The model reads and writes numbers in a notation of its own (lab/text/notation.py), so nothing is searched for in what
it writes: a completion is a number in that notation, or no answer.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.benchmarks.benchmark import ask
from lab.benchmarks.results import Curve, Curves, Reading, Sample, Scored, Scores, grouped
from lab.errors import ModelError
from lab.inference.engine import Completion, Engine, Request
from lab.numbers.metrics import score
from lab.numbers.sampling import Cell, Problem, distinct_problems, task_of
from lab.text.notation import Notation

SURPLUS_TOKENS = 8
"""Budget beyond the longest right answer of a task and length, so that an answer that is too long shows it."""

_UNSEEN = 2**32
"""Added to the seed where there is no test split, so that the stream is not the one that a training draws from."""


def unseen_problems(cells: Iterable[Cell], seed: int, count: int) -> list[Problem]:
    """`count` distinct problems of each cell (fewer where there are fewer), none of which a training can have had.

    Test problems, where a length has any. A length that is beyond those of the published test has no splits: its
    problems are unseen as long as no training has that length. The shortest lengths belong to training as a whole, so
    theirs were seen.
    """
    problems = []
    for cell in cells:
        split = "test" if cell.length in cell.task.tested_lengths else "train"
        problems += distinct_problems(cell, split, seed if split == "test" else seed + _UNSEEN, count)
    return problems


class LengthCurves:
    """A `Benchmark`: problems in the notation of a model."""

    def __init__(self, problems: Sequence[Problem], notation: Notation, trained: range = range(0)) -> None:
        """`trained`: lengths of training, of which the shortest ones have no problem that was kept from it."""
        self.problems, self.notation, self.trained = problems, notation, trained

    @property
    def note(self) -> str:
        found = {item.length for item in self.problems if item.length not in task_of(item).tested_lengths}
        seen = sorted(found & set(self.trained))
        return f"no test split: problems of {seen} digits may have been trained on" if seen else ""

    def __len__(self) -> int:
        return len(self.problems)

    def requests(self, engine: Engine) -> list[Request]:
        """A group a task and length, and a budget that its longest answer fits in, however that is cut into tokens.

        They are formed once, as nothing in them depends on the engine. Raises TaskError when the notation cannot write
        a problem.
        """
        return self._requests

    @functools.cached_property
    def _requests(self) -> list[Request]:
        longest: dict[str, int] = {}
        for item in self.problems:
            # random groups may be of one digit each
            words = max(len(self.notation.answer(item)), self.notation.words_a_digit * len(item.answer))
            longest[_cell(item)] = max(longest.get(_cell(item), 0), words)
        return [
            Request(" ".join(self.notation.question(item, luck)), longest[_cell(item)] + SURPLUS_TOKENS, _cell(item))
            for luck, item in enumerate(self.problems)
        ]

    @torch.inference_mode()
    def check(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Raises ModelError or TaskError, in one line, when the model has no position ids for what it might write, or
        the notation no words for a problem.
        """
        prompts = [tokenizer.encode(str(request.prompt)) for request in self._requests]
        longest, budget = max(prompts, key=len), max(request.max_tokens for request in self._requests)
        digit = tokenizer.convert_tokens_to_ids("1")
        model(torch.tensor([[*longest, *[digit] * budget]], device=model.device))
        digits, config = max(len(item.answer) for item in self.problems), model.config
        if config.position_kind == "coupled" and digits + 2 > config.largest:
            raise ModelError(
                f"answers of {digits} digits go round the {config.largest} coupled ids, so that places would be mixed "
                f"up: model.positions.largest should be at least {digits + 2}"
            )

    def question(self, index: int) -> Problem:
        return self.problems[index]

    def score(self, index: int, completion: Completion) -> Scored:
        """The one reading; a completion that did not end is no answer, but its digits and its length are scored."""
        item = self.problems[index]
        form = task_of(item).answer
        words, ended = completion.text.split(), completion.finish_reason == "stop"
        # specials are not in the text; where some were among the digits, it is no number
        given = self.notation.read(words, form) if len(words) + ended == completion.completion_tokens else None
        scored = score(given, item.answer, form)
        return Scored({"": Reading(given, *scored._replace(exact_match=scored.exact_match and ended))})

    def summarize(self, samples: Sequence[Sample]) -> Curves:
        by_task = grouped(samples, lambda sample: sample.task)
        return {task: _curve(mine) for task, mine in by_task.items()}

    def rows(self, engine: Engine) -> list[dict[str, Any]]:
        """The scores of each task and length, asked at once and without a record of the samples."""
        curves = self.summarize([sample for batch in ask(self, engine) for sample in batch])
        return [
            {"task": task, "length": length, **scores.to_json()}
            for task, curve in curves.items()
            for length, scores in curve.items()
        ]


def _curve(samples: Sequence[Sample]) -> Curve:
    by_length = grouped(samples, lambda sample: sample.length)
    return {length: Scores.of(sample.readings[""] for sample in by_length[length]) for length in sorted(by_length)}


def _cell(item: Problem) -> str:
    return f"{task_of(item).key} {item.length}"
