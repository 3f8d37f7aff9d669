"""Problems as a dataset of encoded examples, each computed when it is looked up."""

import itertools
import sys
from collections import Counter
from typing import NamedTuple

from datasets import Dataset
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.schema import RulesConfig
from lab.errors import TaskError
from lab.numbers.sampling import Cell, Mixture, has_problems
from lab.numbers.splits import Split
from lab.progress import progress_bar
from lab.text.examples import encode, example, tokens_needed


class ProblemSet(NamedTuple):
    examples: Dataset
    """Rows are EncodedExamples: prompt_ids, completion_ids."""
    left_out: dict[str, int]
    """By task, how many problems were looked at and need more than the window."""


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


def validated(cells: list[Cell], seed: int) -> list[Cell]:
    """Those that have validation problems: not the shortest lengths, which belong to training."""
    return [cell for cell in cells if cell.length in cell.task.tested_lengths and has_problems(cell, "valid", seed)]


_TRIED = 16
"""Problems of a task and length, none of which fits, for the rest to be passed over."""


def _within_window(
    mixture: Mixture, size: int, tokenizer: PreTrainedTokenizerBase, rules: RulesConfig
) -> tuple[list[int], dict[str, int]]:
    kept: list[int] = []
    too_long: Counter[Cell] = Counter()
    fitting: set[Cell] = set()
    hopeless: set[Cell] = set()
    shortest = sys.maxsize
    with progress_bar() as bar:
        item = bar.add_task(f"{mixture.split} problems that fit", total=size, note="")
        for index in itertools.count():
            cell = mixture.cell(index)
            if cell in hopeless:
                continue
            tokens = tokens_needed(example(mixture[index], rules), tokenizer)
            if tokens <= rules.window:
                fitting.add(cell)
                kept.append(index)
                bar.update(item, completed=len(kept))
            else:
                shortest = min(shortest, tokens)
                too_long[cell] += 1
                if too_long[cell] == _TRIED and cell not in fitting:
                    hopeless.add(cell)
            if len(kept) == size:
                break
            if len(hopeless) == len(mixture.cells):
                raise TaskError(
                    f"no problem of data.tasks at data.lengths fits data.rules.window={rules.window}: "
                    f"the shortest of {too_long.total()} needs {shortest} tokens"
                )
    left_out: Counter[str] = Counter()
    for cell, count in too_long.items():
        left_out[cell.task.key] += count
    return kept, dict(left_out)
