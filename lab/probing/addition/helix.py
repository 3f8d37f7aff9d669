"""Is a digit written as a helix, and does the model read it as one?

Models in which a number is one token write it as a helix, which is a line and circles of a few periods, and add by
turning it (Kantamneni and Tegmark 2025, arXiv 2502.00873). Here tokens are digits: the residual stream at the token of
a_k has ten means, one for each digit. Each of these fits explains a share of the variance of the means:

    helix             n, cos(2 pi n / 10), sin(2 pi n / 10)
    polynomial        n, n^2, n^3: as many dimensions, without a circle
    permuted helix    the helix of permuted digits; by chance it explains a third, having three of nine dimensions
    three periods     n and the circles of periods 10, 5 and 2, in six dimensions (the last circle has only one)
    sextic            n, n^2, ... n^6: as many dimensions as the three periods, without circles
    permuted periods  the three periods for permuted digits; by chance it explains two thirds
    ramp              n alone
    all means         every dimension in which the means differ

`RIVALS` of the three periods are other sets of periods with a line, such as "periods 10 and 2", and the first six
principal components of the means, "six components": if these do as well, it is not the three periods that count.

To test whether the model reads a fit, the digit a_k = n is exchanged for another digit m within the fit: the fit's
vector of n is replaced by its vector of m, and everything else stays. If the most likely digit at q_k becomes
(m + b_k + carry) mod 10, the model reads the fit and needs nothing else.

Shapes: B sums, D width, M = 10 digits, R dimensions of a fit, F fits.
"""

import re
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch

from lab.errors import TaskError, check_one_of
from lab.probing.addition.positions import Sums
from lab.probing.bridge import Hook, Subject
from lab.probing.interventions import only_at, read_at, residual, said_digits
from lab.probing.measured import Measured, value_and_interval

FITS = ("helix", "polynomial", "permuted helix", "three periods", "sextic", "permuted periods", "ramp", "all means")
DIGITS = 10
_HARMONICS = {"10": 1, "5": 2, "3.3": 3, "2.5": 4, "2": 5}
"""The periods that ten digits can have, as numbers of waves over them."""
RIVALS = (
    "six components",
    *(f"periods {first} and {second}" for first, second in combinations(_HARMONICS, 2)),
    *(f"periods {first}, {second} and {third}" for first, second, third in combinations(_HARMONICS, 3)),
)
_COMPONENTS = 6
_ORDERS = 20
"""Number of permutations of the digits; each is used for a twentieth of the sums."""


class Helix(NamedTuple):
    """How well each fit describes the digits, and whether the model reads it."""

    explained: Measured
    """The share of the variance of the ten means; axes (layer, fit)."""
    turned: Measured
    """How often the answer's digit is what it should be with the digit that was put in; axes (layer, fit)."""


def basis(
    fit: str, order: Sequence[int] | np.ndarray = range(DIGITS), means_MD: np.ndarray | None = None
) -> np.ndarray:
    """The fit as orthonormal columns over the digits, (M, R), each with mean 0.

    Args:
        fit: one of `FITS` or `RIVALS`.
        order: each digit's place in the fit.
        means_MD: the means, for their components.

    Raises TaskError for another fit, and for components without means.
    """
    check_one_of("fit", fit, (*FITS, *RIVALS))
    if fit == "six components":
        if means_MD is None:
            raise TaskError("the components of the means need the means")
        return np.linalg.svd(means_MD, full_matrices=False)[0][:, :_COMPONENTS]
    n_M = np.asarray(order, dtype=float)
    angle_M = 2 * np.pi * n_M / DIGITS
    turn = [n_M, np.cos(angle_M), np.sin(angle_M)]
    turns = [*turn, np.cos(2 * angle_M), np.sin(2 * angle_M), np.cos(5 * angle_M)]
    if fit in RIVALS:
        return _orthonormal([n_M, *_circles(angle_M, re.findall(r"[\d.]+", fit))])
    columns = {
        "helix": turn,
        "permuted helix": turn,
        "polynomial": [n_M, n_M**2, n_M**3],
        "three periods": turns,
        "permuted periods": turns,
        "sextic": [n_M**power for power in range(1, 7)],
        "ramp": [n_M],
        "all means": list(np.eye(DIGITS)[:-1]),
    }[fit]
    return _orthonormal(columns)


def _circles(angle_M: np.ndarray, periods: Sequence[str]) -> list[np.ndarray]:
    waves = [_HARMONICS[period] for period in periods]
    # the sine of period 2 is 0 at every digit
    return [turn(wave * angle_M) for wave in waves for turn in (np.cos, np.sin) if (wave, turn) != (5, np.sin)]


