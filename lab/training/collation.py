"""A batch of examples as the inputs of one forward pass, with labels at the answers alone."""

from collections.abc import Sequence
from typing import Any

import torch

from lab.models.prefix_tree import PrefixTree
from lab.text.examples import IGNORED, EncodedExample


class PrefixTreeCollator:
    """Examples as one prefix tree. Loss and gradients are those of the padded batch (with dropout, examples share the
    mask of what they share)."""

    def __init__(self, share_prefixes: bool = True) -> None:
        """Without shared prefixes every example is a branch of its own: as many tokens as the examples have."""
        self.share_prefixes = share_prefixes

    def of_rows(self, rows: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """The same of the rows of a ProblemSet."""
        return self([EncodedExample(row["prompt_ids"], row["completion_ids"]) for row in rows])

    def __call__(self, batch: Sequence[EncodedExample]) -> dict[str, torch.Tensor]:
        """The inputs of PrefixTree, and shift_labels (1, T): what each node is to predict."""
        # The last prompt token predicts the answer: each example has its own, so that each has its own loss.
        shareable = [len(prompt) - 1 if self.share_prefixes else 0 for prompt, _ in batch]
        tree = PrefixTree([[*prompt, *completion[:-1]] for prompt, completion in batch], shareable)
        labels_1T = torch.full((1, len(tree.tokens)), IGNORED)
        for (_, completion), path in zip(batch, tree.paths, strict=True):
            labels_1T[0, path[-len(completion) :]] = torch.tensor(completion)
        return {
            **tree.inputs(),
            "shift_labels": labels_1T,
            "labels": labels_1T,  # read by the trainer alone, to count what the loss is averaged over
        }
