"""Do neurons follow simple rules about the digits, and do answers come from these rules?

Large models add with a bag of heuristics: each of a few neurons of an MLP is active for operands or results of a
simple pattern, and many of them together make the answer likely (Nikankin et al. 2024, arXiv 2410.21272). Here the
operands are the digits of one column, and neurons are read at q_k, where the column's digit is predicted. The rules:

    a, b       the digit lies in a range, or has a certain remainder modulo 2, 3, 4 or 5
    sum        a_k + b_k lies in a range, or has a certain remainder modulo 2, 5 or 10
    answer     s_k lies in a range, or has a certain remainder modulo 2 or 5
    equal      a_k = b_k
    carry      something is carried into the column

For each of the neurons that move the digits' logits most, the best rule is chosen on half of the sums. A rule predicts
two levels of activation: one for sums for which it holds, and one nearer to 0 for all others. The share of the neuron's
variance that it explains is measured on the other half. A search among hundreds of rules finds something in noise too,
so the control repeats the search with shuffled sums.

Then the rules are tested causally. A rule fits if it explains at least half of a neuron's variance. For each sum, the
neurons whose fitting rule holds are mean-ablated; the control ablates as many others, whose ablation moves the logits
about as far. If answers come from the rules, the first ablation costs more right digits than the second.

Shapes: B sums, N neurons, R rules, L layers.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from lab.errors import ModelError
from lab.probing.addition.positions import Sums
from lab.probing.batching import check_positive
from lab.probing.bridge import Hook, Subject
from lab.probing.interventions import only_at, read_at, said_digits
from lab.probing.measured import Measured

FAMILIES = ("a", "b", "sum", "answer", "equal", "carry")
REMOVED = ("nothing", "neurons whose rule holds", "as many others")


class Neuron(NamedTuple):
    """A neuron, and the rule that explains most of its variance."""

    layer: int
    number: int
    rule: str
    family: str
    explained: float
    """The share of its variance that the rule explains, on sums on which the rule was not chosen."""
    shuffled: float
    """The same for the best rule in the control."""


class Heuristics(NamedTuple):
    """Which neurons follow rules, and what the model loses without them."""

    neurons: list[Neuron]
    """Those that move the digits' logits most, the strongest first."""
    matched: Measured
    """The share of neurons with a rule that fits: to the sums as they are, and to shuffled sums; axes (sums)."""
    by_family: Measured
    """The share of neurons with a rule of a family that fits; axes (family)."""
    digits: Measured
    """Right digits of column k; axes (removed)."""


def rules(a_B: np.ndarray, b_B: np.ndarray, answer_B: np.ndarray, carry_B: np.ndarray) -> dict[str, np.ndarray]:
    """Which rules hold for which sums, (B,) by name; names begin with the rule's family."""
    found: dict[str, np.ndarray] = {}
    numbers = {"a": (a_B, 10, (2, 3, 4, 5)), "b": (b_B, 10, (2, 3, 4, 5)), "sum": (a_B + b_B, 19, (2, 5, 10)),
               "answer": (answer_B, 10, (2, 5))}  # fmt: skip
    for name, (number_B, count, divisors) in numbers.items():
        for low in range(count):
            for high in range(low, count if low else count - 1):  # not the whole range, which always holds
                found[f"{name} in {low}-{high}"] = (low <= number_B) & (number_B <= high)
        for divisor in divisors:
            for rest in range(divisor):
                found[f"{name} mod {divisor} = {rest}"] = number_B % divisor == rest
    return found | {"equal": a_B == b_B, "carry": carry_B == 1}


