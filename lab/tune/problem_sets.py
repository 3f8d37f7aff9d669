"""Problems as a dataset of encoded examples, each computed when it is looked up."""

import itertools
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, Self, TypeAlias, TypedDict, cast

from datasets import Dataset
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.finetuning import FinetuneConfig
from lab.config.schema import Variation
from lab.errors import TaskError
from lab.numbers.additions import vary
from lab.numbers.sampling import Cell, Curriculum, Mixture, Problem, has_problems
from lab.numbers.splits import Split
from lab.progress import progress_bar
from lab.text.examples import EncodedExample, Example, encode
from lab.text.formats import taught
from lab.text.wording import Reworded, Wording


class Row(TypedDict):
    """An encoded problem, as a dataset holds it and a collator takes it."""

    index: int
    """The problem's index in the mixture that it is drawn from."""
    prompt_ids: list[int]
    completion_ids: list[int]
    """The completion and the end token: the tokens that are learned."""


class ProblemSet(NamedTuple):
    examples: Dataset
    """Each element is a `Row`."""
    left_out: dict[str, int]
    """How many problems of each task were left out because they do not fit the window."""

    def rows(self, indices: Iterable[int]) -> list[Row]:
        """The rows at these indices."""
        return [cast(Row, self.examples[index]) for index in indices]


class TrainingSets(NamedTuple):
    train: ProblemSet
    valid: ProblemSet


class Selection(NamedTuple):
    """Which problems are drawn."""

    cells: list[Cell]
    """Tasks and lengths, in equal shares."""
    seed: int
    variation: Variation | None = None
    """How often problems of addition and subtraction are made into hard cases."""
    curriculum: int = 1
    """The number of stages in which lengths grow; ignored for wordings with a window."""

    @classmethod
    def of(cls, config: FinetuneConfig) -> Self:
        """The training problems of a config."""
        return cls(config.data.cells, config.seed, config.data.variation, config.data.curriculum)

    def mixture(self, split: Split, size: int) -> Mixture | Curriculum:
        """The problems before any variation. `size`: the number of problems over which a curriculum extends."""
        if self.curriculum > 1:
            return Curriculum(self.cells, split, self.seed, size, self.curriculum)
        return Mixture(self.cells, split, self.seed, sys.maxsize)


class Rows(NamedTuple):
    """How a drawn problem becomes a row."""

    tokenizer: PreTrainedTokenizerBase
    wording: Wording | Reworded
    """Turns a problem into text."""


def training_sets(config: FinetuneConfig, wording: Wording, tokenizer: PreTrainedTokenizerBase) -> TrainingSets:
    """The training and validation problems of a config. Validation problems have no curriculum and no variation, and
    are worded as in the test.

    Args:
        config: which problems, how many, and whether training words them in many ways.
        wording: how the test words them.
        tokenizer: the model's tokenizer.

    Raises TaskError if no problem fits the wording's window, and ConfigError if a step cannot be divided equally
    between the processes.
    """
    config.training.passes()
    samples, some = config.training.max_steps * config.training.batch_size, config.training.valid_problems
    selection = Selection.of(config)
    valid = Selection(validated(selection.cells, config.seed), config.seed)
    rows = Rows(tokenizer, taught(wording, config.data))
    return TrainingSets(
        problem_set(selection, "train", samples, rows, config.training.batch_size),
        problem_set(valid, "valid", some, rows._replace(wording=wording), some),
    )


