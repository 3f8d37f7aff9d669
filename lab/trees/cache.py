"""A key-value cache whose rows have different lengths.

    slots           0   1   2   3   4   5   6   7       room for 8 tokens in each row
    row of 5        a   b   c   d   e  [x   y]  .       two new tokens go to slots 5 and 6 of this row
    row of 3        k   l   m  [u   v]  .   .   .       and to slots 3 and 4 of this one

The slot of a token is its position, and a token sees the slots up to its own. Therefore tokens that turn out to be
wrong, such as those of a rejected draft, need not be removed: no token sees them before they are overwritten.

The cache of transformers is copied as a whole for every generated token; in a profile on a CPU, this took a third of
the generation time. This cache has free slots, and doubles its number of slots when they are used up.

Shapes: B rows, Q tokens in a forward pass, K slots that any of these tokens sees.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from transformers import Cache

States: TypeAlias = Sequence[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of each layer, (B, heads, tokens, width)."""


class RaggedCache(Cache):
    def __init__(self, rows: int, room: int, most: int) -> None:
        """An empty cache.

        Args:
            rows: number of rows.
            room: the initial number of slots in each row.
            most: doubling stops at this number of slots; more are added only if they are needed.
        """
        super().__init__(layers=[])
        self.rows, self.room, self.most = rows, room, most
        self._buffers: list[list[torch.Tensor]] = []
        self._rows_B1 = self._slots_BQ = torch.empty(0)
        self._seen = 0

    def fill(self, first: int, states: States) -> None:
        """Store the states of the first tokens of consecutive rows, starting with row `first`. Beyond the end of a row,
        states may be any finite numbers."""
        if not self._buffers:
            self._buffers = [[self._empty(part, self.rows) for part in layer] for layer in states]
        for buffers, layer in zip(self._buffers, states, strict=True):
            for buffer, part in zip(buffers, layer, strict=True):
                buffer[first : first + part.shape[0], :, : part.shape[2]] = part

    def place(self, lengths: Sequence[int], counts: Sequence[int]) -> dict[str, Any]:
        """Prepare the next forward pass, and return the arguments that it needs.

        Args:
            lengths: how many tokens of each row are in the cache.
            counts: how many new tokens each row gets. Rows with fewer than Q new tokens are padded on the right.

        Returns position_ids (B, Q), attention_mask (B, 1, Q, K), which is True for visible slots (for SDPA), and
        past_key_values.
        """
        device, most = self._buffers[0][0].device, max(counts)
        self._seen = max(lengths) + most
        self._make_room(self._seen)
        lengths_B1, counts_B1 = torch.tensor([lengths, counts], device=device)[:, :, None]
        self._rows_B1 = torch.arange(self.rows, device=device)[:, None]
        self._slots_BQ = lengths_B1 + torch.arange(most, device=device)
        return {
            # padding repeats the last position, as the model may not have later ones
            "position_ids": self._slots_BQ.minimum(lengths_B1 + counts_B1 - 1),
            "attention_mask": torch.arange(self._seen, device=device) <= self._slots_BQ[:, None, :, None],
            "past_key_values": self,
        }

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store states (B, heads, Q, width) in the slots that `place` chose; returns all visible ones, (B, heads, K,
        width)."""
        for buffer, states in zip(self._buffers[layer_idx], (key_states, value_states), strict=True):
            buffer[self._rows_B1, :, self._slots_BQ] = states.transpose(1, 2)
        keys, values = (buffer[:, :, : self._seen] for buffer in self._buffers[layer_idx])
        return keys, values

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._seen

    def select(self, rows: Sequence[int]) -> None:
        """Keep only these rows."""
        self.rows = len(rows)
        for buffers in self._buffers:
            buffers[:] = [buffer.index_select(0, torch.tensor(rows, device=buffer.device)) for buffer in buffers]

    def _empty(self, like: torch.Tensor, rows: int) -> torch.Tensor:
        # Zeros, because masked values are multiplied by 0, and uninitialised memory may hold NaN.
        return like.new_zeros(rows, like.shape[1], self.room, like.shape[3])

    def _make_room(self, tokens: int) -> None:
        if tokens <= self.room:
            return
        old, self.room = self.room, max(tokens, min(2 * self.room, self.most))
        for buffers in self._buffers:  # one at a time, so that little is in memory twice
            for i, buffer in enumerate(buffers):
                buffers[i] = self._empty(buffer, self.rows)
                buffers[i][:, :, :old] = buffer