@torch.inference_mode()
def heuristics(
    subject: Subject, sums: Sums, column: int, *, top: int = 100, batch_size: int = 64, seed: int = 0
) -> Heuristics:
    """The rules of the neurons that write the digit of a column.

    Args:
        sums: those without the column do not count. Rules are chosen on half of them and tested on the other half.
        column: k.
        top: number of neurons, the strongest first. A neuron's strength is the standard deviation of its activation
            times the norm of what it adds to the logits of the ten digits, without what it adds to all of them alike.

    Raises TaskError for a column that the sums do not have, or if `top` is below 1.
    """
    sums.check_column(column)
    check_positive("top", top)
    there = (sums.query_at_BK[:, column] >= 0).numpy()
    chosen, activation_BN, reach_N = _strongest(subject, sums, there, column, top, batch_size)
    digits = sums.columns
    facts = (digits.a, digits.b, digits.sum, digits.carry)
    named = rules(*(part[there, column] for part in facts))
    names, holds_RB = list(named), np.stack(list(named.values()))
    half = len(activation_BN) // 2
    shuffled_RB = np.random.default_rng(seed).permutation(holds_RB, axis=1)
    best_N, explained_N = _best(activation_BN, holds_RB, half)
    _, by_chance_N = _best(activation_BN, shuffled_RB, half)
    neurons = [
        Neuron(layer, number, names[rule], names[rule].split()[0], float(share), float(chance))
        for (layer, number), rule, share, chance in zip(chosen, best_N, explained_N, by_chance_N, strict=True)
    ]
    fits_N2 = np.stack([explained_N >= 0.5, by_chance_N >= 0.5], axis=1).astype(float)
    family_NF = np.array([[float(n.family == family and n.explained >= 0.5) for family in FAMILIES] for n in neurons])
    applies_BN = np.zeros((len(sums), len(neurons)), dtype=bool)
    applies_BN[there] = (holds_RB[best_N] & (explained_N >= 0.5)[:, None]).T
    mean_N, query_B1 = torch.from_numpy(activation_BN.mean(0)).float(), sums.query_at_BK[:, column, None]

    def right(removed_BN: np.ndarray) -> np.ndarray:
        """Whether the digit is right, (B,), if these neurons are mean-ablated, each for its sums."""

        def hooks(rows: slice) -> list[Hook]:
            return _hooks(neurons, torch.from_numpy(removed_BN[rows]), mean_N, query_B1[rows])

        return said_digits(subject, sums, column, hooks, batch_size) == digits.sum[:, column]

    moved_BN = np.zeros(applies_BN.shape)
    moved_BN[there] = np.abs(activation_BN - activation_BN.mean(0)) * reach_N
    removals = (np.zeros_like(applies_BN), applies_BN, _others(applies_BN, moved_BN))
    tested = np.flatnonzero(there)[half:]
    right_BX = np.stack([right(removed_BN)[tested] for removed_BN in removals], axis=1)
    return Heuristics(
        neurons,
        Measured.share("neurons that a rule explains", {"sums": ["as they are", "shuffled"]}, fits_N2),
        Measured.share("neurons that a rule of a family explains", {"family": list(FAMILIES)}, family_NF),
        Measured.share("right digits without neurons", {"removed": list(REMOVED)}, right_BX),
    )


def _output_weights(subject: Subject) -> Sequence[torch.Tensor]:
    """What each neuron writes per unit, (N, D), for each layer. Raises ModelError for MLPs of several experts."""
    try:
        return [subject.bridge.W_out[layer] for layer in range(subject.layers)]
    except AttributeError as error:
        raise ModelError(f"{subject.name}: its MLPs have no single matrix from neurons to the stream") from error


def _strongest(
    subject: Subject, sums: Sums, there: np.ndarray, column: int, top: int, batch_size: int
) -> tuple[list[tuple[int, int]], np.ndarray, np.ndarray]:
    """The strongest neurons as (layer, number), their activations at q_k, (sums with the column, N), and the norm of
    what a unit of each adds to the logits of the digits, (N,)."""
    names = list(map(_hook_point, range(subject.layers)))
    read = read_at(subject, sums, names, sums.query_at_BK[:, column, None], batch_size)
    activation_BLN = torch.cat(read, dim=1).numpy()[there]
    to_digits_DV = subject.bridge.W_U[:, subject.writer.digit_ids()].float()
    to_digits_DV = to_digits_DV - to_digits_DV.mean(1, keepdim=True)
    written = [out_ND.float() @ to_digits_DV for out_ND in _output_weights(subject)]
    reach_LN = torch.stack([one.norm(dim=1) for one in written]).cpu().numpy()
    strength_LN = activation_BLN.std(0) * reach_LN
    strongest = np.argsort(-strength_LN, axis=None, kind="stable")[:top]
    pairs = [divmod(int(index), strength_LN.shape[1]) for index in strongest if strength_LN.flat[index] > 0]
    reach_N = np.array([reach_LN[layer, n] for layer, n in pairs])
    return pairs, np.stack([activation_BLN[:, layer, n] for layer, n in pairs], axis=1), reach_N


