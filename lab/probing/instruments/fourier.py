"""Fourier features: are numbers represented as waves, and does the model need these waves?

Models in which numbers of two or three digits are one token embed number n on circles, as cos(2 pi n / T) and
sin(2 pi n / T) with periods T = 2, 2.5, 5, 10 and 100 (Zhou et al. 2024, arXiv 2406.03445; Kantamneni and Tegmark 2025,
arXiv 2502.00873). `embedding_power` decomposes the vectors e_n of the number tokens 0..M-1 into waves over n. The power
of a period is its share of their variance about the mean,

    ||sum_n e_n exp(-2 pi i n / T)||^2 / (M / 2 * sum_n ||e_n - mean||^2)      (M instead of M / 2 for T = 2)

for the periods M, M/2, M/3, ..., 2; these shares sum to one. Numbers of one digit have M = 10 and periods 10, 5, 3.33,
2.5, 2. `residual_power` does the same for the residual stream at the operands' tokens.

Power is found even if there are no waves: a plain ramp, e_n = n, has 63 % of its power at the longest period. So there
are four controls (`SPECTRA`): the power without the part that is linear in n, the power of a plain ramp, that of the
same vectors in permuted order, and that of random vectors.

Power does not show that a wave is used. `remove_periods` does: it projects the wave of a period out of the embeddings
of the operands' tokens, and asks the sums again. Its control removes as many random patterns over the numbers.

Shapes: M numbers, D width, F periods, B sums, T tokens, K columns, R random draws, N operand tokens, V words.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from lab.errors import LabError, ModelError, TaskError
from lab.probing.bridge import Hook, Subject
from lab.probing.components import Site
from lab.probing.interventions import read_residuals
from lab.probing.measured import Measured, joined, value_and_interval
from lab.probing.positions import Sums, batches

SPECTRA = ("as numbers", "without a ramp", "a ramp", "permuted", "random vectors")
"""The power spectrum of the vectors, and those of its four controls; the labels of the axis "order"."""
REMOVED = ("nothing", "period", "random patterns")
_EMBEDDINGS = "hook_embed"
_MOST_DIGITS = 3
_DRAWS = 200
_BATCH = 64
"""Sums per forward pass."""


class Removal(NamedTuple):
    """Right answers after a period was removed. Axes (removed, period); `digits` also has the axis column."""

    exact: Measured
    digits: Measured


def periods(numbers: int) -> list[float]:
    """The periods that M consecutive numbers can have, longest first: M / f for f = 1..M // 2."""
    return [numbers / frequency for frequency in range(1, numbers // 2 + 1)]


def waves(numbers: int, period: float) -> np.ndarray:
    """The waves of a period as orthonormal columns over the numbers, (M, 2), or (M, 1) for period 2.

    Raises TaskError for a period that M numbers cannot have.
    """
    if not any(np.isclose(period, known) for known in periods(numbers)):
        shown = ", ".join(f"{known:.3g}" for known in periods(numbers)[:12])
        raise TaskError(f"period {period:g}: {numbers} numbers carry waves of periods {shown}, ...")
    angles_M = 2 * np.pi * np.arange(numbers) / period
    both_MX = np.stack([np.cos(angles_M), np.sin(angles_M)], axis=1)
    if np.isclose(period, 2):
        both_MX = both_MX[:, :1]
    return both_MX / np.linalg.norm(both_MX, axis=0)


def spectrum(vectors_MD: np.ndarray) -> np.ndarray:
    """The share of the vectors' variance at each of `periods`, (F,); zeros if they do not vary."""
    centred_MD = vectors_MD - vectors_MD.mean(0)
    power_F = (np.abs(np.fft.rfft(centred_MD, axis=0)) ** 2).sum(1)[1:]
    if len(vectors_MD) % 2 == 0:
        power_F[-1] /= 2  # the others come twice, as f and as M - f
    total = power_F.sum()
    return power_F / total if total > 1e-12 * np.square(vectors_MD).sum() else np.zeros_like(power_F)


def number_tokens(subject: Subject) -> list[int]:
    """The tokens of all numbers of the longest length that is one token, such as 000 to 999.

    They are found by writing numbers that end in them. Raises ModelError if some of these numbers have no token of
    their own, because digits are not cut into groups of equal length.
    """
    for digits in range(_MOST_DIGITS, 0, -1):
        first = 10 ** (2 * digits - 1)  # two whole groups, whether they are counted from the left or from the right
        try:
            at = subject.writer.write(first, 0).a_at
        except LabError:  # the writer takes only shorter numbers
            continue
        if len(set(at[:digits])) == 1 and at[digits] != at[0]:
            break
    else:
        raise ModelError(f"{subject.name}: digits are not written in groups of equal length, from 1 to {_MOST_DIGITS}")
    written = [subject.writer.write(first + number, 0) for number in range(10**digits)]
    ids = [one.ids[one.a_at[0]] for one in written]
    if len(set(ids)) < len(ids) or any(len(set(one.a_at[:digits])) > 1 for one in written):
        raise ModelError(f"{subject.name}: some numbers of {digits} digits have no token of their own")
    return ids


@torch.inference_mode()
def embedding_power(subject: Subject) -> Measured:
    """The power of the number tokens' embeddings: axes (order, period).

    Embeddings are not a sample, so their interval is the value itself. The intervals of the random controls contain
    95 % of the draws. Raises the same errors as `number_tokens`.
    """
    vectors_MD = _embeddings(subject, number_tokens(subject))
    return _with_controls("embedding power", [spectrum(vectors_MD)] * 3, vectors_MD, len(vectors_MD))


@torch.inference_mode()
def residual_power(
    subject: Subject, sums: Sums, *, layers: Sequence[int] | None = None, sites: Sequence[Site] | None = None
) -> Measured:
    """The power of the numbers in the residual stream at the operands' tokens: axes (layer, site, order, period).

    Each number's vector comes from a least-squares fit with a vector for each number and for each position. Plain means
    would mix numbers with positions, because no number begins with 0. Intervals are bootstrapped over tokens, and n
    counts tokens. With few tokens per number, there is power at all periods by chance, in the permuted order too.
    Raises TaskError if a number does not occur in the sums.
    """
    sums = replace(sums, digits_apart=False)  # here, a token may be a number of several digits
    layers, sites = range(subject.layers) if layers is None else layers, sites or subject.sites
    ids = number_tokens(subject)
    locations: list[tuple[int, Site]] = [(layer, site) for layer in layers for site in sites]
    number_BT = _numbers_at_operands(sums, ids)
    there_BT = number_BT >= 0
    number_N = number_BT[there_BT].numpy()
    counts_M = np.bincount(number_N, minlength=len(ids))
    if not counts_M.all():
        missing = int(counts_M.argmin())
        raise TaskError(
            f"number {missing} is the token of no operand in these {len(sums)} sums; all {len(ids)} should occur"
        )
    found: list[list[torch.Tensor]] = [[] for _ in locations]
    for rows in batches(len(sums), _BATCH):
        read = read_residuals(subject, sums.part(rows), locations)
        for streams, location in zip(found, locations, strict=True):
            streams.append(read[location][there_BT[rows].to(subject.device)].float().cpu())
    position_N = there_BT.nonzero()[:, 1].numpy()
    measured = iter(_effect_power(torch.cat(streams).numpy(), number_N, position_N, len(ids)) for streams in found)
    by_layer = {layer: joined("site", {site: next(measured) for site in sites}, first=True) for layer in layers}
    return joined("layer", by_layer, first=True)


@torch.inference_mode()
def remove_periods(
    subject: Subject, sums: Sums, removed: Sequence[float] = (2, 2.5, 5, 10), *, batch_size: int = _BATCH
) -> Removal:
    """Exact match and right digits without the wave of one period in the embeddings of the operands' tokens.

    All other periods are kept. The random patterns of the control are orthonormal, have mean 0 and are drawn anew for
    each batch. Tokens of fewer digits, such as the first one of a number, are not changed. Raises TaskError for a
    period that the numbers cannot have, and the same errors as `number_tokens`.
    """
    sums = replace(sums, digits_apart=False)
    ids = number_tokens(subject)
    vectors_MD = torch.from_numpy(_embeddings(subject, ids))
    number_BT = _numbers_at_operands(sums, ids)
    generator = np.random.default_rng(0)
    width = sums.columns.sum.shape[1]
    exact = np.full((len(sums), len(REMOVED), len(removed)), np.nan)
    digits = np.full((*exact.shape, width), np.nan)
    for f, period in enumerate(removed):
        waves_MX = waves(len(ids), period)
        for rows in batches(len(sums), batch_size):
            part = sums.part(rows)
            for r, patterns_MX in enumerate((None, waves_MX, _random_patterns(waves_MX, generator))):
                hooks = [] if patterns_MX is None else [_without(patterns_MX, vectors_MD, number_BT[rows])]
                reading = part.read(subject.logits(part, hooks))
                exact[rows, r, f] = reading.exact_B.numpy()
                digits[rows, r, f] = reading.digits_BK.numpy()
    axes = {"removed": list(REMOVED), "period": list(removed)}
    return Removal(
        Measured.share("exact match", axes, exact),
        Measured.share("right digits", axes | {"column": list(range(width))}, digits),
    )


def _without(patterns_MX: np.ndarray, vectors_MD: torch.Tensor, number_BT: torch.Tensor) -> Hook:
    """A hook that projects the patterns over the numbers out of the numbers' embeddings."""
    patterns = torch.from_numpy(patterns_MX).float()
    share_MD = patterns @ (patterns.T @ vectors_MD)

    def remove(embedded_BTD: torch.Tensor, hook: object) -> torch.Tensor:
        there_BT = (number_BT >= 0).to(embedded_BTD.device)
        taken_BTD = share_MD.to(embedded_BTD)[number_BT.clamp(min=0).to(embedded_BTD.device)]
        return embedded_BTD - taken_BTD * there_BT[:, :, None]

    return _EMBEDDINGS, remove


def _random_patterns(like_MX: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """As many orthonormal columns as `like_MX` has, with mean 0."""
    drawn_MX = generator.normal(size=like_MX.shape)
    return np.linalg.qr(drawn_MX - drawn_MX.mean(0))[0]


def _embeddings(subject: Subject, ids: Sequence[int]) -> np.ndarray:
    """The token embeddings (M, D), without positions."""
    return subject.bridge.W_E[list(ids)].float().cpu().numpy()


def _numbers_at_operands(sums: Sums, ids: Sequence[int]) -> torch.Tensor:
    """The number of each operand's token, (B, T); -1 at all other tokens."""
    number_of_word = torch.full((max(int(sums.tokens_BT.max()), *ids) + 1,), -1)
    number_of_word[list(ids)] = torch.arange(len(ids))
    at_BP = torch.cat([sums.a_at_BK, sums.b_at_BK], dim=1)
    is_operand_BT = (at_BP[:, :, None] == torch.arange(sums.tokens_BT.shape[1])).any(1)
    return torch.where(is_operand_BT, number_of_word[sums.tokens_BT], -1)


def _effect_power(stream_ND: np.ndarray, number_N: np.ndarray, position_N: np.ndarray, numbers: int) -> Measured:
    """The power of the numbers at one layer and site: axes (order, period)."""
    count = len(stream_ND)
    drawn_RN = np.random.default_rng(0).multinomial(count, [1 / count] * count, _DRAWS)
    weights = np.concatenate([np.ones((1, count)), drawn_RN])
    effect_MD, *drawn = (_effects(stream_ND, number_N, position_N, numbers, weight_N) for weight_N in weights)
    power = value_and_interval(np.stack([spectrum(one_MD) for one_MD in (effect_MD, *drawn)]))
    return _with_controls("residual power", power, effect_MD, count)


def _effects(
    stream_ND: np.ndarray, number_N: np.ndarray, position_N: np.ndarray, numbers: int, weight_N: np.ndarray
) -> np.ndarray:
    """The numbers' vectors (M, D), from a weighted least-squares fit with a vector for each number and position."""
    member_XN = np.concatenate(
        [number_N == np.arange(numbers)[:, None], position_N == np.unique(position_N)[:, None]]
    ).astype(float)
    weighted_XN = member_XN * weight_N
    # a constant may be part of the numbers' vectors or of the positions'; a tiny ridge decides, spectra do not change
    gram_XX = weighted_XN @ member_XN.T + 1e-6 * np.eye(len(member_XN))
    return np.linalg.solve(gram_XX, weighted_XN @ stream_ND)[:numbers]


def _with_controls(name: str, power: Sequence[np.ndarray] | np.ndarray, vectors_MD: np.ndarray, n: int) -> Measured:
    """The power spectrum and its controls. The intervals of the two random controls contain 95 % of the draws."""
    generator = np.random.default_rng(0)
    ramp_M1 = np.arange(len(vectors_MD), dtype=float)[:, None]
    flat_F = spectrum(_without_ramp(vectors_MD))
    by_order = [
        power,
        [flat_F] * 3,
        [spectrum(ramp_M1)] * 3,
        _drawn(lambda: generator.permutation(vectors_MD)),
        _drawn(lambda: generator.normal(size=vectors_MD.shape)),
    ]
    value, low, high = np.array(by_order).transpose(1, 0, 2)
    axes = {"order": list(SPECTRA), "period": periods(len(vectors_MD))}
    return Measured(name, axes, value, low, high, np.full(value.shape, n))


def _without_ramp(vectors_MD: np.ndarray) -> np.ndarray:
    """The vectors minus their least-squares line over the numbers; zeros if only rounding errors are left."""
    line_M = np.arange(len(vectors_MD)) - (len(vectors_MD) - 1) / 2
    centred_MD = vectors_MD - vectors_MD.mean(0)
    left_MD = centred_MD - np.outer(line_M, line_M @ centred_MD) / (line_M @ line_M)
    return left_MD * (np.linalg.norm(left_MD) > 1e-4 * np.linalg.norm(centred_MD))


def _drawn(draw: Callable[[], np.ndarray]) -> list[np.ndarray]:
    """The mean spectrum of many draws, and the bounds that contain 95 % of them."""
    power_RF = np.array([spectrum(draw()) for _ in range(_DRAWS)])
    return [*value_and_interval(np.stack([power_RF.mean(0), *power_RF]))]
