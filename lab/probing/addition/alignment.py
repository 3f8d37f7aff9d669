"""Which digit a head attends to when a digit is predicted, and how much of its attention goes to digits that do not
matter.

The alignment of a head is the mean attention from q_k, the token that predicts s_k, to the digit of a number at place
k + offset. Offset 0 is the digit to add, -1 the digit below, which may send a carry, and -2 matters in chains of
carries. A head may find a digit by its place value, or by its distance from the left. These differ only if the numbers
differ in length:

    indexing      3 5 7 8 + 4 2 6 = 4 0 0 4                       the digit of b that goes with s_2 = 0
    "place"                 4                                     equal place value
    "left"                    2                                   equal distance from the most significant digit

Alignment does not show that a head is used: it may attend to a digit and write nothing that later components read
(lab/probing/addition/ablation.py tests this).

Shapes: B sums, L layers, H heads, T tokens, K columns, Q columns and the end, M numbers (a, b, sum), O offsets.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch

from lab.errors import check_one_of
from lab.probing.addition.positions import Sums
from lab.probing.batching import batches
from lab.probing.bridge import Subject
from lab.probing.contrast import NOWHERE
from lab.probing.interventions import take
from lab.probing.measured import Measured, joined, nanmean

NUMBERS = ("a", "b", "sum")
OFFSETS = (-2, -1, 0, 1, 2)
"""Offsets in places: -1 is the digit of the next lower place value, in whatever order the digits are written."""
_ALIGNED = 0.2
"""A head is aligned if its attention to the digit exceeds the control `permuted` by at least this."""
TARGETS = ("place k", "place k-1", "lower places", "other places", "earlier answer", "itself", "other tokens")
"""Digits of the operands by their place; digits of the answer before the latest one; the predicting token itself. If
the answer's highest digit is written first, a carry can come from any lower place, so places below k - 1 are "lower
places"; if not, they are "other places"."""

Indexing: TypeAlias = Literal["place", "left"]
Lengths: TypeAlias = Mapping[int | str, Sums]
"""Sums by the digits of their operands, or under any other name, such as "9+3"."""


class Alignment(NamedTuple):
    """Axes: layer, head, number, offset, length; nan if the number has no such digit up to q_k."""

    attention: Measured
    uniform: Measured
    """Control: the attention to the digit if the head's attention to the number were spread evenly over its digits."""
    permuted: Measured
    """Control: the attention to the same digit from the query of another column, drawn at random. It is just as large
    if a head attends to the same digit from all columns."""


class Destinations(NamedTuple):
    """Where the attention from q_k goes."""

    attention: Measured
    """Axes: layer, head, target (`TARGETS`, which sum to one), length."""
    leak: Measured
    """Axes: layer, head, length. Attention to "other places" and "earlier answer", which s_k does not need."""


class Aligned(NamedTuple):
    """A head that attends from every q_k to the digit of a number at place k + offset."""

    layer: int
    head: int
    number: str
    """One of `NUMBERS`."""
    offset: int
    weight: float = 1.0
    """The share of its attention."""


@torch.inference_mode()
def alignment(subject: Subject, lengths: Lengths, indexing: Indexing = "place", batch_size: int = 32) -> Alignment:
    """The alignment of all heads, by length. Each sum is one sample: the mean over its columns.

    Raises TaskError for an unknown indexing, or if there are no lengths.
    """
    check_one_of("indexing", indexing, get_args(Indexing))
    found: dict[str, dict[int | str, Measured]] = {name: {} for name in Alignment._fields}
    axes = {**_heads(subject), "number": NUMBERS, "offset": OFFSETS}
    for length, sums in lengths.items():
        for name, array in _samples(subject, sums, indexing, batch_size).items():
            found[name][length] = Measured.mean(f"alignment: {name}", axes, nanmean(array))
    return Alignment(**{name: joined("length", parts) for name, parts in found.items()})


