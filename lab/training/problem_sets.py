"""Problems as a dataset of encoded examples, each computed when it is looked up."""

import itertools
import sys
from collections import Counter
from typing import NamedTuple

from datasets import Dataset
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.schema import RulesConfig
from lab.errors import TaskError
from lab.numbers.sampling import Cell, Mixture
from lab.numbers.splits import Split
from lab.text.examples import encode, example


class ProblemSet(NamedTuple):
    examples: Dataset
    """Rows are EncodedExamples: prompt_ids, completion_ids."""
    left_out: dict[str, int]
    """By task, how many problems were passed over because they need more than the window."""


def problem_set(
    cells: list[Cell],
    split: Split,
    seed: int,
    size: int,
    tokenizer: PreTrainedTokenizerBase,
    rules: RulesConfig | None = None,
    together: int = 1,
) -> ProblemSet:
    """The first `size` problems of the cells' mixture that fit the window, if rules are followed, or else the first.

    Of each `together` successive ones, those of a task stand side by side, so that their common prompt is shared.
    Raises TaskError when no problem fits the window.
    """
    mixture = Mixture(cells, split, seed, sys.maxsize)
    indices, left_out = _within_window(mixture, size, tokenizer, rules) if rules else (list(range(size)), {})
    ordered = [
        index
        for start in range(0, size, together)
        for index in sorted(indices[start : start + together], key=lambda index: mixture.cell(index).task.key)
    ]

    def look_up(rows: dict[str, list[int]]) -> dict[str, list]:
        encoded = [encode(example(mixture[index], rules), tokenizer) for index in rows["index"]]
        return {"prompt_ids": [e.prompt_ids for e in encoded], "completion_ids": [e.completion_ids for e in encoded]}

    return ProblemSet(Dataset.from_dict({"index": ordered}).with_transform(look_up), left_out)


def _within_window(
    mixture: Mixture, size: int, tokenizer: PreTrainedTokenizerBase, rules: RulesConfig
) -> tuple[list[int], dict[str, int]]:
    kept: list[int] = []
    left_out: Counter[str] = Counter()
    shortest = sys.maxsize
    for index in itertools.count():
        prompt_ids, completion_ids = encode(example(mixture[index], rules), tokenizer)
        tokens = len(prompt_ids) + len(completion_ids)
        if tokens <= rules.window:
            kept.append(index)
        else:
            left_out[mixture.cell(index).task.key] += 1
            shortest = min(shortest, tokens)
        if len(kept) == size:
            return kept, dict(left_out)
        if not kept and index + 1 >= 20 * len(mixture.cells):
            raise TaskError(
                f"no problem of data.tasks at data.lengths fits data.rules.window={rules.window}: "
                f"the shortest of {index + 1} needs {shortest} tokens"
            )
    raise AssertionError("unreachable")
