"""Turns a batch of examples into the inputs of one forward pass, with labels only at the answers."""

from collections.abc import Sequence
from typing import Any

import torch

from lab.errors import ModelError
from lab.text.aligned_digits import NOWHERE
from lab.text.examples import IGNORED, EncodedExample
from lab.trees.layout import shareable, tree_inputs, tree_path_inputs
from lab.trees.paths import attends_along_paths
from lab.trees.prefix_tree import PrefixTree
from lab.tune.problem_sets import Row


class PrefixTreeCollator:
    """Turns examples into one prefix tree. Loss and gradients equal those of the padded batch, except that with
    dropout, tokens that examples share also share their dropout mask."""

    def __init__(self, share_prefixes: bool = True, model: Any = None) -> None:
        """A collator.

        Args:
            share_prefixes: whether examples share the nodes of their common beginning; if not, each has its own.
            model: the model that the inputs are for, if it may need more than tokens (`lab.trees.layout`).
        """
        self.share_prefixes, self.model = share_prefixes, model
        self.window: int | None = model and getattr(model.config, "sliding_window", None)
        """The sliding window of some layers, in tokens. Attention in a tree ignores it, so rows may not be longer."""

    def of_rows(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Like `__call__`, for rows of a ProblemSet. Adds the index of the first row, and what parts draw for a batch.

        If the rows have aligned digits, it also adds visible_TT, which is True for the nodes that each node may see,
        and first_at and second_at (P, 2). These hold P pairs of nodes: the node that predicts a digit, and the node of
        the operand's digit at the same place.
        """
        inputs, tree = self._tree([EncodedExample(row["prompt_ids"], row["completion_ids"]) for row in rows])
        if inputs.get("part_inputs"):
            inputs["part_inputs"] = self.model.drawn(inputs["part_inputs"], rows[0]["index"])
        inputs["index"] = torch.tensor(rows[0]["index"])
        if "first_at" in rows[0]:
            inputs["visible_TT"] = tree.visible()
            inputs |= {side: _aligned(rows, tree.paths, side) for side in ("first_at", "second_at")}
        return inputs

    def __call__(self, batch: Sequence[EncodedExample]) -> dict[str, Any]:
        """The inputs of a PrefixTree of T nodes, and shift_labels (1, T): the token that each node should predict.

        Raises ModelError for a row that is longer than some layers of the model see.
        """
        return self._tree(batch)[0]

    def _tree(self, batch: Sequence[EncodedExample]) -> tuple[dict[str, Any], PrefixTree]:
        # The last prompt token predicts the answer and is never shared, so that each example has its own loss.
        most = [len(prompt) - 1 if self.share_prefixes else 0 for prompt, _ in batch]
        rows = [[*prompt, *completion[:-1]] for prompt, completion in batch]
        if self.window and (longest := max(map(len, rows))) > self.window:
            what = f"some layers see only {self.window} tokens back, but a problem with its answer takes {longest}"
            raise ModelError(f"{what}; use shorter data.lengths, or fewer data.passages")
        tree = PrefixTree(rows, most, shareable(self.model))
        labels_1T = torch.full((1, len(tree.tokens)), IGNORED)
        for (_, completion), path in zip(batch, tree.paths, strict=True):
            labels_1T[0, path[-len(completion) :]] = torch.tensor(completion)
        inputs = {
            **self._attended(tree),
            "shift_labels": labels_1T,
            "labels": labels_1T,  # only the trainer reads them, to count the tokens of the mean loss
        }
        return inputs, tree

    def _attended(self, tree: PrefixTree) -> dict[str, Any]:
        """What the model needs to know about the nodes, and which nodes each of them sees."""
        if attends_along_paths(self.model):
            return {**tree.tokens_and_depths(), **tree_path_inputs(self.model, tree, supervised=True)}
        return {**tree.inputs(), **tree_inputs(self.model, tree)}


def _aligned(rows: Sequence[Row], paths: Sequence[Sequence[int]], side: str) -> torch.Tensor:
    """The pairs of nodes (P, 2) of one operand; `side` is first_at or second_at. See `PrefixTreeCollator.of_rows`."""
    pairs = [
        (path[len(row["prompt_ids"]) - 1 + index], path[digit])
        for row, path in zip(rows, paths, strict=True)
        for index, digit in enumerate(row.get(side, ()))
        if digit != NOWHERE
    ]
    return torch.tensor(pairs, dtype=torch.long).view(-1, 2)