@torch.inference_mode()
def destinations(subject: Subject, lengths: Lengths, batch_size: int = 32) -> Destinations:
    """Where all of the attention from q_k goes, by length. Each sum is one sample: the mean over its columns."""
    attention, leak = {}, {}
    heads = _heads(subject)
    for length, sums in lengths.items():
        parts = []
        for part, seen_LBKHT in _seen(subject, sums, batch_size):
            columns = part.query_at_BK.shape[1]
            masks = _targets(part, queries(part))
            split = [(seen_LBKHT * mask_BQT[None, :, :columns, None]).sum(-1) for mask_BQT in masks.values()]
            split_BLHMK = torch.stack(split, -1).permute(1, 0, 3, 4, 2)
            there_BK = part.has_digit_BK[:, None, None, None]
            parts.append(torch.where(there_BK, split_BLHMK, torch.nan).numpy())
        samples_BLHM = nanmean(np.concatenate(parts))
        attention[length] = Measured.mean("attention from q_k", {**heads, "target": TARGETS}, samples_BLHM)
        astray = samples_BLHM[..., TARGETS.index("other places")] + samples_BLHM[..., TARGETS.index("earlier answer")]
        leak[length] = Measured.mean("attention on foreign digits", heads, astray)
    return Destinations(joined("length", attention), joined("length", leak))


def aligned_heads(measured: Alignment) -> list[Aligned]:
    """The heads that attend to the digit of one place. Their weights are the mean attention to it over all lengths.

    A head counts if its attention to the digit is at least 0.2 above the control `permuted`, and clearly above
    `uniform`. Measure at trained lengths. Many heads attend to the first token if they find nothing else. `permuted`
    rules them out; even so, the prompt should not begin with a digit.
    """
    attention, low = nanmean(measured.attention.value), nanmean(measured.attention.low)
    permuted, uniform = nanmean(measured.permuted.value), nanmean(measured.uniform.high)
    looked_at = (attention - permuted >= _ALIGNED) & (low > uniform)
    return [
        Aligned(int(layer), int(head), NUMBERS[m], OFFSETS[o], float(attention[layer, head, m, o]))
        for layer, head, m, o in np.argwhere(looked_at)
    ]


def one_hot(aligned: Sequence[Aligned]) -> list[Aligned]:
    """The aligned heads, with weights scaled so that those of each head sum to one."""
    totals: dict[tuple[int, int], float] = {}
    for layer, head, _, _, weight in aligned:
        totals[layer, head] = totals.get((layer, head), 0.0) + weight
    return [one._replace(weight=one.weight / totals[one.layer, one.head]) for one in aligned]


def target_at(sums: Sums, number: str, offset: int, indexing: Indexing = "place") -> torch.Tensor:
    """The token (B, Q) of a number's digit at place k + offset, for each column k and the end (`queries`); NOWHERE if
    there is no such digit, or if it is written after the query."""
    check_one_of("number", number, NUMBERS)
    at_BK = _digits_at(sums)[number]
    at_BQ = torch.cat([at_BK, torch.full_like(at_BK[:, :1], NOWHERE)], 1)
    query_at_BQ = queries(sums)
    place_BQ = torch.arange(at_BQ.shape[1])[None] + offset
    if indexing == "left":
        digits_B1, answer_B1 = ((at != NOWHERE).sum(1, keepdim=True) for at in (at_BK, sums.answer_at_BK))
        place_BQ = place_BQ + digits_B1 - answer_B1
    place_BQ = place_BQ.expand_as(at_BQ)
    inside_BQ = (place_BQ >= 0) & (place_BQ < at_BQ.shape[1])
    target_BQ = at_BQ.gather(1, place_BQ.clamp(0, at_BQ.shape[1] - 1))
    return torch.where(inside_BQ & (target_BQ <= query_at_BQ), target_BQ, NOWHERE)


