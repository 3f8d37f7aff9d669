"""Problems as a dataset of encoded examples, each computed when it is looked up."""

import itertools
import sys
from collections import Counter
from typing import NamedTuple

from datasets import Dataset
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.schema import RulesConfig, Variation
from lab.errors import TaskError
from lab.numbers.additions import vary
from lab.numbers.sampling import Cell, Curriculum, Mixture, Problem, has_problems
from lab.numbers.splits import Split
from lab.progress import progress_bar
from lab.text.aligned_digits import aligned_digits
from lab.text.examples import encode, example, tokens_needed
from lab.text.formats import TextFormat
from lab.text.templates import reworded


class ProblemSet(NamedTuple):
    examples: Dataset
    """Rows are EncodedExamples: prompt_ids, completion_ids; and the problem's index."""
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
    written: TextFormat | None = None,
    curriculum: int = 1,
    aligned: bool = False,
    variation: Variation | None = None,
    templates: bool = False,
) -> ProblemSet:
    """The first `size` problems of the cells' mixture that fit the window, if rules are followed, or else the first.

    Of each `together` successive ones, those of a task stand side by side, so that their common prompt is shared.
    Without rules numbers may be `written` in a format, lengths may grow in the stages of a `curriculum`, and rows may
    tell where digits of one place are (lab/text/aligned_digits.py). Problems may be made harder by a `variation`, and
    be asked in the words of many `templates` (lab/text/templates.py).
    Raises TaskError when no problem fits the window.
    """
    whole = Mixture(cells, split, seed, sys.maxsize)
    mixture = Curriculum(cells, split, seed, size, curriculum) if curriculum > 1 and not rules else whole
    chosen, left_out = _within_window(whole, size, tokenizer, rules) if rules else (list(range(size)), {})
    ordered = [
        index
        for start in range(0, size, together)
        for index in sorted(chosen[start : start + together], key=lambda index: mixture.cell(index).task.key)
    ]

    def look_up(rows: dict[str, list[int]]) -> dict[str, list]:
        problems = [_varied(mixture[index], variation, seed, index) for index in rows["index"]]
        examples = [
            written.example(problem, index) if written else example(problem, rules)
            for problem, index in zip(problems, rows["index"], strict=True)
        ]
        if templates:
            examples = [reworded(item, index) for item, index in zip(examples, rows["index"], strict=True)]
        encoded = [encode(item, tokenizer) for item in examples]
        columns: dict[str, list] = {
            "index": rows["index"],
            "prompt_ids": [e.prompt_ids for e in encoded],
            "completion_ids": [e.completion_ids for e in encoded],
        }
        if aligned:
            places = [aligned_digits(item, tokenizer) for item in examples]
            columns |= {"first_at": [p.first for p in places], "second_at": [p.second for p in places]}
        return columns

    return ProblemSet(Dataset.from_dict({"index": ordered}).with_transform(look_up), left_out)


def _varied(item: Problem, variation: Variation | None, seed: int, index: int) -> Problem:
    if not variation or variation == Variation():
        return item
    return vary(item, variation.carries, variation.short_second, variation.nines, seed, index)


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
