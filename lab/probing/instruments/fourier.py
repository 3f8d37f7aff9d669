"""Are numbers represented as waves, and does the model need these waves?

Models in which numbers of two or three digits are one token embed number n on circles, as cos(2 pi n / T) and
sin(2 pi n / T) with periods T = 2, 2.5, 5, 10 and 100 (Zhou et al. 2024, arXiv 2406.03445; Kantamneni and Tegmark 2025,
arXiv 2502.00873). `embedding_power` decomposes the vectors e_n of the number tokens 0..M-1 into waves over n. The power
of a period is its share of their variance about the mean,

    ||sum_n e_n exp(-2 pi i n / T)||^2 / (M / 2 * sum_n ||e_n - mean||^2)      (M instead of M / 2 for T = 2)

for the periods M, M/2, M/3, ..., 2; these shares sum to one. Numbers of one digit have M = 10 and periods 10, 5, 3.33,
2.5, 2. `residual_power` does the same with the vector that the stream at the operands' tokens has for each number.

Power shows what is there, but also finds waves where there are none: a plain ramp, e_n = n, has 63 % of its power at
the longest period. So the controls (`ORDERS`) are the power without the part that is linear in n, the power of a plain
ramp, of the same vectors in permuted order, and of random vectors.

`remove_periods` shows what is used: it projects the wave of a period out of the embeddings of the operands' tokens, and
asks the sums again. Its control is to remove as many random patterns over the numbers.

Shapes: M numbers, D width, F periods, B sums, T tokens, K columns, R random draws, N operand tokens, V words.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from lab.errors import LabError, ModelError, TaskError
from lab.probing.bridge import Hook, Subject
from lab.probing.components import Site
from lab.probing.interventions import read_residuals
from lab.probing.measured import Measured
from lab.probing.positions import Sums, batches

ORDERS = ("as numbers", "without a ramp", "a ramp", "permuted", "random vectors")
REMOVED = ("nothing", "period", "random patterns")
_EMBEDDINGS = "hook_embed"
_MOST_DIGITS = 3
_DRAWS = 200
_BATCH = 64
"""Sums per forward pass."""


class Removal(NamedTuple):
    """Axes (removed, period); `digits` also has the axis column."""

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
    """The tokens of the numbers with as many digits as a token can have, such as 000 to 999.

    They are found by writing numbers that end in them. Raises ModelError if digits are not cut into groups of equal
    length, so that some number has no token of its own.
    """
    for digits in range(_MOST_DIGITS, 0, -1):
        first = 10 ** (2 * digits - 1)  # two whole groups, whether they are counted from the left or from the right
        try:
            at = subject.writer.write(first, 0).a_at
        except LabError:  # this writer takes only shorter numbers
            continue
        if len(set(at[:digits])) == 1 and at[digits] != at[0]:
            break
    else:
        raise ModelError(f"{subject.name}: digits are not written in groups of 1 to {_MOST_DIGITS} of one length")
    written = [subject.writer.write(first + number, 0) for number in range(10**digits)]
    ids = [one.ids[one.a_at[0]] for one in written]
    if len(set(ids)) < len(ids) or any(len(set(one.a_at[:digits])) > 1 for one in written):
        raise ModelError(f"{subject.name}: some numbers of {digits} digits have no token of their own")
    return ids


@torch.inference_mode()
def embedding_power(subject: Subject) -> Measured:
    """The power of the number tokens' embeddings: axes (order, period).

    Embeddings are not a sample, so their interval is the value itself; that of the random controls contains 95 % of the
    draws. Raises the same errors as `number_tokens`.
    """
    vectors_MD = _embeddings(subject, number_tokens(subject))
    value_F = spectrum(vectors_MD)
    return _beside_nulls("embedding power", value_F, value_F, value_F, vectors_MD, len(vectors_MD))


@torch.inference_mode()
def residual_power(
    subject: Subject, sums: Sums, *, layers: Sequence[int] | None = None, sites: Sequence[Site] | None = None
) -> Measured:
    """The power of the vectors that the stream at the operands' tokens has for the numbers: axes (layer, site, order,
    period).

    The vectors come from a least-squares fit that also has a vector for each position: no number begins with 0, so a
    plain mean would contain positions. Intervals are bootstrapped over tokens, and n counts tokens. With few tokens for
    each number there is power at all periods by chance, in the permuted order too. Raises TaskError if a number does
    not occur in the sums.
    """
    layers, sites = range(subject.layers) if layers is None else layers, sites or subject.sites
    ids = number_tokens(subject)
    places: list[tuple[int, Site]] = [(layer, site) for layer in layers for site in sites]
    number_BT = _numbers_at_operands(sums, ids)
    there_BT = number_BT >= 0
    number_N = number_BT[there_BT].numpy()
    counts_M = np.bincount(number_N, minlength=len(ids))
    if not counts_M.all():
        missing = int(counts_M.argmin())
        raise TaskError(f"number {missing} is no operand's token in these {len(sums)} sums; means need all {len(ids)}")
    found: list[list[torch.Tensor]] = [[] for _ in places]
    for rows in batches(len(sums), _BATCH):
        read = read_residuals(subject, sums.part(rows), places)
        for streams, place in zip(found, places, strict=True):
            streams.append(read[place][there_BT[rows].to(subject.device)].float().cpu())
    position_N = there_BT.nonzero()[:, 1].numpy()
    measured = [_effect_power(torch.cat(streams).numpy(), number_N, position_N, len(ids)) for streams in found]
    axes = {"layer": list(layers), "site": list(sites)} | measured[0].axes
    shape = tuple(len(labels) for labels in axes.values())
    arrays = (np.stack(same).reshape(shape) for same in zip(*(one.arrays for one in measured), strict=True))
    return Measured("residual power", axes, *arrays)


@torch.inference_mode()
def remove_periods(
    subject: Subject, sums: Sums, removed: Sequence[float] = (2, 2.5, 5, 10), *, batch_size: int = _BATCH
) -> Removal:
    """Exact match and right digits without the wave of one period in the embeddings of the operands' tokens.

    All other periods stay as they are. The random patterns of the control are orthonormal, have mean 0 and are drawn
    anew for each batch. Tokens of fewer digits, such as the first one of a number, are not changed. Raises TaskError
    for a period that the numbers cannot have, and the same errors as `number_tokens`.
    """
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
    """A hook that subtracts from each number's embedding its part along the patterns over the numbers."""
    patterns = torch.from_numpy(patterns_MX).float()
    share_MD = patterns @ (patterns.T @ vectors_MD)

    def remove(embedded_BTD: torch.Tensor, hook: object) -> torch.Tensor:
        there_BT = (number_BT >= 0).to(embedded_BTD.device)
        taken_BTD = share_MD.to(embedded_BTD)[number_BT.clamp(min=0).to(embedded_BTD.device)]
        return embedded_BTD - taken_BTD * there_BT[:, :, None]

    return _EMBEDDINGS, remove