def queries(sums: Sums) -> torch.Tensor:
    """q_k for each column, (B, Q). For the column above the highest digit of an answer that is written ones first, it
    is the token that predicts the end, because one more digit would be predicted there; if the answer is written from
    the left, NOWHERE."""
    at_BQ = torch.cat([sums.query_at_BK, torch.full_like(sums.query_at_BK[:, :1], NOWHERE)], 1)
    digits_B1 = sums.has_digit_BK.sum(1, keepdim=True)
    last_B1 = sums.answer_at_BK.gather(1, digits_B1 - 1)
    ends_there_B1 = _ones_first(sums)[:, None] & (last_B1 == sums.end_at_B[:, None])
    return at_BQ.scatter(1, digits_B1, torch.where(ends_there_B1, sums.end_at_B[:, None], NOWHERE))


def foreign_digits(sums: Sums) -> torch.Tensor:
    """Whether each token is a digit that the query does not need (`Destinations.leak`), (B, Q, T)."""
    masks = _targets(sums, queries(sums))
    return masks["other places"] | masks["earlier answer"]


def _samples(subject: Subject, sums: Sums, indexing: Indexing, batch_size: int) -> dict[str, np.ndarray]:
    """The attention and its two controls, (B, L, H, M, O, K) each."""
    found: dict[str, list[np.ndarray]] = {"attention": [], "uniform": [], "permuted": []}
    generator = torch.Generator().manual_seed(0)
    for part, seen_LBKHT in _seen(subject, sums, batch_size):
        columns = part.query_at_BK.shape[1]
        other_BK = _other_columns(part, generator)
        elsewhere_LBKHT = seen_LBKHT.gather(2, other_BK[None, :, :, None, None].expand_as(seen_LBKHT))
        elsewhere_at_BK = torch.where(other_BK == torch.arange(columns), NOWHERE, part.query_at_BK.gather(1, other_BK))
        by_number: dict[str, list[torch.Tensor]] = {name: [] for name in found}
        for number, at_BK in _digits_at(part).items():
            visible_BKT = _one_hot(at_BK, seen_LBKHT.shape[-1]).any(1, keepdim=True)
            visible_BKT = visible_BKT & _up_to(part.query_at_BK, seen_LBKHT.shape[-1])
            share_LBKH = (seen_LBKHT * visible_BKT[None, :, :, None]).sum(-1) / visible_BKT.sum(-1)[None, :, :, None]
            for offset in OFFSETS:
                # without the end, for which `target_at` may have a target too
                target_BK = target_at(part, number, offset, indexing)[:, :columns]
                target_BK = torch.where(part.has_digit_BK, target_BK, NOWHERE)
                by_number["attention"].append(_read(seen_LBKHT, target_BK, target_BK != NOWHERE))
                there_LBKH = (target_BK != NOWHERE)[None, :, :, None]
                by_number["uniform"].append(torch.where(there_LBKH, share_LBKH, torch.nan))
                seen_there_BK = (target_BK != NOWHERE) & (target_BK <= elsewhere_at_BK)
                by_number["permuted"].append(_read(elsewhere_LBKHT, target_BK, seen_there_BK))
        for name, arrays in by_number.items():
            stacked = torch.stack(arrays, -1).permute(1, 0, 3, 4, 2)  # (B, L, H, M O, K)
            found[name].append(stacked.unflatten(3, (len(NUMBERS), len(OFFSETS))).numpy())
    return {name: np.concatenate(arrays) for name, arrays in found.items()}


def _seen(subject: Subject, sums: Sums, batch_size: int) -> Iterator[tuple[Sums, torch.Tensor]]:
    """Batches of the sums, and the attention from each q_k, (L, B, K, H, T)."""
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(subject.layers)]
    for rows in batches(len(sums), batch_size):
        part = sums.part(rows)
        _, found = subject.activations(part, names)
        yield part, torch.stack([take(found[name].transpose(1, 2), part.query_at_BK).float().cpu() for name in names])


