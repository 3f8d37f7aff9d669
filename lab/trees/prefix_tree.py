"""Many token sequences as one tree, so that a beginning that several of them share is computed once.

Most of a NUPA prompt is the format hint and the instruction, which are the same for every problem of a task. In a
causal model, the state of a token depends only on the tokens before it, so sequences that begin alike can share the
states of this beginning. The nodes, in order of first appearance, form one row without padding:

    tokens      H1 H2 T1 T2 7 + 2 =  9 . 4 + 4 = 8 .     one instruction, two problems
    depths      0  1  2  3  4 5 6 7  8 9 4 5 6 7 8 9     the position of a token in its sequence
    a token attends to its ancestors and to itself

Except for rounding, every state equals the one computed from the sequence alone. For the paper's prompts, less than
half of the tokens remain.

Shapes: T nodes.
"""

from collections.abc import Callable, Sequence

import torch


class PrefixTree:
    def __init__(
        self,
        sequences: Sequence[Sequence[int]],
        most: Sequence[int] | None = None,
        shareable: Callable[[Sequence[int], int], int] = lambda _, agreed: agreed,
    ) -> None:
        """A tree of token sequences.

        Args:
            sequences: the sequences.
            most: how many tokens of each sequence may be shared; all of them if not given.
            shareable: called as `shareable(sequence, agreed)`, if another sequence has the same first `agreed` tokens;
                returns how many of these may be shared. By default, all of them.
        """
        self.tokens: list[int] = []
        self.depths: list[int] = []
        self.parents: list[int] = []
        """The parent of each node; -1 for the first token of a sequence."""
        self.paths: list[list[int]] = [[] for _ in sequences]
        """The nodes of each sequence, one for each token."""
        path: list[int] = []
        # In sorted order, no earlier sequence shares a longer beginning than the one directly before.
        for place in sorted(range(len(sequences)), key=lambda i: tuple(sequences[i])):
            sequence = sequences[place]
            agreed = self._agreed(path, sequence, len(sequence) if most is None else most[place])
            before = [self.tokens[node] for node in path]
            shared = min(shareable(row, agreed) for row in (before, sequence))
            path = path[:shared]
            for depth in range(shared, len(sequence)):
                self.parents.append(path[-1] if path else -1)
                path.append(len(self.tokens))
                self.tokens.append(sequence[depth])
                self.depths.append(depth)
            self.paths[place] = path

    def _agreed(self, path: list[int], sequence: Sequence[int], limit: int) -> int:
        for depth, (node, token) in enumerate(zip(path, sequence, strict=False)):
            if depth == limit or self.tokens[node] != token:
                return depth
        return min(len(path), len(sequence), limit)

    def tokens_and_depths(self, device: torch.device | None = None) -> dict[str, torch.Tensor]:
        """input_ids and position_ids (1, T)."""
        return {
            "input_ids": torch.tensor([self.tokens], device=device),
            "position_ids": torch.tensor([self.depths], device=device),
        }

    def visible(self) -> torch.Tensor:
        """Whether each node (row) sees each node (column), (T, T): itself and its ancestors."""
        visible_TT = torch.eye(len(self.parents), dtype=torch.bool)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                visible_TT[node, : parent + 1] |= visible_TT[parent, : parent + 1]
        return visible_TT

    def inputs(self, device: torch.device | None = None) -> dict[str, torch.Tensor]:
        """input_ids and position_ids (1, T); attention_mask (1, 1, T, T), True for visible nodes (for SDPA)."""
        return {**self.tokens_and_depths(device), "attention_mask": self.visible()[None, None].to(device)}