def _orthonormal(columns: Sequence[np.ndarray]) -> np.ndarray:
    columns_MR = np.stack(columns, axis=1)
    return np.linalg.qr(columns_MR - columns_MR.mean(0))[0]


@torch.inference_mode()
def helix(
    subject: Subject,
    train: Sums,
    test: Sums,
    column: int,
    *,
    layers: Sequence[int] | None = None,
    fits: Sequence[str] = FITS,
    batch_size: int = 64,
    seed: int = 0,
) -> Helix:
    """How the digits of column k are written at the tokens of a_k.

    Args:
        train: sums from which the means are taken. Every digit has to occur as a_k.
        test: other sums, into which digits are put.
        column: k.
        layers: the stream is read and changed before each of these layers.
        fits: which of `FITS` and `RIVALS` are compared.

    Raises TaskError for a column that the sums do not have, or if a digit does not occur in column k of a in `train`.
    """
    train.check_column(column)
    test.check_column(column)
    layers = range(subject.layers) if layers is None else layers
    generator = np.random.default_rng(seed)
    orders = [generator.permutation(DIGITS) for _ in range(_ORDERS)]
    old_B = test.columns.a[:, column]
    new_B = (old_B + generator.integers(1, DIGITS, len(test))) % DIGITS
    there_B = ((test.a_at_BK[:, column] >= 0) & (test.query_at_BK[:, column] >= 0)).numpy()
    target_B = (new_B + test.columns.b[:, column] + test.columns.carry[:, column]) % DIGITS
    explained = np.full((3, len(layers), len(fits)), np.nan)
    turned = np.full((len(test), len(layers), len(fits)), np.nan)
    means_LMD = _means(subject, train, column, layers, batch_size)
    for i, (layer, means_MD) in enumerate(zip(layers, means_LMD, strict=True)):
        for f, fit in enumerate(fits):
            bases = (
                [basis(fit, order) for order in orders]
                if fit.startswith("permuted")
                else [basis(fit, means_MD=means_MD)]
            )
            explained[:, i, f] = _shares(means_MD, bases)
            vectors_OMD = torch.stack([torch.from_numpy(one @ (one.T @ means_MD)).float() for one in bases])
            order_B = np.arange(len(test)) % len(bases)
            move_BD = vectors_OMD[order_B, new_B] - vectors_OMD[order_B, old_B]
            hooks = partial(_moved, layer, test.a_at_BK[:, column, None], move_BD[:, None])
            said_B = said_digits(subject, test, column, hooks, batch_size)
            turned[there_B, i, f] = (said_B == target_B)[there_B]
    axes = {"layer": list(layers), "fit": list(fits)}
    name, counts = "share of the means of ten digits that a fit explains", np.full(explained.shape[1:], DIGITS)
    return Helix(
        Measured(name, axes, *explained, n=counts), Measured.share("digits that follow what was put in", axes, turned)
    )


def _means(subject: Subject, sums: Sums, column: int, layers: Sequence[int], batch_size: int) -> list[np.ndarray]:
    """Before each layer, the mean residual stream of each digit minus the mean of all ten, (M, D)."""
    there_B = (sums.a_at_BK[:, column] >= 0).numpy()
    digit_N = sums.columns.a[there_B, column]
    if missing := set(range(DIGITS)) - set(digit_N.tolist()):
        raise TaskError(f"digit {min(missing)} does not occur in column {column} of these {len(sums)} sums")
    names = [f"blocks.{layer}.hook_resid_pre" for layer in layers]
    found = []
    for stream_B1D in read_at(subject, sums, names, sums.a_at_BK[:, column, None], batch_size):
        stream_ND = stream_B1D[:, 0].numpy()[there_B]
        means_MD = np.stack([stream_ND[digit_N == digit].mean(0) for digit in range(DIGITS)])
        found.append(means_MD - means_MD.mean(0))
    return found


def _shares(means_MD: np.ndarray, bases: Sequence[np.ndarray]) -> np.ndarray:
    """The mean share of the variance that the bases explain, and the bounds that contain 95 % of them."""
    shares = [float(np.square(one.T @ means_MD).sum() / np.square(means_MD).sum()) for one in bases]
    return value_and_interval(np.array([np.mean(shares), *shares]))


def _moved(layer: int, at_B1: torch.Tensor, move_B1D: torch.Tensor, rows: slice) -> list[Hook]:
    """Hooks that add a vector to the residual stream of some of the sums, at one token each."""
    return residual(layer, "pre", only_at(at_B1[rows], lambda stream_B1D: stream_B1D + move_B1D[rows].to(stream_B1D)))
