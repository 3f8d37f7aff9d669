"""Turns a batch of examples into the inputs of one forward pass, with labels only at the answers."""

from collections.abc import Sequence
from typing import Any

import torch

from lab.errors import ModelError
from lab.text.examples import IGNORED, EncodedExample
from lab.trees.layout import shareable, tree_inputs, tree_path_inputs
from lab.trees.paths import attends_along_paths
from lab.trees.prefix_tree import PrefixTree
from lab.tune.problem_sets import Row


class PrefixTreeCollator:
    """Turns examples into one prefix tree. Loss and gradients equal those of the padded batch, except that with
    dropout, tokens that examples share also share their dropout mask."""

    def __init__(self, model: Any = None) -> None:
        """`model`: the model that the inputs are for, if it may need more than tokens (`lab.trees.layout`)."""
        self.model = model
        self.window: int | None = model and getattr(model.config, "sliding_window", None)
        """The sliding window of some layers, in tokens. Attention in a tree ignores it, so rows may not be longer."""

    def of_rows(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Like `__call__`, for rows of a ProblemSet. Adds the index of the first row, and what parts draw for a
        batch."""
        inputs = self([EncodedExample(row["prompt_ids"], row["completion_ids"]) for row in rows])
        if inputs.get("part_inputs"):
            inputs["part_inputs"] = self.model.drawn(inputs["part_inputs"], rows[0]["index"])
        inputs["index"] = torch.tensor(rows[0]["index"])
        return inputs

    def __call__(self, batch: Sequence[EncodedExample]) -> dict[str, Any]:
        """The inputs of a PrefixTree of T nodes, and shift_labels (1, T): the token that each node should predict.

        Raises ModelError for a row that is longer than some layers of the model see.
        """
        # The last prompt token predicts the answer and is never shared, so that each example has its own loss.
        most = [len(prompt) - 1 for prompt, _ in batch]
        rows = [[*prompt, *completion[:-1]] for prompt, completion in batch]
        if self.window and (longest := max(map(len, rows))) > self.window:
            what = f"some layers see only {self.window} tokens back, but a problem with its answer takes {longest}"
            raise ModelError(f"{what}; use shorter data.lengths, or fewer data.passages")
        tree = PrefixTree(rows, most, shareable(self.model))
        labels_1T = torch.full((1, len(tree.tokens)), IGNORED)
        for (_, completion), path in zip(batch, tree.paths, strict=True):
            labels_1T[0, path[-len(completion) :]] = torch.tensor(completion)
        return {
            **self._attended(tree),
            "shift_labels": labels_1T,
            "labels": labels_1T,  # only the trainer reads them, to count the tokens of the mean loss
        }

    def _attended(self, tree: PrefixTree) -> dict[str, Any]:
        """What the model needs to know about the nodes, and which nodes each of them sees."""
        if attends_along_paths(self.model):
            return {**tree.tokens_and_depths(), **tree_path_inputs(self.model, tree, supervised=True)}
        return {**tree.inputs(), **tree_inputs(self.model, tree)}