def _targets(sums: Sums, query_at_BQ: torch.Tensor) -> dict[str, torch.Tensor]:
    """For each of `TARGETS` and each query, which tokens belong to it, (B, Q, T). Each token that the query sees
    belongs to exactly one."""
    tokens = sums.tokens_BT.shape[1]
    operands = [_digits_at(sums)[name] for name in ("a", "b")]
    is_operand_B1T = torch.stack([_one_hot(at_BK, tokens).any(1) for at_BK in operands]).any(0)[:, None]
    is_answer_B1T = _one_hot(sums.answer_at_BK, tokens).any(1)[:, None]
    seen_BQT = _up_to(query_at_BQ, tokens)
    own_BQT, below_BQT = (
        torch.stack([_one_hot(target_at(sums, name, offset), tokens) for name in ("a", "b")]).any(0)
        for offset in (0, -1)
    )
    itself_BQT = _one_hot(query_at_BQ, tokens)
    lower_BQT = _lower(sums, query_at_BQ.shape[1]) & ~_ones_first(sums)[:, None, None]
    candidates = {
        "itself": itself_BQT,
        "place k": own_BQT,
        "place k-1": below_BQT,
        "lower places": lower_BQT,
        "other places": is_operand_B1T,
        "earlier answer": is_answer_B1T,
        "other tokens": seen_BQT,
    }
    taken_BQT, masks = ~seen_BQT, {}
    for name, candidate in candidates.items():
        masks[name] = candidate & ~taken_BQT
        taken_BQT = taken_BQT | candidate
    return {name: masks[name] for name in TARGETS}


def _ones_first(sums: Sums) -> torch.Tensor:
    """Whether each answer is written ones first, (B,); true for answers of one digit."""
    digits_B1 = sums.has_digit_BK.sum(1, keepdim=True)
    last_B1 = sums.answer_at_BK.gather(1, digits_B1 - 1)
    return ((last_B1 > sums.answer_at_BK[:, :1]) | (digits_B1 == 1))[:, 0]


def _lower(sums: Sums, queries: int) -> torch.Tensor:
    """Whether each token is an operand's digit of a lower place than the query's, (B, Q, T)."""
    tokens = sums.tokens_BT.shape[1]
    place_KQ = torch.arange(sums.a_at_BK.shape[1])[:, None] < torch.arange(queries)
    at_BKT = _one_hot(sums.a_at_BK, tokens) | _one_hot(sums.b_at_BK, tokens)
    return torch.einsum("bkt,kq->bqt", at_BKT.float(), place_KQ.float()) > 0


def _digits_at(sums: Sums) -> dict[str, torch.Tensor]:
    return dict(zip(NUMBERS, (sums.a_at_BK, sums.b_at_BK, sums.answer_at_BK), strict=True))


def _one_hot(at_BQ: torch.Tensor, tokens: int) -> torch.Tensor:
    """(B, Q, T); all False for NOWHERE."""
    return at_BQ[..., None] == torch.arange(tokens)


def _up_to(at_BQ: torch.Tensor, tokens: int) -> torch.Tensor:
    return torch.arange(tokens) <= at_BQ[..., None]


def _other_columns(sums: Sums, generator: torch.Generator) -> torch.Tensor:
    """For each column, another column of the same sum, (B, K): the columns of a sum are rotated by one random number.
    Sums of one digit keep their only column."""
    digits_B1 = sums.has_digit_BK.sum(1, keepdim=True)
    draw_B1 = torch.rand(digits_B1.shape, generator=generator)
    step_B1 = 1 + (draw_B1 * (digits_B1 - 1)).long()
    column_K = torch.arange(sums.query_at_BK.shape[1])[None]
    return torch.where(column_K < digits_B1, (column_K + step_B1) % digits_B1, column_K)


def _read(seen_LBKHT: torch.Tensor, target_BK: torch.Tensor, there_BK: torch.Tensor) -> torch.Tensor:
    """The attention to the targets (L, B, K, H); nan if there is no target."""
    index = target_BK.clamp(min=0)[None, :, :, None, None].expand(*seen_LBKHT.shape[:-1], 1)
    return torch.where(there_BK[None, :, :, None], seen_LBKHT.gather(-1, index)[..., 0], torch.nan)


def _heads(subject: Subject) -> dict[str, Sequence[int]]:
    return {"layer": range(subject.layers), "head": range(subject.heads)}
