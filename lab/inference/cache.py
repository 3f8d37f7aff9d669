"""A key-value cache with room to grow.

The cache of transformers is copied whole for every generated token; in a profile on a CPU that was a third of
generation.
"""

from collections.abc import Sequence

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer


class RoomyLayer(DynamicLayer):
    """Keys and values of one layer, (B, heads, tokens, width), as views of buffers that hold `room` tokens more."""

    def __init__(self, keys: Sequence[torch.Tensor], values: Sequence[torch.Tensor], room: int) -> None:
        """Takes the batch in pieces, (b, heads, tokens, width) each."""
        super().__init__()
        self.lazy_initialization(keys[0], values[0])
        heads, tokens, width = keys[0].shape[1:]
        batch = sum(map(len, keys))
        self.buffers = [keys[0].new_empty(batch, heads, tokens + room, width) for _ in range(2)]
        for buffer, pieces in zip(self.buffers, (keys, values), strict=True):
            for place, piece in zip(buffer.split([len(piece) for piece in pieces]), pieces, strict=True):
                place[:, :, :tokens] = piece
        self._show(tokens)

    def _show(self, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = (buffer[:, :, :tokens] for buffer in self.buffers)
        self.keys, self.values = keys, values
        return keys, values

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append states; raises RuntimeError when there is no room left for them."""
        old = self.get_seq_length()
        new = old + key_states.shape[2]
        for buffer, states in zip(self.buffers, (key_states, value_states), strict=True):
            buffer[:, :, old:new] = states
        return self._show(new)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        tokens = self.get_seq_length()
        self.buffers = [buffer[indices] for buffer in self.buffers]
        self._show(tokens)


def roomy_cache(pieces: Sequence[Sequence[tuple[torch.Tensor, torch.Tensor]]], room: int) -> DynamicCache:
    """A cache that takes `room` tokens more; a piece of the batch has (keys, values) for every layer."""
    cache = DynamicCache()
    for layer in zip(*pieces, strict=True):
        keys, values = zip(*layer, strict=True)
        cache.layers.append(RoomyLayer(keys, values, room))
    return cache


def layers(cache: DynamicCache) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Keys and values of each layer, (B, heads, tokens, width)."""
    return [(layer.keys, layer.values) for layer in cache.layers]  # type: ignore[union-attr, return-value]
