"""A learned vector for each position id, which is added to the embedding, instead of a rotation (Gehring et al. 2017,
arXiv 1705.03122).

Shapes: B rows, Q tokens of a forward pass, D width of the model.
"""

from typing import Any

import torch
from pydantic import Field
from torch import nn

from lab.config.parts import PartConfig, Parts
from lab.errors import ModelError
from lab.parts.nope import remove_rotation
from lab.parts.part import Inputs, Part


class LearnedIdsConfig(PartConfig, kind="learned_ids"):
    """Queries and keys are not rotated; a learned embedding of each position id is added to the inputs instead."""

    PRETRAINED, ROTATES = False, False

    largest: int = Field(default=1024, ge=2)
    """How many ids have a vector. If a part with a key `largest` decides the ids, there are as many as it has."""

    def build(self, model: Any, others: Parts) -> "LearnedIds":
        counts = [getattr(other, "largest", self.largest) for other in others.values() if other.DECIDES]
        return LearnedIds(self, counts[0] if counts else self.largest, model.hidden_size)


class LearnedIds(Part):
    def __init__(self, config: LearnedIdsConfig, count: int, width: int) -> None:
        super().__init__(config)
        self.vectors = nn.Embedding(count, width)

    def attach(self, model: Any) -> None:
        remove_rotation(model)

    def embedded(self, hidden_BQD: torch.Tensor, inputs: Inputs, ids_BQ: torch.Tensor) -> torch.Tensor:
        """Raises ModelError for an id without a vector.

        There is no check during training on a GPU, because it would have to wait for the GPU, and none in compiled
        code. Rows are checked before the training instead.
        """
        count, looked_at = self.vectors.num_embeddings, ids_BQ.device.type == "cpu" or not self.training
        if looked_at and not torch.compiler.is_compiling() and (largest := int(ids_BQ.max())) >= count:
            raise ModelError(
                f"a row has position id {largest}, but only ids below {count} have an embedding: train with "
                f"`largest` above {largest}, of parts.learned_ids or of the part that decides ids, or give shorter rows"
            )
        return hidden_BQD + self.vectors(ids_BQ)
