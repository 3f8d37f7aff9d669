"""What each layer would answer, and which component writes which digit.

Logit lens (nostalgebraist 2020, "interpreting GPT: the logit lens"): the residual stream after a layer is read through
the final norm and the unembedding, as if the layer were the last. `logit_lens` measures how often the right digit of
the answer is the most likely token at q_k, how likely it is, and its rank.

Direct logit attribution (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; Wang et al. 2022,
arXiv 2211.00593): the final residual stream is the sum of what the embedding, each head and each MLP wrote. If the
scale s of the final norm is frozen, the logits are such a sum too. The attribution of a component's write x to digit d
is

    (x . w / s) (u_d - mean of u_e over the other nine digits e)

with the weights w of the final norm and the unembedding u. (If the norm subtracts the mean, so does the attribution.)
Only the direct path to the logits counts, not what a component does through later layers. Both instruments give hints,
not evidence: what a layer would answer need not be what later layers read.

The control of both is the digit of another sum, which has nothing to do with the question.

Shapes: B sums, K columns, D width of the model, V words, H heads, Z width of a head, C components, G locations.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
import torch

from lab.errors import ModelError
from lab.probing.bridge import TOLERANCE, Subject
from lab.probing.interventions import read_queries, take
from lab.probing.measured import Measured
from lab.probing.positions import Sums, batches

DIGITS = ("right", "of another sum")


class Lens(NamedTuple):
    """How well a digit can be read from the residual stream; axes (layer, site, column, digit)."""

    accuracy: Measured
    """How often the digit is the most likely of all tokens."""
    probability: Measured
    rank: Measured
    """How many tokens are more likely."""


def logit_lens(subject: Subject, sums: Sums, *, batch_size: int = 64) -> Lens:
    """Reads the answer's digits from the residual stream at each layer and site. At "post" of the last layer, these are
    the model's own predictions.

    Raises ModelError for a model that writes several digits in a token.
    """
    layers = range(subject.layers)
    locations = list(product(layers, subject.sites))
    token_BKX, there_BKX = _digits(subject, sums)
    columns = range(sums.columns.sum.shape[1])
    shape = (len(sums), len(locations), len(columns), len(DIGITS))
    top, probability, rank = (np.full(shape, np.nan) for _ in range(3))
    for rows in batches(len(sums), batch_size):
        stream_GBKD = read_queries(subject, sums.part(rows), locations, columns, batch_size)
        token_BKX_here = token_BKX[rows].to(subject.device)
        for g, stream_BKD in enumerate(stream_GBKD):
            with torch.inference_mode():
                normed_BKD = subject.bridge.ln_final(stream_BKD.to(subject.device, subject.bridge.W_U.dtype))
                logits_BKV = subject.bridge.unembed(normed_BKD).float()
                found_BKX = logits_BKV.gather(-1, token_BKX_here)
                likelier_BKX = (logits_BKV[..., None, :] > found_BKX[..., None]).sum(-1)
                probability[rows, g] = (found_BKX - logits_BKV.logsumexp(-1, keepdim=True)).exp().cpu()
                rank[rows, g] = likelier_BKX.cpu()
                top[rows, g] = (logits_BKV.argmax(-1, keepdim=True) == token_BKX_here).cpu()
    axes = {"layer": list(layers), "site": list(subject.sites), "column": list(columns), "digit": list(DIGITS)}
    there_B1KX = there_BKX[:, None]
    top, probability, rank = (
        np.where(there_B1KX, samples, np.nan).reshape(len(sums), *map(len, axes.values()))
        for samples in (top, probability, rank)
    )
    return Lens(
        Measured.share("logit lens accuracy", axes, top),
        Measured.mean("logit lens probability", axes, probability),
        Measured.mean("logit lens rank", axes, rank),
    )


@torch.inference_mode()
def direct_attribution(subject: Subject, sums: Sums, *, batch_size: int = 64) -> Measured:
    """The mean attribution to a digit's logit, minus the mean over the other digits: axes (component, column, digit).

    Components are "embedding" (with positions), heads such as "L0H3", MLPs such as "L0 MLP", and "bias" for everything
    that does not depend on the question. Their attributions sum to the difference of the logits. Raises ModelError if
    they do not, as with adapters that are not merged, or if the model writes several digits in a token.
    """
    names = ["embedding", *(str(one).replace("mlp", "MLP") for one in subject.components), "bias"]
    token_BKX, there_BKX = _digits(subject, sums)
    found = np.concatenate(
        [_attributed(subject, sums.part(rows), token_BKX[rows]) for rows in batches(len(sums), batch_size)]
    )
    axes = {"component": names, "column": list(range(token_BKX.shape[1])), "digit": list(DIGITS)}
    return Measured.mean("direct logit attribution", axes, np.where(there_BKX[:, None], found, np.nan))


def _attributed(subject: Subject, sums: Sums, token_BKX: torch.Tensor) -> np.ndarray:
    """The attribution of each component to the right digit and the control, (B, C, K, X)."""
    bridge, blocks = subject.bridge, [f"blocks.{layer}" for layer in range(subject.layers)]
    wanted = ["blocks.0.hook_resid_pre", f"{blocks[-1]}.hook_resid_post"]
    wanted += [f"{block}.{name}" for block in blocks for name in ("attn.hook_z", "hook_mlp_out")]
    logits_BTV, read = subject.activations(sums, wanted)
    at_BK = sums.query_at_BK
    here = {name: take(activation, at_BK).float() for name, activation in read.items()}
    token_BKX = token_BKX.to(subject.device)
    end_BKD = here[wanted[1]]

    contrast_DV = _contrast(subject, bridge.W_U.float())
    nothing_11D = torch.zeros_like(end_BKD[:1, :1], dtype=bridge.W_U.dtype)
    offset_V = _contrast(subject, bridge.unembed(bridge.ln_final(nothing_11D)).float()[0, 0])
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
    _check_sum(subject, parts_BCKX.sum(1), take(logits_BTV, at_BK), token_BKX, sums.has_digit_BK)
    return parts_BCKX.cpu().numpy()


def _contrast(subject: Subject, of_words: torch.Tensor) -> torch.Tensor:
    """For each digit, its value minus the mean of the other nine, (..., V); all other words keep their values."""
    digit_ids = subject.writer.digit_ids()
    contrast = of_words.clone()
    digits = of_words[..., digit_ids]
    contrast[..., digit_ids] = (10 * digits - digits.sum(-1, keepdim=True)) / 9
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
    expected_BKX = _contrast(subject, logits_BKV.float()).gather(-1, token_BKX)
    gap_BKX = (sum_BKX - expected_BKX).abs()[there_BK.to(sum_BKX.device)]
    if float(gap_BKX.max()) > TOLERANCE[logits_BKV.dtype] * float(logits_BKV.abs().max()):
        raise ModelError(
            f"{subject.name}: what its components write sums to logits that are off by {float(gap_BKX.max()):.3g}; "
            "adapters should be merged, and only heads and MLPs with plain weights should write"
        )


def _digits(subject: Subject, sums: Sums) -> tuple[torch.Tensor, np.ndarray]:
    """The token of each right digit and that of the same column in another sum, and whether they exist, (B, K, 2)."""
    token_of_digit = torch.tensor(subject.writer.digit_ids())
    right_BK, there_BK = torch.from_numpy(sums.columns.sum), sums.has_digit_BK
    shift = int(np.random.default_rng(0).integers(1, max(2, len(sums))))
    other_BK, other_there_BK = right_BK.roll(shift, dims=0), there_BK & there_BK.roll(shift, dims=0)
    return (
        token_of_digit[torch.stack([right_BK, other_BK], dim=-1)],
        torch.stack([there_BK, other_there_BK], dim=-1).numpy(),
    )
