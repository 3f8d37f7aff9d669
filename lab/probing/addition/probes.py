"""Linear probes: can a carry, the case of a digit sum, or a digit of the answer be read from the residual stream?

A probe is a softmax regression from the residual stream at q_k, the token that predicts digit k of the answer. There is
one for each layer, site and column, and for each of four targets:

    carry in     c_k                         0 or 1
    carry out    c_{k+1}                     0 or 1
    tricase      of a_k + b_k                -1, 0 or 1: at most 8, exactly 9, at least 10
    sum          s_k                         0 to 9

A probe alone shows little. A carry is a linear threshold of the digits' one-hot vectors, so a probe can read it with
100 % accuracy even if no model has computed it. An accuracy means something only if it is above that of `operands`, the
probe of the model's input, and if what was found has a causal effect (`interchange`). So there are five controls:

    majority            the most frequent class of the training part
    operands            the same regression on one-hot vectors of a_k, b_k, a_{k-1}, b_{k-1} and s_{k-1}
    shuffled            training labels are permuted: what their frequencies alone give
    random labels       each digit pair (a_k, b_k) gets a label drawn from the target's frequencies: what can be
                        memorized. Accuracy minus this is the selectivity of Hewitt and Liang (arXiv 1909.03368)
    held-out pairs      no digit pair of the test part occurs in training

Shapes: B sums, N of them that have a digit in column k, G regressions at once (layers and sites), F features,
C classes, K columns, D width of the model.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from lab.errors import TaskError
from lab.probing.addition.positions import Sums
from lab.probing.bridge import Subject
from lab.probing.components import Site
from lab.probing.interventions import read_queries
from lab.probing.measured import Measured, nanmean

TARGETS = ("carry in", "carry out", "tricase", "sum")
_TEST = 0.25
"""The share of the sums, and of the hundred digit pairs, that is held out for testing."""


class Probed(NamedTuple):
    """The accuracy of probes on held-out sums; nan if a target has only one value, as c_0 has.

    Probes of the residual stream have the axes (layer, site, column, target), those of the data (column, target). If
    the label or the split depends on the digit pair, sums with the same pair tend to be right or wrong together. So in
    `random_labels` and both fields with held-out pairs, a digit pair is one sample, with its share of right sums.
    """

    accuracy: Measured
    shuffled: Measured
    random_labels: Measured
    held_out_pairs: Measured
    majority: Measured
    operands: Measured
    operands_held_out_pairs: Measured
    """The control of `held_out_pairs`."""


def probe(
    subject: Subject,
    sums: Sums,
    *,
    layers: Sequence[int] | None = None,
    sites: Sequence[Site] | None = None,
    columns: Sequence[int] | None = None,
    batch_size: int = 64,
) -> Probed:
    """Probes at every layer, site and query position, trained on three quarters of the sums and tested on the rest.

    There should be many more sums than the residual stream has dimensions: a probe can separate a few sums whatever
    their labels are. Raises TaskError for columns that the sums do not have, or that fewer than eight sums have.
    """
    layers, sites = range(subject.layers) if layers is None else layers, sites or subject.sites
    columns = range(sums.columns.sum.shape[1]) if columns is None else columns
    for column in columns:
        sums.check_column(column)
    generator = np.random.default_rng(0)
    distinct = sorted(set(sums.numbers))
    tested = {distinct[i] for i in generator.permutation(len(distinct))[: round(_TEST * len(distinct))]}
    is_tested_B = np.array([numbers in tested for numbers in sums.numbers])
    label_TBK, operands_BKF = labels(sums), one_hot_operands(sums)
    pair_BK = 10 * sums.columns.a + sums.columns.b
    locations: list[tuple[int, Site]] = [(layer, site) for layer in layers for site in sites]
    stream_GBKD = read_queries(subject, sums, locations, columns, batch_size)

    found = {
        name: np.full((len(sums), 1 if name in _OF_DATA else len(locations), len(columns), len(TARGETS)), np.nan)
        for name in Probed._fields
    }
    for j, k in enumerate(columns):
        rows_N = np.flatnonzero(sums.has_digit_BK[:, k].numpy())
        if len(rows_N) < 8:
            raise TaskError(f"column {k}: {len(rows_N)} of {len(sums)} sums have it; a probe needs 8 at least")
        stream_GND, operands_1NF = stream_GBKD[:, rows_N, j], operands_BKF[None, rows_N, k]
        for t in range(len(TARGETS)):
            label_N = label_TBK[t, rows_N, k]
            if len(np.unique(label_N)) > 1:
                hits = _probed(stream_GND, operands_1NF, label_N, pair_BK[rows_N, k], is_tested_B[rows_N], generator)
                for name, hit_GN in hits.items():
                    found[name][rows_N, :, j, t] = hit_GN.T
    axes = {"column": list(columns), "target": list(TARGETS)}
    all_axes = {"layer": list(layers), "site": list(sites), **axes}
    measured = []
    for name, hits_BGKT in found.items():
        hits = _means_of_pairs(hits_BGKT, pair_BK[:, list(columns)]) if name in _OF_PAIRS else hits_BGKT
        shape = (len(hits), len(layers), len(sites), len(columns), len(TARGETS))
        measured.append(
            Measured.share(name, axes, hits[:, 0])
            if name in _OF_DATA
            else Measured.share(name, all_axes, hits.reshape(shape))
        )
    return Probed(*measured)


_OF_DATA = ("majority", "operands", "operands_held_out_pairs")
_OF_PAIRS = ("random_labels", "held_out_pairs", "operands_held_out_pairs")


def _means_of_pairs(hits_BGKT: np.ndarray, pair_BK: np.ndarray) -> np.ndarray:
    """The mean over the tested sums of each digit pair, (100, G, K, T); nan if there are none."""
    is_pair_PBK = pair_BK == np.arange(100)[:, None, None]
    return np.stack([
        nanmean(np.where(is_pair_BK[:, None, :, None], hits_BGKT, np.nan), axis=0) for is_pair_BK in is_pair_PBK
    ])  # fmt: skip


def _probed(
    stream_GND: torch.Tensor,
    operands_1NF: torch.Tensor,
    label_N: np.ndarray,
    pair_N: np.ndarray,
    is_tested_N: np.ndarray,
    generator: np.random.Generator,
) -> dict[str, np.ndarray]:
    """For each field of `Probed`, whether the probe is right, (G, N); nan for sums that are not tested."""
    trained_N = ~is_tested_N
    shuffled_N = label_N.copy()
    shuffled_N[trained_N] = generator.permutation(label_N[trained_N])
    label_of_pair = generator.choice(label_N, 100)
    pairs = generator.permutation(np.unique(pair_N))
    is_new_N = np.isin(pair_N, pairs[: max(1, round(_TEST * len(pairs)))])

    def read(features_GNF: torch.Tensor, trained_on_N: np.ndarray, right_N: np.ndarray, by_pair: bool) -> np.ndarray:
        tested_N = is_new_N if by_pair else is_tested_N
        classes, class_N = np.unique(trained_on_N, return_inverse=True)
        trained_N, asked_N = (torch.from_numpy(np.flatnonzero(rows_N)) for rows_N in (~tested_N, tested_N))
        probe = fit(features_GNF[:, trained_N], torch.from_numpy(class_N)[trained_N], len(classes))
        hits_GN = np.full(features_GNF.shape[:2], np.nan)
        hits_GN[:, tested_N] = classes[probe.predict(features_GNF[:, asked_N]).numpy()] == right_N[tested_N]
        return hits_GN

    values, counts = np.unique(label_N[trained_N], return_counts=True)
    majority_N = np.where(is_tested_N, label_N == values[counts.argmax()], np.nan)
    random_N = label_of_pair[pair_N]
    return {
        "accuracy": read(stream_GND, label_N, label_N, by_pair=False),
        "shuffled": read(stream_GND, shuffled_N, label_N, by_pair=False),
        "random_labels": read(stream_GND, random_N, random_N, by_pair=False),
        "held_out_pairs": read(stream_GND, label_N, label_N, by_pair=True),
        "majority": majority_N[None],
        "operands": read(operands_1NF, label_N, label_N, by_pair=False),
        "operands_held_out_pairs": read(operands_1NF, label_N, label_N, by_pair=True),
    }


def labels(sums: Sums) -> np.ndarray:
    """The value of each of `TARGETS` in each column, (T, B, K)."""
    columns = sums.columns
    carry_out_BK = (columns.a + columns.b + columns.carry) // 10
    return np.stack([columns.carry, carry_out_BK, columns.tricase, columns.sum])


def one_hot_operands(sums: Sums) -> torch.Tensor:
    """The digits on which a column depends, as one-hot vectors (B, K, 50): a_k, b_k, a_{k-1}, b_{k-1}, s_{k-1}.

    For the ones, the last three are zero vectors. If the answer is written from the left, the model does not know
    s_{k-1} yet.
    """
    columns = sums.columns
    here_BKC, there_BKC, sum_BKC = (np.eye(10, dtype=np.float32)[digits] for digits in columns[:3])
    below = [np.roll(one_hot, 1, axis=1) for one_hot in (here_BKC, there_BKC, sum_BKC)]
    for one_hot in below:
        one_hot[:, 0] = 0
    return torch.from_numpy(np.concatenate([here_BKC, there_BKC, *below], axis=-1))


class Softmax(NamedTuple):
    """G softmax regressions."""

    weight_GFC: torch.Tensor
    bias_GC: torch.Tensor

    def predict(self, features_GNF: torch.Tensor) -> torch.Tensor:
        """The most likely class of each row, (G, N)."""
        return (features_GNF @ self.weight_GFC + self.bias_GC[:, None]).argmax(-1)


@torch.inference_mode(False)
def fit(features_GNF: torch.Tensor, class_N: torch.Tensor, classes: int, ridge: float = 1e-5) -> Softmax:
    """Fits G softmax regressions at once with L-BFGS: the same labels 0..C-1, and different features.

    Features are standardized, and `ridge` times the sum of squared weights is added to each mean cross-entropy. The
    returned weights apply to features that are not standardized.
    """
    mean_G1F = features_GNF.mean(1, keepdim=True)
    scale_G1F = features_GNF.std(1, keepdim=True, unbiased=False)
    # a feature that does not vary gets no weight: standardizing it would blow up rounding errors
    scale_G1F = torch.where(scale_G1F > 1e-6 * (1 + mean_G1F.abs()), scale_G1F, float("inf"))
    standard_GNF = (features_GNF - mean_G1F) / scale_G1F
    groups, rows, width = features_GNF.shape
    weight_GFC = torch.zeros(groups, width, classes, requires_grad=True)
    bias_GC = torch.zeros(groups, classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight_GFC, bias_GC], max_iter=60, history_size=10, tolerance_change=1e-6, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        logits_GNC = standard_GNF @ weight_GFC + bias_GC[:, None]
        total = cross_entropy(logits_GNC.flatten(0, 1), class_N.repeat(groups), reduction="sum") / rows
        total = total + ridge * weight_GFC.square().sum()
        total.backward()
        return total

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[arg-type]
    unscaled_GFC = weight_GFC.detach() / scale_G1F.transpose(1, 2)
    return Softmax(unscaled_GFC, bias_GC.detach() - (mean_G1F @ unscaled_GFC)[:, 0])