def problem_set(selection: Selection, split: Split, size: int, rows: Rows, together: int = 1) -> ProblemSet:
    """The first `size` problems of a mixture of cells; if the wording has a window, the first `size` that fit it.

    Args:
        selection: which problems are drawn.
        split: the split of the problems.
        size: how many problems.
        rows: how problems become rows.
        together: each group of this many successive problems is sorted by task, because problems of a task have the
            same first words, which are computed once for the whole batch.

    Raises TaskError if no problem fits the window.
    """
    drawn = draw(selection, split, size, rows.tokenizer, rows.wording, together)

    def encoded(index: int) -> EncodedExample:
        if tokens := drawn.tokens.get(index):
            return EncodedExample(*(ids.tolist() for ids in tokens))
        return encode(drawn.example(index), rows.tokenizer)

    def look_up(asked: dict[str, list[int]]) -> dict[str, list]:
        found = [encoded(index) for index in asked["index"]]
        return {
            "index": asked["index"],
            "prompt_ids": [e.prompt_ids for e in found],
            "completion_ids": [e.completion_ids for e in found],
        }

    return ProblemSet(Dataset.from_dict({"index": drawn.order}).with_transform(look_up), drawn.left_out)


Tokens: TypeAlias = dict[int, tuple[array, array]]
"""The prompts and completions of examples, by index."""


class Drawn(NamedTuple):
    """Examples as text, in the order of training."""

    order: list[int]
    """The indices of the examples."""
    example: Callable[[int], Example]
    """Returns the example of an index."""
    tokens: Tokens
    """If the examples had to fit a window: their tokens, because a long trace takes milliseconds to write again."""
    left_out: dict[str, int]
    """See `ProblemSet`."""


def draw(
    selection: Selection,
    split: Split,
    size: int,
    tokenizer: PreTrainedTokenizerBase | None,
    wording: Wording | Reworded,
    together: int,
) -> Drawn:
    """The examples of `problem_set` as text. Only a wording with a window needs the tokenizer, to see which fit."""
    mixture, tokens, left_out = selection.mixture(split, size), {}, {}
    if wording.window:
        assert tokenizer
        mixture = Mixture(selection.cells, split, selection.seed, sys.maxsize)
        tokens, left_out = _within_window(mixture, size, tokenizer, wording)
    chosen = list(tokens) or list(range(size))
    order = [
        index
        for start in range(0, size, together)
        for index in sorted(chosen[start : start + together], key=lambda index: mixture.cell(index).task.key)
    ]

    def example(index: int) -> Example:
        seed = (selection.seed << 32) + index  # so that each seed has words of its own
        return wording.example(varied(mixture[index], selection.variation, selection.seed, index), seed)

    return Drawn(order, example, tokens, left_out)


def varied(item: Problem, variation: Variation | None, seed: int, index: int) -> Problem:
    """Training problem `index`, perhaps made into a hard case, as often as `variation` says."""
    if not variation or variation == Variation():
        return item
    return vary(item, variation.carries, variation.short_second, variation.nines, seed, index)


def validated(cells: list[Cell], seed: int) -> list[Cell]:
    """The cells that have validation problems. The shortest lengths have none, because all their problems are for
    training."""
    return [cell for cell in cells if cell.length in cell.task.tested_lengths and has_problems(cell, "valid", seed)]


_TRIED = 16
"""After this many problems that do not fit, and none that does, the other problems of a task and length are skipped."""


def _within_window(
    mixture: Mixture, size: int, tokenizer: PreTrainedTokenizerBase, wording: Wording | Reworded
) -> tuple[Tokens, dict[str, int]]:
    """The first `size` problems of a mixture that fit the window, and how many of each task do not."""
    kept: Tokens = {}
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
            prompt_ids, completion_ids = encode(wording.example(mixture[index]), tokenizer)
            tokens = len(prompt_ids) + len(completion_ids)
            if tokens <= (wording.window or tokens):
                fitting.add(cell)
                kept[index] = array("i", prompt_ids), array("i", completion_ids)
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
                    f"no problem of data.tasks at data.lengths fits data.rules.window={wording.window}: "
                    f"the shortest of {too_long.total()} needs {shortest} tokens"
                )
    left_out: Counter[str] = Counter()
    for cell, count in too_long.items():
        left_out[cell.task.key] += count
    return kept, dict(left_out)