def _random_patterns(like_MX: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """As many orthonormal columns, which are also orthogonal to the constant."""
    drawn_MX = generator.normal(size=like_MX.shape)
    return np.linalg.qr(drawn_MX - drawn_MX.mean(0))[0]


def _embeddings(subject: Subject, ids: Sequence[int]) -> np.ndarray:
    """(M, D), before positions."""
    return subject.bridge.W_E[list(ids)].float().cpu().numpy()


def _numbers_at_operands(sums: Sums, ids: Sequence[int]) -> torch.Tensor:
    """The number of each operand's token, (B, T); -1 at all other tokens."""
    number_of_word = torch.full((max(int(sums.tokens_BT.max()), *ids) + 1,), -1)
    number_of_word[list(ids)] = torch.arange(len(ids))
    at_BP = torch.cat([sums.a_at_BK, sums.b_at_BK], dim=1)
    is_operand_BT = (at_BP[:, :, None] == torch.arange(sums.tokens_BT.shape[1])).any(1)
    return torch.where(is_operand_BT, number_of_word[sums.tokens_BT], -1)


def _effect_power(stream_ND: np.ndarray, number_N: np.ndarray, position_N: np.ndarray, numbers: int) -> Measured:
    """Axes (order, period)."""
    count = len(stream_ND)
    drawn_RN = np.random.default_rng(0).multinomial(count, [1 / count] * count, _DRAWS)
    weights = np.concatenate([np.ones((1, count)), drawn_RN])
    effect_MD, *drawn = (_effects(stream_ND, number_N, position_N, numbers, weight_N) for weight_N in weights)
    low_F, high_F = np.quantile([spectrum(one_MD) for one_MD in drawn], [0.025, 0.975], axis=0)
    return _beside_nulls("residual power", spectrum(effect_MD), low_F, high_F, effect_MD, count)


def _effects(
    stream_ND: np.ndarray, number_N: np.ndarray, position_N: np.ndarray, numbers: int, weight_N: np.ndarray
) -> np.ndarray:
    """The vectors of the numbers (M, D), from a weighted least-squares fit that also has a vector for each position."""
    member_XN = np.concatenate(
        [number_N == np.arange(numbers)[:, None], position_N == np.unique(position_N)[:, None]]
    ).astype(float)
    weighted_XN = member_XN * weight_N
    # a constant can be in the vectors of the numbers or of the positions; a tiny ridge decides; spectra do not change
    gram_XX = weighted_XN @ member_XN.T + 1e-6 * np.eye(len(member_XN))
    return np.linalg.solve(gram_XX, weighted_XN @ stream_ND)[:numbers]


def _beside_nulls(
    name: str, value_F: np.ndarray, low_F: np.ndarray, high_F: np.ndarray, vectors_MD: np.ndarray, n: int
) -> Measured:
    """The power and its controls. The intervals of the two random controls contain 95 % of the draws."""
    generator = np.random.default_rng(0)
    ramp_M1 = np.arange(len(vectors_MD), dtype=float)[:, None]
    flat_F = spectrum(_without_ramp(vectors_MD))
    by_order = [
        [value_F, low_F, high_F],
        [flat_F] * 3,
        [spectrum(ramp_M1)] * 3,
        _drawn(lambda: generator.permutation(vectors_MD)),
        _drawn(lambda: generator.normal(size=vectors_MD.shape)),
    ]
    value, low, high = np.array(by_order).transpose(1, 0, 2)
    axes = {"order": list(ORDERS), "period": periods(len(vectors_MD))}
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
    return [power_RF.mean(0), *np.quantile(power_RF, [0.025, 0.975], axis=0)]
