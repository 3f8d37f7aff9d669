"""Asks sums again with other position ids: does a model fail because of the digits, or because of their positions?

- as they are     the model's own ids
- shifted         all ids plus the same number: affects learned embeddings, but not relative encodings (RoPE, ALiBi)
- compressed      scaled down to the ids that were seen in training (position interpolation; Chen et al. 2023, arXiv
                  2306.15595, equation 3); rounded to integers if ids have embeddings
- random order    other ids in the same order (equal ids stay equal), but at random distances: drawn from twice as many
                  ids, or from all ids that have embeddings

If sums of some length fail with their own ids but not with compressed ones, the positions are the reason.

Shapes: B sums, T tokens.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import TypeGuard

import numpy as np
import torch

from lab.errors import ModelError
from lab.models.position_ids import position_ids
from lab.models.scratch import NumberLlama
from lab.probing.bridge import Subject
from lab.probing.instruments.alignment import Lengths
from lab.probing.instruments.surgery import Accuracy, shares_right
from lab.probing.positions import Sums


@torch.inference_mode()
def remap(subject: Subject, lengths: Lengths, trained: int, shift: int = 8, batch_size: int = 32) -> Accuracy:
    """Asks sums of each length with all kinds of ids; axes (ids, length).

    Args:
        trained: the number of ids, from 0 on, that occurred in training.
        shift: what is added to shifted ids.

    Raises ModelError for a model that takes or uses no position ids, and for ids that have no embedding.
    """
    model = _model(subject)
    generator = np.random.default_rng(0)
    kinds: dict[str, Callable[[Sums], torch.Tensor]] = {
        "as they are": lambda sums: ids(subject, sums),
        "shifted": lambda sums: ids(subject, sums, shift),
        "compressed": lambda sums: compressed(ids(subject, sums), trained, _has_embeddings(model)),
        "random order": lambda sums: spread(own := ids(subject, sums), _room(model, own), generator),
    }

    def asked(sums: Sums, kind: str) -> torch.Tensor:
        return logits(subject, sums, kinds[kind](sums))

    by_kind = {kind: partial(asked, kind=kind) for kind in kinds}
    return shares_right("{} with other position ids", "ids", by_kind, lengths, batch_size)


def logits(subject: Subject, sums: Sums, ids_BT: torch.Tensor) -> torch.Tensor:
    """The logits (B, T, V) with these position ids, which may be fractions if ids have no embeddings."""
    tokens_BT = sums.tokens_BT.to(subject.device)
    # without a mask, transformers would take jumps in the ids for borders between texts packed into one row
    mask_BT = torch.ones_like(tokens_BT)
    return _model(subject)(tokens_BT, position_ids=ids_BT.to(subject.device), attention_mask=mask_BT).logits


def ids(subject: Subject, sums: Sums, shift: int = 0) -> torch.Tensor:
    """The model's own position ids (B, T) for these sums, plus `shift`. Abacus, coupled and countdown ids are shifted
    only at tokens with a place value, as in training."""
    model, tokens_BT = _model(subject), sums.tokens_BT.to(subject.device)
    if not isinstance(model, NumberLlama):
        return torch.arange(shift, shift + tokens_BT.shape[1], device=subject.device).expand_as(tokens_BT)
    kind, largest = model.config.position_kind, model.config.largest
    if kind in ("abacus", "coupled", "countdown"):
        start_B1 = torch.full_like(tokens_BT[:, :1], shift)
        return position_ids(kind, largest, tokens_BT, model.facts(subject.device), start_B1)
    return model.positions(tokens_BT).expand_as(tokens_BT) + shift


def compressed(ids_BT: torch.Tensor, trained: int, whole: bool) -> torch.Tensor:
    """Scales ids down so that the largest of the batch is `trained` - 1; unchanged if it is not larger than that."""
    largest = int(ids_BT.max())
    if largest < trained:
        return ids_BT
    scaled_BT = ids_BT * ((trained - 1) / largest)
    return scaled_BT.round().long() if whole else scaled_BT


def spread(ids_BT: torch.Tensor, room: int, generator: np.random.Generator) -> torch.Tensor:
    """Replaces the ids 0, 1, 2, ... by increasing ones, drawn without repetition from all ids below `room`."""
    drawn = np.sort(generator.permutation(room)[: int(ids_BT.max()) + 1])
    return torch.from_numpy(drawn).to(ids_BT.device)[ids_BT]


def _model(subject: Subject) -> torch.nn.Module:
    model = subject.bridge.original_model
    if isinstance(model, NumberLlama):
        if model.config.encoding == "nope":
            raise ModelError(f"{subject.name}: encoding nope uses no position ids, so there is nothing to change")
        return model
    takes_ids = "position_ids" in inspect.signature(model.forward).parameters
    if not takes_ids or getattr(getattr(model, "config", None), "rope_parameters", None) is None:
        raise ModelError(f"{subject.name}: position ids can only be changed in NumberLlama and in models with RoPE")
    return model


def _has_embeddings(model: torch.nn.Module) -> TypeGuard[NumberLlama]:
    return isinstance(model, NumberLlama) and model.config.encoding == "learned"


def _room(model: torch.nn.Module, ids_BT: torch.Tensor) -> int:
    return model.config.largest if _has_embeddings(model) else 2 * (int(ids_BT.max()) + 1)
