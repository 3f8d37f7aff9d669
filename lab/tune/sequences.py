"""Training sequences of problems in a notation, with one or several problems in each sequence.

Packed problems follow each other without a mask between them. Coupled position ids give each problem its own window of
ids, so that a model learns to attend to the current place and to ignore far ones. Plain ids run through
the whole sequence, and abacus ids of different problems may overlap.

Shapes: R sequences, T tokens of the longest one.
"""

from collections.abc import Sequence

import numpy as np
import torch
from datasets import Dataset
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.pretraining import PretrainingDataConfig, PretrainTrainingConfig
from lab.numbers.sampling import BLOCK
from lab.numbers.splits import Split
from lab.scratch.llama import NumberLlama
from lab.text.examples import IGNORED
from lab.text.scratch_notation import ScratchNotation
from lab.tune.problem_sets import ProblemSet, Row, Selection, TrainingSets, validated, varied


def notated_problems(
    selection: Selection, split: Split, size: int, notation: ScratchNotation, tokenizer: PreTrainedTokenizerBase
) -> ProblemSet:
    """The first `size` problems of the selection.

    If a notation is random, its draws depend on the problem's index, so a problem that occurs again is written
    differently.
    """
    mixture, ids = selection.mixture(split, size), tokenizer.get_vocab()
    begin, end = ids[tokenizer.bos_token], ids[tokenizer.eos_token]  # type: ignore[index]

    def look_up(rows: dict[str, list[int]]) -> dict[str, list]:
        prompts, completions = [], []
        for index in rows["index"]:
            item = varied(mixture[index], selection.variation, selection.seed, index)
            prompts.append([begin, *(ids[word] for word in notation.question(item, index))])
            completions.append([*(ids[word] for word in notation.answer(item, index)), end])
        return {"index": rows["index"], "prompt_ids": prompts, "completion_ids": completions}

    return ProblemSet(Dataset.from_dict({"index": np.arange(size)}).with_transform(look_up), {})


def sequence_sets(
    data: PretrainingDataConfig,
    training: PretrainTrainingConfig,
    seed: int,
    notation: ScratchNotation,
    tokenizer: PreTrainedTokenizerBase,
) -> TrainingSets:
    """The training and validation problems.

    Lengths that only the train split has, which are 1 and 2 for most tasks, are validated only if there are no others.
    Raises ConfigError if a step cannot be divided equally between the processes.
    """
    training.passes()
    valid = validated(data.cells, seed)
    samples, split = training.max_steps * training.batch_size, "valid" if valid else "train"
    selection = Selection(data.cells, seed, data.variation, data.curriculum)
    return TrainingSets(
        notated_problems(selection, "train", samples, notation, tokenizer),
        notated_problems(Selection(valid or data.cells, seed), split, training.valid_problems, notation, tokenizer),
    )


def longest_rows(
    data: PretrainingDataConfig, seed: int, notation: ScratchNotation, tokenizer: PreTrainedTokenizerBase
) -> list[Row]:
    """Rows for `check_that_it_fits`: for each task, those with the most tokens among two blocks of problems of the
    greatest length, as many as one sequence packs."""

    def size(row: Row) -> int:
        return len(row["prompt_ids"]) + len(row["completion_ids"])

    rows: list[Row] = []
    for cell in (cell for cell in data.cells if cell.length == data.lengths[1]):
        some = notated_problems(Selection([cell], seed), "train", 2 * BLOCK, notation, tokenizer).rows(range(2 * BLOCK))
        rows += sorted(some, key=size)[-data.packing :]
    return rows


class SequenceCollator:
    """Turns rows into training sequences of several problems each."""

    def __init__(self, model: NumberLlama, packing: int, seed: int) -> None:
        """A collator.

        Args:
            model: the model, whose parts may draw position ids.
            packing: how many problems a sequence has.
            seed: the seed of random position ids.
        """
        self.model, self.packing, self.seed = model, packing, seed

    def __call__(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        """input_ids, position_ids and shift_labels (R, T), padded on the right, with labels only at answers. There are
        position_ids only if a part decides them, and not in each forward pass.

        Random positions depend on the index of the first problem, so that a resumed run draws the same ones.
        """
        sequences, labels = [], []
        for first in range(0, len(rows), self.packing):
            tokens: list[int] = []
            wanted: list[int] = []
            for row in rows[first : first + self.packing]:
                prompt, completion = row["prompt_ids"], row["completion_ids"]
                tokens += [*prompt, *completion]
                wanted += [*[IGNORED] * (len(prompt) - 1), *completion, IGNORED]
            sequences.append(tokens[:-1])
            labels.append(wanted[:-1])
        ids_RT, labels_RT = _padded(sequences, self.model.config.pad_token_id or 0), _padded(labels, IGNORED)
        generator = np.random.Generator(np.random.Philox([self.seed, int(rows[0]["index"])]))
        drawn_RT = self.model.drawn_ids(ids_RT, generator)
        batch = {
            "input_ids": ids_RT,
            "shift_labels": labels_RT,
            "labels": labels_RT,  # only the trainer reads them, to count the tokens of the mean loss
        }
        return batch if drawn_RT is None else {**batch, "position_ids": drawn_RT}


def _padded(rows: Sequence[Sequence[int]], value: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows])


def sequence_loss(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The summed loss of the labels, for a model that applies its head only at labels (lab/scratch/llama.py)."""
    return model(
        input_ids=inputs["input_ids"],
        position_ids=inputs.get("position_ids"),
        shift_labels=inputs["shift_labels"],
        num_items_in_batch=1,
        use_cache=False,
    ).loss


def check_that_it_fits(model: NumberLlama, collate: SequenceCollator, rows: Sequence[Row]) -> None:
    """Raises ModelError, in one line, if the model does not have enough position ids for these rows."""
    inputs = {name: part.to(model.device) for name, part in collate(rows).items()}
    model.check_rows(inputs["input_ids"], inputs.get("position_ids"))
