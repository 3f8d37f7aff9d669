"""Models from scratch and their parts, as tests make them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from lab.config.parts import section_of
from lab.config.pretraining import PretrainConfig, ScratchConfig
from lab.parts.abacus_ids import abacus, draw_starts
from lab.parts.countdown_ids import countdown
from lab.parts.coupled_ids import CoupledIds, CoupledIdsConfig
from lab.parts.part import Step
from lab.parts.positions import Positions
from lab.parts.rows import Rows, Words
from lab.parts.token_facts import TokenFacts, draw_offsets, longest_runs, shifted
from lab.scratch.llama import NumberLlama, build

Keys = Mapping[str, Mapping[str, Any]]


def config(parts: Keys | None = None, seed: int = 0, **model: Any) -> PretrainConfig:
    """A config of these parts, whatever else they go with."""
    sections = {kind: section_of(kind).model_validate(keys) for kind, keys in (parts or {}).items()}
    return PretrainConfig.model_construct(model=ScratchConfig(**model), parts=sections, uses=[], seed=seed)


def built(vocabulary: Sequence[str], parts: Keys | None = None, seed: int = 0, **model: Any) -> NumberLlama:
    """A model that is not trained."""
    return build(config(parts, seed, **model), vocabulary).eval()


def step(positions: Positions, visible_BQK: torch.Tensor | None = None, training: bool = False) -> Step:
    """A forward pass over tokens with these ids, all of which are visible if not given."""
    if visible_BQK is None:
        visible_BQK = torch.ones_like(positions.distances_BQK, dtype=torch.bool)
    return Step(torch.zeros(()), torch.nn.Identity(), training, visible_BQK[:, None], positions)


def position_ids(
    kind: str, largest: int, ids_BT: torch.Tensor, facts: TokenFacts, drawn_BN: torch.Tensor | None = None
) -> torch.Tensor:
    """The ids (B, T) of a kind; `drawn_BN`: what was drawn for each problem."""
    match kind:
        case "plain":
            padding = ((ids_BT != 0).cumsum(-1) == 0).sum(-1).tolist()
            return Rows(ids_BT, Words([]), padding=padding).in_text
        case "abacus":
            return abacus(ids_BT, facts, drawn_BN)
        case "coupled":
            ids = CoupledIds(CoupledIdsConfig()).ids(ids_BT, facts)
            return shifted(ids, ids_BT, facts, largest, drawn_BN)
        case _:
            return shifted(countdown(ids_BT, facts), ids_BT, facts, largest, drawn_BN)


def draw(
    kind: str, largest: int, ids_BT: torch.Tensor, facts: TokenFacts, generator: np.random.Generator
) -> torch.Tensor:
    """What is drawn for each problem of a training batch."""
    if kind == "abacus":
        return draw_starts(longest_runs(ids_BT, facts), largest, generator)
    spans = longest_runs(ids_BT, facts, asked=kind == "countdown") + (3 if kind == "countdown" else 2)
    return draw_offsets(spans, largest, generator, f"{kind}_ids")
