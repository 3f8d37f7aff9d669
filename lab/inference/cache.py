"""A key-value cache whose rows are of different lengths.

    slots           0   1   2   3   4   5   6   7       room for 8 tokens a row
    row of 5        a   b   c   d   e  [x   y]  .       two tokens more go to its slots 5 and 6
    row of 3        k   l   m  [u   v]  .   .   .       and to 3 and 4 of this one

A token's slot is its position, and a token sees the slots up to its own. So nothing need be removed that turns out not
to belong there, as a draft that is refused does not: nobody sees it before it is overwritten.

The cache of transformers is copied whole for every generated token; in a profile on a CPU that was a third of
generation. Here there is room ahead, which doubles when it is used up.

Shapes: B rows, Q tokens of a forward pass, K slots that any of them sees.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from transformers import Cache

States: TypeAlias = Sequence[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of each layer, (B, heads, tokens, width)."""


class RaggedCache(Cache):
    def __init__(self, rows: int, room: int, most: int) -> None:
        """Slots for `room` tokens a row at first, and never for more than `most` unless they are needed."""
        super().__init__(layers=[])
        self.rows, self.room, self.most = rows, room, most
        self._buffers: list[list[torch.Tensor]] = []
        self._rows_B1 = self._slots_BQ = torch.empty(0)
        self._seen = 0

    def fill(self, first: int, states: States) -> None:
        """The beginnings of some rows, from row `first` on; what is past a row's length may be anything finite."""
        if not self._buffers:
            self._buffers = [[self._empty(part, self.rows) for part in layer] for layer in states]
        for buffers, layer in zip(self._buffers, states, strict=True):
            for buffer, part in zip(buffers, layer, strict=True):
                buffer[first : first + part.shape[0], :, : part.shape[2]] = part

    def place(self, lengths: Sequence[int], counts: Sequence[int]) -> dict[str, Any]:
        """The next forward pass gives each row, of so many tokens, so many more; what the model needs to know of it.

        Rows with fewer new tokens than others are padded, on the right, to the Q of those. Returns position_ids (B, Q),
        attention_mask (B, 1, Q, K), True where attention goes (for SDPA), and past_key_values.
        """
        device, most = self._buffers[0][0].device, max(counts)
        self._seen = max(lengths) + most
        self._make_room(self._seen)
        lengths_B1, counts_B1 = torch.tensor([lengths, counts], device=device)[:, :, None]
        self._rows_B1 = torch.arange(self.rows, device=device)[:, None]
        self._slots_BQ = lengths_B1 + torch.arange(most, device=device)
        return {
            # padding takes no position that the model may not have
            "position_ids": self._slots_BQ.minimum(lengths_B1 + counts_B1 - 1),
            "attention_mask": torch.arange(self._seen, device=device) <= self._slots_BQ[:, None, :, None],
            "past_key_values": self,
        }

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """States (B, heads, Q, width) go to where `place` said; returns all that are seen, (B, heads, K, width)."""
        for buffer, states in zip(self._buffers[layer_idx], (key_states, value_states), strict=True):
            buffer[self._rows_B1, :, self._slots_BQ] = states.transpose(1, 2)
        keys, values = (buffer[:, :, : self._seen] for buffer in self._buffers[layer_idx])
        return keys, values

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._seen

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows alone."""
        self.rows = len(rows)
        for buffers in self._buffers:
            buffers[:] = [buffer[torch.tensor(rows, device=buffer.device)] for buffer in buffers]

    def _empty(self, like: torch.Tensor, rows: int) -> torch.Tensor:
        # Zeros: what is masked is multiplied by 0, and 0 times whatever memory holds may be NaN.
        return like.new_zeros(rows, like.shape[1], self.room, like.shape[3])

    def _make_room(self, tokens: int) -> None:
        if tokens <= self.room:
            return
        old, self.room = self.room, max(tokens, min(2 * self.room, self.most))
        for buffers in self._buffers:  # one at a time, so that little is held twice
            for i, buffer in enumerate(buffers):
                buffers[i] = self._empty(buffer, self.rows)
                buffers[i][:, :, :old] = buffer
