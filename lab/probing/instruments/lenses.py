"""What each layer would answer, and which component writes the answer.

Logit lens (nostalgebraist 2020, "interpreting GPT: the logit lens"): the residual stream after a layer is read through
the final norm and the unembedding, as if the layer were the last. `logit_lens` measures how often the right answer is
the most likely token at each query, how likely it is, and its rank.

Direct logit attribution (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; Wang et al. 2022,
arXiv 2211.00593): the final residual stream is the sum of what the embedding, each head and each MLP wrote. If the
scale s of the final norm is frozen, the logits are such a sum too. The attribution of a component's write x to answer d
is

    (x . w / s) (u_d - mean of u_e over all other answers e of the contrast, such as the other nine digits)

with the weights w of the final norm and the unembedding u. (If the norm subtracts the mean, so does the attribution.)
Only the direct path to the logits counts, not what a component does through later layers. Both instruments give hints,
not evidence: what a layer would answer need not be what later layers read.

The control of both is the source's answer, which has nothing to do with the base. Only the rows of the first half are
read, since the second half has the same prompts exchanged.

Shapes: B rows, K queries, D width of the model, V words, H heads, Z width of a head, C components, G locations.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
import torch

from lab.errors import ModelError
from lab.probing.batching import batches
from lab.probing.bridge import TOLERANCE, Subject
from lab.probing.contrast import Contrast, Contrasting
from lab.probing.interventions import take
from lab.probing.measured import Measured

ANSWERS = ("right", "of the source")


class Lens(NamedTuple):
    """How well an answer can be read from the residual stream; axes (layer, site, query, answer). (The contrast may
    have another name for its queries.)"""

    accuracy: Measured
    """How often it is the most likely of all tokens."""
    probability: Measured
    rank: Measured
    """How many tokens are more likely."""


def logit_lens(subject: Subject, pairs: Contrasting, *, batch_size: int = 64) -> Lens:
    """Reads the answers to the bases from the residual stream at each layer and site. At "post" of the last layer,
    these are the model's own predictions.

    Raises the errors of `pairs.contrast`, and TaskError for a contrast without answers.
    """
    contrast = _bases(subject, pairs)
    layers = range(subject.layers)
    locations = list(product(layers, subject.sites))
    names = [f"blocks.{layer}.hook_resid_{site}" for layer, site in locations]
    token_BKX, there_BKX = _answers(contrast)
    shape = (len(contrast), len(locations), *token_BKX.shape[1:])
    top, probability, rank = (np.full(shape, np.nan) for _ in range(3))
    with torch.inference_mode():
        for rows in batches(len(contrast), batch_size):
            _, found = subject.activations(contrast.base.part(rows), names)
            token_BKX_here = token_BKX[rows].to(subject.device)
            for g, name in enumerate(names):
                stream_BKD = take(found[name], contrast.query_at_BQ[rows])
                normed_BKD = subject.bridge.ln_final(stream_BKD.to(subject.bridge.W_U.dtype))
                logits_BKV = subject.bridge.unembed(normed_BKD).float()
                found_BKX = logits_BKV.gather(-1, token_BKX_here)
                likelier_BKX = (logits_BKV[..., None, :] > found_BKX[..., None]).sum(-1)
                probability[rows, g] = (found_BKX - logits_BKV.logsumexp(-1, keepdim=True)).exp().cpu()
                rank[rows, g] = likelier_BKX.cpu()
                top[rows, g] = (logits_BKV.argmax(-1, keepdim=True) == token_BKX_here).cpu()
    queries = {contrast.query_axis: list(range(token_BKX.shape[1]))}
    axes = {"layer": list(layers), "site": list(subject.sites), **queries, "answer": list(ANSWERS)}
    there_B1KX = there_BKX[:, None]
    top, probability, rank = (
        np.where(there_B1KX, samples, np.nan).reshape(len(contrast), *map(len, axes.values()))
        for samples in (top, probability, rank)
    )
    return Lens(
        Measured.share("logit lens accuracy", axes, top),
        Measured.mean("logit lens probability", axes, probability),
        Measured.mean("logit lens rank", axes, rank),
    )


@torch.inference_mode()
def direct_attribution(subject: Subject, pairs: Contrasting, *, batch_size: int = 64) -> Measured:
    """The mean attribution to an answer's logit, minus the mean over all other answers: axes (component, query,
    answer).

    Components are "embedding" (with positions), heads such as "L0H3", MLPs such as "L0 MLP", and "bias" for everything
    that does not depend on the question. Their attributions sum to the difference of the logits. Raises ModelError if
    they do not, as with adapters that are not merged.
    """
    names = ["embedding", *(str(one).replace("mlp", "MLP") for one in subject.components), "bias"]
    contrast = _bases(subject, pairs)
    token_BKX, there_BKX = _answers(contrast)
    known = torch.tensor(contrast.alphabet or token_BKX[torch.from_numpy(there_BKX)].unique().tolist())
    found = np.concatenate(
        [
            _attributed(subject, contrast.part(rows), token_BKX[rows], known)
            for rows in batches(len(contrast), batch_size)
        ]
    )
    queries = {contrast.query_axis: list(range(token_BKX.shape[1]))}
    axes = {"component": names, **queries, "answer": list(ANSWERS)}
    return Measured.mean("direct logit attribution", axes, np.where(there_BKX[:, None], found, np.nan))


def _attributed(subject: Subject, contrast: Contrast, token_BKX: torch.Tensor, known: torch.Tensor) -> np.ndarray:
    """The attribution of each component to the right answer and the control, (B, C, K, X). `known`: all answers."""
    bridge, blocks = subject.bridge, [f"blocks.{layer}" for layer in range(subject.layers)]
    wanted = ["blocks.0.hook_resid_pre", f"{blocks[-1]}.hook_resid_post"]
    wanted += [f"{block}.{name}" for block in blocks for name in ("attn.hook_z", "hook_mlp_out")]
    logits_BTV, read = subject.activations(contrast.base, wanted)
    at_BK = contrast.query_at_BQ
    here = {name: take(activation, at_BK).float() for name, activation in read.items()}
    token_BKX = token_BKX.to(subject.device)
    end_BKD = here[wanted[1]]

    contrast_DV = _against_others(known, bridge.W_U.float())
    nothing_11D = torch.zeros_like(end_BKD[:1, :1], dtype=bridge.W_U.dtype)
    offset_V = _against_others(known, bridge.unembed(bridge.ln_final(nothing_11D)).float()[0, 0])
    wanted_BKXD = contrast_DV.T[token_BKX]
    scaled_BKXD = _frozen_norm(subject, end_BKD, wanted_BKXD)

    def of(written_BKD: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bkd,bkxd->bkx", written_BKD, scaled_BKXD)

    parts = [of(here[wanted[0]])]
    bias_BKX = offset_V[token_BKX]
    for layer, block in enumerate(blocks):
        attention = bridge.blocks[layer].attn
        z_BKHZ = here[f"{block}.attn.hook_z"]
        read_BKXHZ = torch.einsum("bkxd,hzd->bkxhz", scaled_BKXD, attention.W_O.float())
        heads_HBKX = torch.einsum("bkhz,bkxhz->hbkx", z_BKHZ, read_BKXHZ)
        parts += [*heads_HBKX, of(here[f"{block}.hook_mlp_out"])]
        if (bias_D := getattr(attention, "b_O", None)) is not None:
            bias_BKX = bias_BKX + of(bias_D.float().expand_as(end_BKD))
    parts.append(bias_BKX)
    parts_BCKX = torch.stack(parts, dim=1)
    _check_sum(
        subject, parts_BCKX.sum(1), _against_others(known, take(logits_BTV, at_BK).float()), token_BKX, at_BK >= 0
    )
    return parts_BCKX.cpu().numpy()


def _against_others(known: torch.Tensor, of_words: torch.Tensor) -> torch.Tensor:
    """For each answer, its value minus the mean of the other ones, (..., V); all other words keep their values."""
    contrast, known = of_words.clone(), known.to(of_words.device)
    answers = of_words[..., known]
    others = max(1, len(known) - 1)
    contrast[..., known] = (len(known) * answers - answers.sum(-1, keepdim=True)) / others
    return contrast


def _frozen_norm(subject: Subject, end_BKD: torch.Tensor, wanted_BKXD: torch.Tensor) -> torch.Tensor:
    """The vectors whose dot products with the residual stream equal those of `wanted` with the normed stream, if the
    scale of the final norm is frozen."""
    norm, config = subject.bridge.ln_final, subject.bridge.cfg
    if config.normalization_type is None:
        return wanted_BKXD
    centred_BKD = end_BKD if norm.uses_rms_norm else end_BKD - end_BKD.mean(-1, keepdim=True)
    scale_BK1 = (centred_BKD.square().mean(-1, keepdim=True) + config.eps).sqrt()
    weight_D = norm.weight.float() + (1 if norm.uses_weight_offset else 0)
    scaled_BKXD = wanted_BKXD * (weight_D / scale_BK1)[:, :, None]
    return scaled_BKXD if norm.uses_rms_norm else scaled_BKXD - scaled_BKXD.mean(-1, keepdim=True)


def _check_sum(
    subject: Subject, sum_BKX: torch.Tensor, logits_BKV: torch.Tensor, token_BKX: torch.Tensor, there_BK: torch.Tensor
) -> None:
    gap_BKX = (sum_BKX - logits_BKV.gather(-1, token_BKX)).abs()[there_BK.to(sum_BKX.device)]
    largest = logits_BKV[logits_BKV.isfinite()].abs().max()
    if float(gap_BKX.max()) > TOLERANCE[subject.bridge.W_U.dtype] * float(largest):
        raise ModelError(
            f"{subject.name}: what its components write sums to logits that are off by {float(gap_BKX.max()):.3g}; "
            "adapters should be merged, and only heads and MLPs with plain weights should write"
        )


def _bases(subject: Subject, pairs: Contrasting) -> Contrast:
    """The rows of the contrast's first direction, or of its first half if both directions are mixed."""
    contrast = pairs.contrast(subject)
    return contrast.part(range(len(contrast) // 2 or 1)) if len(contrast) > 1 else contrast


def _answers(contrast: Contrast) -> tuple[torch.Tensor, np.ndarray]:
    """The token of each right answer and that of the source's, and whether they exist, (B, K, 2)."""
    ids_BKX = torch.stack([contrast.answers("base"), contrast.answers("source")], -1)
    there_BKX = (ids_BKX >= 0) & (contrast.query_at_BQ >= 0)[..., None]
    return ids_BKX.clamp(min=0), there_BKX.numpy()
