"""Whether a model is a transformer: attention moves information between positions, from earlier ones, and nothing else.

Shapes: B sequences, T tokens, V tokens in the vocabulary.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from lab.smallest_adder import contract
from lab.smallest_adder.graph.flow import EXPONENTIALS, Flow
from lab.smallest_adder.graph.operations import SOFTMAXES
from lab.smallest_adder.graph.program import Program, confirmed
from lab.smallest_adder.trial import COLLAPSED, PRACTICE, Objection, Trial

PLACES = 24
"""The number of tokens of one problem that are exchanged."""


def causality(trial: Trial) -> str:
    """Stops models that look ahead: tokens after a position must never change its logits, not even in the last bit.

    A causal mask is enough for this, because passes of the same shape give the same bits. The model must also not
    confirm an answer that it is shown but would not write.
    """
    if len(trial.programs) > 1:
        return "the model gives the last position's logits alone, and nothing follows it"
    program = trial.programs[0]
    drawn = np.random.default_rng(trial.seed)
    for place in (-1, -2):
        row_T = trial.sequence(place)
        same_BT = np.repeat(row_T[None], len(row_T) - 1, axis=0)
        later_BT = drawn.integers(0, trial.vocabulary, same_BT.shape)
        ahead_BT = np.triu(np.ones_like(same_BT), 1)
        before_BTV, after_BTV = (program.run(ids)[0] for ids in (same_BT, np.where(ahead_BT, later_BT, same_BT)))
        kept = torch.from_numpy(ahead_BT == 0)
        if not _same(before_BTV[kept], after_BTV[kept]).all():
            raise Objection("later tokens change earlier logits")
    drafts = trial.drafts(trial.sums)
    if drafts is not None:
        one_pass = confirmed(program, trial.prompts, drafts)
        if (trial.outputs != drafts)[one_pass].any():
            raise Objection("the model confirmed an answer that it was shown, but that it does not write")
    return f"at all {program.graph.tokens} positions"


def self_attention(trial: Trial) -> str:
    """Stops models without attention, and those that still give right answers with uniform attention.

    A model that adds must find the digits that it adds. Exponentials of scores must be divided by their sum, because
    undivided ones carry one more number; if they are divided, doubling all of them changes nothing. This layer also
    measures whether attention weights depend on the tokens. If no weight ever changes, attention is a fixed causal
    convolution, and the architecture holds the algorithm.
    """
    if not all(flow.weights for flow in trial.flows):
        raise Objection("no softmax over the tokens is computed: no self-attention")
    share = trial.accuracy(_reweighted(trial, _even))
    if share > COLLAPSED:
        raise Objection(f"{share:.0%} is right with uniform attention, so attention does not find the digits to add")
    if trial.good.any() and trial.accuracy(_reweighted(trial, _doubled)) < contract.RIGHT_IN_OTHER_PRECISION:
        raise Objection("exponentials of scores are not divided by their sum")
    trial.content = _change_of_weights(trial)
    looks = "at tokens" if trial.content > 1e-6 else "by position alone: a fixed causal convolution"
    return f"without it {share:.0%} is right; it looks {looks} (a weight changes by up to {trial.content:.4f})"


def _reweighted(trial: Trial, change: Callable[[str, torch.Tensor], torch.Tensor]) -> list[Program]:
    """The programs with other attention weights. `change`: the new weights, given the operation that made the old."""
    return [
        trial.program(graph, changes={value: partial(change, operation) for value, operation in flow.weights.items()})
        for graph, flow in zip(trial.graphs, trial.flows, strict=True)
    ]


def _even(operation: str, weights: torch.Tensor) -> torch.Tensor:
    return torch.full_like(weights, 1 / weights.shape[-1] if operation in SOFTMAXES else 1)


def _doubled(operation: str, weights: torch.Tensor) -> torch.Tensor:
    return 2 * weights if operation in EXPONENTIALS else weights


def _change_of_weights(trial: Trial) -> float:
    flow, program = trial.flows[-1], trial.programs[-1]
    ids_BT = np.stack([trial.sequence(place) for place in range(16)])
    _, watched = program.run(ids_BT, watch=list(flow.weights))
    changes = []
    for value, operation in flow.weights.items():
        weights = watched[value].double()
        if operation not in SOFTMAXES:
            weights = weights / weights.sum(-1, keepdim=True).abs().clamp_min(1e-9)
        changes.append(float((weights - weights[:1]).abs().nan_to_num().max()))
    return max(changes)


def attention_alone(trial: Trial) -> str:
    """Stops information that passes between positions by other means than attention.

    One token is changed, while attention's sums over positions are kept. Then the logits, and what attention reads, may
    change only at that token's position, and scores only if they belong to that query or that key. Everything else in a
    transformer is computed position by position. (Activation patching, as in Geiger et al. 2021, arXiv 2106.02997, here
    to test which information may flow where.) The problems are those with the most carries, and others that are drawn.
    They are computed in double precision.
    """
    right = np.flatnonzero(trial.good[:PRACTICE])  # uniform problems come first
    drawn = np.random.default_rng(trial.seed).permutation(right if len(right) >= 4 else PRACTICE)[:4].tolist()
    places = 0
    for program, flow in zip(trial.programs, trial.flows, strict=True):
        if all(tensor.dtype != "float64" for tensor in program.graph.leaves.values()):
            program = trial.program(program.graph, other_precision=True)
        for one, other in ((-1, -2), drawn[:2], drawn[2:]):
            places = max(places, _look(trial, program, flow, trial.sequence(one), trial.sequence(other)))
    return f"a token reaches other positions by attention alone, at {places} places"


def _look(trial: Trial, program: Program, flow: Flow, sequence: np.ndarray, given: np.ndarray) -> int:
    """How many tokens of `sequence` were exchanged, one at a time, for those of the sequence `given`. Raises
    Objection."""
    tokens = program.graph.tokens
    before_T, other_T = sequence[:tokens], given[:tokens]
    places = np.random.default_rng(trial.seed).permutation(np.flatnonzero(before_T != other_T))[:PLACES]
    if not len(places):
        return 0
    same_BT = np.repeat(before_T[None], len(places), axis=0)
    changed_BT = same_BT.copy()
    changed_BT[np.arange(len(places)), places] = other_T[places]
    watch = [*flow.mixes, *flow.values, *flow.scores]
    # rows are compared at the same place of batches of the same shape: there, equal computations give equal bits
    logits_BAV, before = program.run(same_BT, watch)
    frozen = {value: before[value] for value in flow.mixes}
    changed_BAV, after = program.run(changed_BT, watch, frozen)
    extra = {program.graph.shape(weights)[-1] - tokens for weights in flow.weights}
    for row, place in enumerate(places.tolist()):
        here = {place, *(place + more for more in extra)}
        for value in flow.scores:
            cancels = value not in flow.weights  # a softmax cancels what all scores of a query have in common
            if not _scores_local(before[value][row], after[value][row], here, cancels):
                raise Objection(f"the token at {place} changes how other tokens attend to each other")
        for value in flow.values:
            if not _local(before[value][row], after[value][row], here):
                raise Objection(f"the token at {place} changes what attention reads elsewhere, before it attends")
        differs_A = (~_same(logits_BAV[row], changed_BAV[row])).any(-1)
        first = tokens - len(differs_A)
        if place >= first:
            differs_A[place - first] = False
        if differs_A.any():
            raise Objection(f"the token at {place} changes logits elsewhere, and not by way of attention")
    return len(places)


def _same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (one == other) | (one.isnan() & other.isnan())


def _local(one: torch.Tensor, other: torch.Tensor, here: set[int]) -> bool:
    """Whether all that differs lies, along one dimension, at the given places."""
    places = torch.argwhere(~_same(one, other))
    return not len(places) or any(set(column.tolist()) <= here for column in places.T)


def _scores_local(one: torch.Tensor, other: torch.Tensor, here: set[int], cancels: bool) -> bool:
    """Whether scores (..., queries, keys) differ only at the query of the changed token, or at the given keys.

    `cancels`: a number that is added to all scores of a query does not count.
    """
    keys = [key for key in range(one.shape[-1]) if key not in here]
    first, second = one[..., keys].double(), other[..., keys].double()
    finite = first.isfinite() & second.isfinite()
    moved = torch.where(finite, second - first, torch.nan)
    shift = moved.nanmedian(-1, keepdim=True).values if cancels else 0
    size = torch.where(finite, first.abs(), 0)
    rounding = 1e-11 * size + 1e-15 * size.amax(-1, keepdim=True) + 1e-13
    alike = _same(first, second) | (finite & ((moved - shift).abs() <= rounding))
    rows = {int(place[-2]) for place in torch.argwhere(~alike)}
    return rows <= here or one.shape[-2] == 1
