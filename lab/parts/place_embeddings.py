"""A vector for the place of a digit in its run of digits, added to the token's embedding (Abacus, McLeish et al. 2024,
arXiv 2405.17399). All vectors start at zero, so the model first computes exactly what the base model does.

Shapes: B rows, Q tokens of a forward pass, D width of the model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import nn

from lab.config.parts import PartConfig, Parts
from lab.errors import ModelError
from lab.numbers.philox import philox
from lab.parts.part import Inputs, Part
from lab.parts.rows import Rows, Words
from lab.text.docstrings import longest_number


class PlaceEmbeddingsConfig(PartConfig, kind="place_embeddings"):
    """An embedding of a digit's place is added to the embedding of the digit (Abacus, McLeish et al. 2024). The place
    of a token is how many digits its run of digits has up to and including this token. The embeddings start at zero, so
    at first they change nothing. In training, the place of the first digit is drawn for each batch, so that all
    embeddings are trained."""

    FROM_SCRATCH = False

    places: int = Field(ge=1)
    """How many places have an embedding."""

    def check(self, run: Any) -> None:
        run.format.check_that_places_agree("parts.place_embeddings")
        longest = max(cell.length for cell in [*run.data.cells, *run.test_cells])
        if longest > self.places:
            what = f"parts.place_embeddings.places={self.places}: numbers of data.lengths and evaluation.lengths have"
            raise ValueError(f"{what} up to {longest} digits: use as many places or more, or shorter numbers")
        reads_text = run.data.passages or run.training.replay.tokens
        if reads_text and (longest := longest_number()) > self.places:
            what = f"parts.place_embeddings.places={self.places}: text of data.passages and training.replay has numbers"
            raise ValueError(
                f"{what} of {longest} digits: use as many places or more, or leave passages and replay out"
            )

    def build(self, model: Any, others: Parts) -> "PlaceEmbeddings":
        return PlaceEmbeddings(self, model.hidden_size)


class PlaceEmbeddings(Part):
    def __init__(self, config: PlaceEmbeddingsConfig, width: int) -> None:
        super().__init__(config)
        self.weight = nn.Parameter(torch.empty(config.places, width))
        self._words = Words([])

    def reset(self) -> None:
        nn.init.zeros_(self.weight)

    def read(self, words: Words, reverse: str) -> None:
        self._words = words

    def inputs(self, rows: Rows) -> dict[str, torch.Tensor]:
        """places_BQ. The model may write numbers of any length, so places beyond the last embedding count as the last
        in what it wrote. Raises ModelError for such places in other text."""
        places = [self.places(whole) for whole in rows.wholes]
        places_BQ = rows.of_queries(places)
        if rows.written:
            places_BQ = places_BQ.clamp(max=self.config.places)
        if (largest := int(places_BQ.max())) > self.config.places:
            raise ModelError(
                f"a number has a digit at place {largest}, but only places to {self.config.places} have embeddings: "
                f"train with parts.place_embeddings.places of at least {largest}"
            )
        return {"places_BQ": places_BQ}

    def places(self, tokens: Sequence[int]) -> np.ndarray:
        """For each token, the number of digits of its run up to and including it; 0 for tokens without digits. Hints do
        not end a run."""
        found, run = np.zeros(len(tokens), dtype=np.int64), 0
        for at, token in enumerate(tokens):
            digits = int(self._words.counts[token])
            run = run + digits if digits or self._words.is_hint[token] else 0
            found[at] = run if digits else 0
        return found

    def drawn(self, inputs: dict[str, torch.Tensor], index: int) -> dict[str, torch.Tensor]:
        """Places shifted by a random number, the same for the whole batch, because examples share nodes."""
        places_BQ = inputs["places_BQ"]
        room = self.config.places - int(places_BQ.max())
        start = philox("first place", index).random_raw() % (room + 1) if room > 0 else 0
        return {"places_BQ": torch.where(places_BQ > 0, places_BQ + start, 0)}

    def embedded(self, hidden_BQD: torch.Tensor, inputs: Inputs, ids_BQ: torch.Tensor) -> torch.Tensor:
        places_BQ = inputs["places_BQ"]
        vectors_BQD = nn.functional.embedding((places_BQ - 1).clamp(min=0), self.weight)
        return hidden_BQD + (vectors_BQD * (places_BQ > 0)[..., None]).to(hidden_BQD.dtype)
