"""A batch as one prefix tree: the tokens that problems have in common are computed once.

NUPA prompts are mostly format hint and instruction, the same for every problem of a task. A causal model's state at a
token depends on the tokens before it alone, so problems that begin alike may share the states of that beginning.
Sorted, the batch's token sequences form a tree; its nodes, in order of first appearance, are one row:

    tokens      H1 H2 T1 T2 7 + 2 =  9 . 4 + 4 = 8 .     one instruction, two problems
    positions   0  1  2  3  4 5 6 7  8 9 4 5 6 7 8 9     depth in the tree
    a token attends to its ancestors and to itself

Loss and gradients are those of the padded batch (rounding aside; with dropout, problems share the mask of what they
share). On the paper's prompts this leaves about 40 % of the tokens, and no padding.

Shapes: T tokens of the tree.
"""

from collections.abc import Sequence

import torch

from lab.text.examples import EncodedExample

IGNORED = -100
"""The label of a token whose continuation is not trained on."""


class PrefixTreeCollator:
    """Examples to the inputs of a causal model that takes 4-D masks, with labels already shifted."""

    def __init__(self, share_prefixes: bool = True) -> None:
        """Without shared prefixes every example is a branch of its own: as many tokens as the examples have."""
        self.share_prefixes = share_prefixes

    def __call__(self, batch: Sequence[EncodedExample]) -> dict[str, torch.Tensor]:
        """input_ids, position_ids, shift_labels: (1, T); attention_mask: (1, 1, T, T), True where attention goes."""
        tokens: list[int] = []
        depths: list[int] = []
        labels: list[int] = []
        parents: list[int] = []
        path: list[int] = []
        for prompt, completion in sorted(batch):
            sequence = [*prompt, *completion]
            # The last prompt token predicts the answer: each problem has its own, so that each has its own loss.
            shared = _common_prefix([tokens[node] for node in path], prompt[:-1]) if self.share_prefixes else 0
            del path[shared:]
            for depth in range(shared, len(sequence) - 1):
                parents.append(path[-1] if path else -1)
                path.append(len(tokens))
                tokens.append(sequence[depth])
                depths.append(depth)
                labels.append(sequence[depth + 1] if depth >= len(prompt) - 1 else IGNORED)
        labels_1T = torch.tensor([labels])
        return {
            "input_ids": torch.tensor([tokens]),
            "position_ids": torch.tensor([depths]),
            "attention_mask": _ancestors(parents)[None, None],
            "shift_labels": labels_1T,
            "labels": labels_1T,  # read by the trainer alone, to count what the loss is averaged over
        }


def _common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _ancestors(parents: Sequence[int]) -> torch.Tensor:
    """(T, T) mask, True at (node, ancestor) and at (node, node); a parent stands before its children."""
    mask_TT = torch.eye(len(parents), dtype=torch.bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            mask_TT[node, : parent + 1] |= mask_TT[parent, : parent + 1]
    return mask_TT