def _best(activation_BN: np.ndarray, holds_RB: np.ndarray, half: int) -> tuple[np.ndarray, np.ndarray]:
    """The rule that explains most of each neuron's variance in the first half, and its share in the second half."""
    fit_BN, fit_RB = activation_BN[:half], holds_RB[:, :half]
    inside_RN, outside_RN = _levels(fit_BN, fit_RB)
    first_RN = _shares(fit_BN, fit_RB, fit_BN, fit_RB)
    best_N = np.where(np.abs(inside_RN) > np.abs(outside_RN), first_RN, -np.inf).argmax(0)
    second_RN = _shares(fit_BN, fit_RB, activation_BN[half:], holds_RB[:, half:])
    return best_N, second_RN[best_N, np.arange(len(best_N))]


def _shares(fit_BN: np.ndarray, fit_RB: np.ndarray, test_BN: np.ndarray, test_RB: np.ndarray) -> np.ndarray:
    """The share of the variance in `test` that each rule explains, (R, N), with the levels of activation in `fit`."""
    in_RN, out_RN = _levels(fit_BN, fit_RB)
    # the sum of the squared errors (x - level)^2, from sums of x and x^2 over the sums with and without the rule
    squares_N, plain_N = np.square(test_BN).sum(0), test_BN.sum(0)
    there_RN, count_R1 = test_RB @ test_BN, test_RB.sum(1, keepdims=True)
    rest_R1 = len(test_BN) - count_R1
    left_RN = squares_N - 2 * (in_RN * there_RN + out_RN * (plain_N - there_RN))
    left_RN += count_R1 * in_RN**2 + rest_R1 * out_RN**2
    spread_N = np.square(test_BN - test_BN.mean(0)).sum(0)
    return 1 - left_RN / np.maximum(spread_N, 1e-12)


def _levels(activation_BN: np.ndarray, holds_RB: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean activation if a rule holds and if it does not, (R, N) each; 0 if there are no such sums."""
    inside_RN, count_R1 = holds_RB @ activation_BN, holds_RB.sum(1, keepdims=True)
    outside_RN = activation_BN.sum(0) - inside_RN
    return inside_RN / np.maximum(count_R1, 1), outside_RN / np.maximum(len(activation_BN) - count_R1, 1)


def _others(applies_BN: np.ndarray, moved_BN: np.ndarray) -> np.ndarray:
    """The control, (B, N): as many other neurons as are ablated in each sum (`applies_BN`). Each ablated neuron is
    matched with the unused neuron whose ablation moves the logits by the most similar amount (`moved_BN`), until none
    is left. Random neurons would move them less, because a neuron is more active if its rule holds."""
    others_BN = np.zeros_like(applies_BN)
    for row, (applies_N, moved_N) in enumerate(zip(applies_BN, moved_BN, strict=True)):
        free = list(np.flatnonzero(~applies_N))
        for size in sorted(moved_N[applies_N], reverse=True)[: len(free)]:
            others_BN[row, free.pop(int(np.abs(moved_N[free] - size).argmin()))] = True
    return others_BN


def _hooks(
    neurons: Sequence[Neuron], removed_BN: torch.Tensor, mean_N: torch.Tensor, at_B1: torch.Tensor
) -> list[Hook]:
    """Hooks that mean-ablate the neurons and rows marked in `removed_BN`, at q_k."""

    def of(layer: int) -> Hook:
        indices = [index for index, one in enumerate(neurons) if one.layer == layer]
        numbers = [neurons[index].number for index in indices]

        def change(post_B1N: torch.Tensor) -> torch.Tensor:
            removed_BX, kept_BX = removed_BN[:, indices].to(post_B1N.device), post_B1N[:, 0, numbers]
            post_B1N[:, 0, numbers] = torch.where(removed_BX, mean_N[indices].to(post_B1N), kept_BX)
            return post_B1N

        return _hook_point(layer), lambda post_BTN, hook: only_at(at_B1, change)(post_BTN)

    return [of(layer) for layer in sorted({one.layer for one in neurons})]


def _hook_point(layer: int) -> str:
    return f"blocks.{layer}.mlp.hook_post"
