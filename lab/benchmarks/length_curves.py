"""How good a model that was trained from scratch is at every length, inside and outside of its training.

The model reads and writes numbers in a notation of its own (lab/text/notation.py), so nothing is searched for in what
it writes: a completion is a number in that notation, or no answer.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.benchmarks.benchmark import Sample
from lab.benchmarks.samples import grouped
from lab.inference.engine import Completion, Engine, Request
from lab.numbers.metrics import METRICS, score
from lab.numbers.sampling import Cell, Problem, distinct_problems, task_of
from lab.numbers.statistics import bootstrap_mean, wilson
from lab.text.notation import Notation

SURPLUS_TOKENS = 4
"""Budget beyond the longest right answer of a task and length, so that an answer that is too long shows it."""


def unseen_problems(cells: Iterable[Cell], seed: int, count: int) -> list[Problem]:
    """`count` distinct problems of each cell (fewer where there are fewer), none of which a training can have had.

    Test problems, where a length has any. A length that is beyond those of the published test has no splits: its
    problems are unseen as long as no training has that length. The shortest lengths belong to training as a whole, so
    theirs were seen.
    """
    problems = []
    for cell in cells:
        split = "test" if cell.length in cell.task.tested_lengths else "train"
        problems += distinct_problems(cell, split, seed, count)
    return problems


class LengthCurves:
    """A `Benchmark`: problems in the notation of a model."""

    note = ""

    def __init__(self, problems: Sequence[Problem], notation: Notation) -> None:
        self.problems, self.notation = problems, notation

    def __len__(self) -> int:
        return len(self.problems)

    def requests(self, engine: Engine) -> list[Request]:
        """A group a task, and a budget that the longest answer of the task and length fits in."""
        longest: dict[tuple[str, int], int] = {}
        for item in self.problems:
            cell = task_of(item).key, item.length
            longest[cell] = max(longest.get(cell, 0), len(self.notation.answer(item)))
        return [
            Request(
                " ".join(self.notation.question(item, luck)),
                longest[task_of(item).key, item.length] + SURPLUS_TOKENS,
                task_of(item).key,
            )
            for luck, item in enumerate(self.problems)
        ]

    @torch.inference_mode()
    def check(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Raises ModelError, in one line, when the model has no position ids for a row of the greatest length."""
        longest = max(self.problems, key=lambda item: item.length)
        words = [*self.notation.question(longest), *self.notation.answer(longest)]
        model(torch.tensor([tokenizer.encode(" ".join(words))], device=model.device))

    def facts(self, index: int) -> Sample:
        return self.problems[index]._asdict()

    def score(self, index: int, completion: Completion) -> Sample:
        item = self.problems[index]
        form = task_of(item).answer
        given = self.notation.read(completion.text.split(), form) if completion.finish_reason == "stop" else None
        return {"given": given, **score(given, item.answer, form)._asdict()}

    def summarize(self, samples: Sequence[Sample]) -> dict[str, Any]:
        return summarize(samples)

    def rows(self, engine: Engine) -> list[dict[str, Any]]:
        """Asked at once, without a record of the samples: {task, length, metric: estimate} for each task and length."""
        samples = [
            {**self.facts(index), **self.score(index, completion)}
            for completions in engine.generate(self.requests(engine))
            for index, completion in completions.items()
        ]
        return [
            {"task": task, "length": int(length), **metrics}
            for task, lengths in summarize(samples).items()
            for length, metrics in lengths.items()
        ]


def summarize(samples: Sequence[Sample]) -> dict[str, Any]:
    """{task: {length: {metric: estimate}}}, exact match with its Wilson interval, the others bootstrapped."""
    by_task = grouped(samples, lambda sample: f"{sample['task']}_{sample['representation']}")
    return {
        task: {str(length): figures(members) for length, members in sorted(_by_length(mine).items())}
        for task, mine in by_task.items()
    }


def figures(samples: Sequence[Sample]) -> dict[str, Any]:
    exact = wilson(sum(sample["exact_match"] for sample in samples), len(samples))
    means = {metric: bootstrap_mean([sample[metric] for sample in samples])._asdict() for metric in METRICS[1:]}
    return {"exact_match": exact._asdict(), **means}


def _by_length(samples: Sequence[Sample]) -> dict[int, list[Sample]]:
    return grouped(samples, lambda sample: sample["length"])
