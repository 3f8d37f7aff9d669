"""Whether a model is a transformer: attention moves information between positions, from earlier ones, and nothing else.

Shapes: B sequences, T tokens, V tokens in the vocabulary.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np
import torch

from lab.smallest_adder import contract
from lab.smallest_adder.graph.flow import EXPONENTIALS, MOST_EXTRA_KEYS, Flow
from lab.smallest_adder.graph.operations import SOFTMAXES
from lab.smallest_adder.graph.program import Program, confirmed
from lab.smallest_adder.trial import COLLAPSED, PRACTICE, Objection, Trial

PLACES = 24
"""The number of tokens of one problem that are exchanged."""
MANY = 384
"""The number of problems in which one token is exchanged."""
CONSTANTS = 4
"""The number of tokens that may be the same in all prompts and act at other positions without attention."""
ADDED = 1e-4
"""How far a number may be from a sum of what each token gives, relative to how much it differs between problems."""
ROUNDING = 1e-13
"""The largest error of a number's sum in double precision, relative to the number."""
UNSEEN = 800
"""A key whose score lies this far below the highest one has no weight, even in double precision."""


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
        later_BT = drawn.choice(trial.in_use, same_BT.shape)
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
    undivided ones carry one more number. If they are divided, a factor for each query changes nothing. Exponentials
    that already sum to one (the logarithm of the sum was subtracted from the scores) count as a softmax. This layer
    also measures whether attention weights depend on the tokens. If no weight ever changes, or if the mean weights of
    several problems do as well, or if all that follows depends on a sum of what each token gives by itself, attention
    is a fixed causal convolution, and the architecture holds the algorithm.
    """
    if not all(flow.weights for flow in trial.flows):
        whole = trial.graphs[-1]
        keys = max((whole.shape(one.results[0])[-1] for one in whole.nodes if one.name in SOFTMAXES), default=0)
        padded = (
            f" (one has {keys} keys for {whole.tokens} tokens: do not pad in forward)" if keys > whole.tokens else ""
        )
        raise Objection(f"no softmax over the tokens is computed{padded}: no self-attention")
    share = max(trial.accuracy(_reweighted(trial, change)) for change in (_even, _even_over_seen))
    if share > COLLAPSED:
        raise Objection(f"{share:.0%} is right with uniform attention, so attention does not find the digits to add")
    for change in (partial(_multiplied, seed) for seed in range(2)):
        if trial.good.any() and trial.accuracy(_reweighted(trial, change)) < contract.RIGHT_IN_OTHER_PRECISION:
            raise Objection("exponentials of scores are not divided by their sum")
    trial.content = _change_of_weights(trial)
    if trial.good.any():
        does_as_well = trial.accuracy(_of_the_mean(trial)) >= contract.RIGHT_IN_OTHER_PRECISION
        if does_as_well or _only_adds(trial):
            trial.content = 0.0
    looks = "at tokens" if trial.content > 1e-6 else "by position alone: a fixed causal convolution"
    return f"without it {share:.0%} is right; it looks {looks} (a weight changes by up to {trial.content:.4f})"


def _reweighted(trial: Trial, change: Callable[[str, torch.Tensor, torch.Tensor], torch.Tensor]) -> list[Program]:
    """The programs with other attention weights. `change(operation, weights, scores)` returns the new weights, with the
    keys in the last dimension; `operation` is the name of the one that made the old weights, or softmax for
    exponentials that already sum to one."""

    def changed_along(axis: int, operation: str, weights: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return change(operation, weights.movedim(axis, -1), scores.movedim(axis, -1)).movedim(-1, axis)

    changed = []
    for program, flow in zip(trial.programs, trial.flows, strict=True):
        ids_BT = trial.sequence(range(4))[:, : program.graph.tokens]
        _, weights = program.run(ids_BT, watch=list(flow.weights))
        changes = {}
        for value, operation in flow.weights.items():
            sum_to_one = ((weights[value].double().sum(-1) - 1).abs() < 1e-5).all()
            operation = SOFTMAXES[0] if operation in EXPONENTIALS and sum_to_one else operation
            changes[value] = partial(changed_along, flow.axes[value], operation)
        changed.append(trial.program(program.graph, changes=changes))
    return changed


def _of_the_mean(trial: Trial) -> list[Program]:
    """The programs with the same weights in all problems: the mean of those in several."""
    changed = []
    for program, flow in zip(trial.programs, trial.flows, strict=True):
        _, watched = program.run(trial.sequence(range(16))[:, : program.graph.tokens], watch=list(flow.weights))
        means = {value: partial(_instead, weights.mean(0)) for value, weights in watched.items()}
        changed.append(trial.program(program.graph, changes=means))
    return changed


def _only_adds(trial: Trial) -> bool:
    """Whether logits depend only on a value that is a sum of what each token gives by itself. Then attention works by
    position: if its weights change with the tokens, values or later layers undo that.

    If two problems exchange some tokens, the two sums change by the same amount, in opposite directions.
    """
    flow, program = trial.flows[-1], _in_double_precision(trial, trial.programs[-1], trial.flows[-1])
    count = min(16, program.at_once)
    one_BT, other_BT = trial.sequence(range(count)), trial.sequence(range(16, 16 + count))
    is_kept_BT = np.random.default_rng(trial.seed).random(one_BT.shape) < 0.5
    first_BT, second_BT = np.where(is_kept_BT, one_BT, other_BT), np.where(is_kept_BT, other_BT, one_BT)
    blank = program.graph.blank
    watch = [value for value in program.graph.downstream(set(flow.mixes)) if blank[value].is_floating_point()]
    logits, other = program.run(other_BT, watch)
    one, first, second = (program.run(ids_BT, watch)[1] for ids_BT in (one_BT, first_BT, second_BT))
    for value in watch:
        if _is_sum(one[value], other[value], first[value], second[value]):
            exchanged, _ = program.run(one_BT, frozen={value: other[value]})
            if torch.allclose(exchanged, logits):
                return True
    return False


def _is_sum(*found: torch.Tensor) -> bool:
    """Whether each number of a value is a sum of what each token gives, but for rounding: the value in two problems,
    and in two that exchange some of their tokens. Infinite numbers must be the same in all."""
    one, other, first, second = (torch.where(value.isfinite(), value, 0).double() for value in found)
    apart = (one - first + other - second).abs()
    differs = torch.maximum((one - other).abs(), (first - second).abs()).amax(0)
    rounding = ROUNDING * torch.maximum(one.abs(), other.abs()).amax(0)
    return bool((apart <= ADDED * differs + rounding).all()) and all(
        bool((value.isfinite() == found[0].isfinite()).all()) for value in found
    )


def _instead(given: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return given


def _even(operation: str, weights: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    return torch.full_like(weights, 1 / weights.shape[-1] if operation in SOFTMAXES else 1)


def _even_over_seen(operation: str, weights: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Equal weights for the keys that the mask leaves visible, so that a model that only averages over earlier tokens
    does not pass either. A key without weight is visible if its score is far above those that the mask gives to later
    keys: attention may be hard."""
    seen = weights > 0
    queries, keys = weights.shape[-2:]
    if operation in (*SOFTMAXES, *EXPONENTIALS) and 1 < queries <= keys:
        later = torch.ones(queries, keys, dtype=torch.bool).triu(1 + keys - queries)
        seen = seen | (scores > torch.where(later, scores, torch.inf).amin() / 2)
    seen = seen.to(weights.dtype)
    return seen / seen.sum(-1, keepdim=True).clamp_min(1) if operation in SOFTMAXES else seen


def _multiplied(seed: int, operation: str, weights: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Exponentials multiplied by a random number for each query, or, if they already sum to one, divided by their
    sum, because what is left of one could be a message."""
    if operation not in EXPONENTIALS:
        return weights / weights.sum(-1, keepdim=True).clamp_min(1e-9) if operation in SOFTMAXES else weights
    powers = np.random.default_rng(seed).uniform(-2, 2, (*weights.shape[:-1], 1))
    return torch.from_numpy(np.exp(powers)).to(weights.dtype) * weights


def _change_of_weights(trial: Trial) -> float:
    flow, program = trial.flows[-1], trial.programs[-1]
    _, watched = program.run(trial.sequence(range(16)), watch=list(flow.weights))
    changes = []
    for value, operation in flow.weights.items():
        weights = watched[value].double()
        if operation not in SOFTMAXES:
            weights = weights / weights.sum(-1, keepdim=True).abs().clamp_min(1e-9)
        changes.append(float((weights - weights[:1]).abs().nan_to_num().max()))
    return max(changes)


def attention_alone(trial: Trial) -> str:
    """Stops information that passes between positions by other means than attention.

    One token is changed, and the sums that attention computes over positions keep their old values (activation
    patching, as in Geiger et al. 2021, arXiv 2106.02997, here to test where information may flow). Everything else in a
    transformer is computed position by position. So five things are checked:

    - logits, and the values that attention reads, change only at the position of the changed token
    - scores change only where that token is the query or the key
    - products of weights and values, before they are summed, change only there too, if only the weights of that query
      and that key are new
    - what attention gives to one position changes nothing at any other
    - if no other token attends to it, the token changes logits nowhere else

    The problems are those with the most carries, and others drawn at random. They are computed in double precision.

    Tokens that are the same in all prompts, such as signs, may act on other positions directly, as in positions that
    are counted from a sign. At most CONSTANTS may, because a constant token is a number that the code has written.
    """
    if not all(flow.weights for flow in trial.flows):
        raise Objection("there is no attention")
    right = np.flatnonzero(trial.good[:PRACTICE])  # uniform problems come first
    drawn = np.random.default_rng(trial.seed).permutation(right if len(right) >= MANY else PRACTICE)
    places, acting = 0, 0
    programs = [_in_double_precision(trial, *pair) for pair in zip(trial.programs, trial.flows, strict=True)]
    for which, (program, flow) in enumerate(zip(programs, trial.flows, strict=True)):
        alone: dict[int, set[int]] = {}
        for one, other in ((-1, -2), drawn[:2].tolist(), drawn[2:4].tolist()):
            same_T, given_T = (trial.sequence(place)[: program.graph.tokens] for place in (one, other))
            at = np.random.default_rng(trial.seed).permutation(np.flatnonzero(same_T != given_T))[:PLACES]
            places = max(places, len(at))
            if len(at):
                same_BT = np.repeat(same_T[None], len(at), 0)
                change = _Change(program, flow, same_BT, _with(same_BT, at, given_T[at]), at, flow.carrying)
                _check_token(change, alone)
                _check_summands(change, alone)
                _check_unattended(change)
        acting = max(acting, _acting_constants(trial, program, flow))
        many_BT = trial.sequence(drawn[:MANY][which :: len(programs)])[:, : program.graph.tokens]
        _check_many(trial, program, flow, many_BT, alone)
        _check_positions(trial, program, flow, many_BT)
    if acting > CONSTANTS:
        raise Objection(
            f"{acting} tokens that are the same in all prompts act elsewhere, and not by way of attention; at most "
            f"{CONSTANTS}"
        )
    return f"a token reaches other positions by attention alone, at {places} places"


def _in_double_precision(trial: Trial, program: Program, flow: Flow) -> Program:
    is_single = all(tensor.dtype != "float64" for tensor in program.graph.leaves.values())
    return trial.program(program.graph, other_precision=is_single, replaced=flow.weights)


class _Change:
    """What a change at one position of each sequence does if it does not reach other positions through attention:
    attention's sums over positions stay as they were, except for those that are exchanged.

    Rows are compared at the same place of batches of the same shape: there, equal computations give equal bits.
    """

    def __init__(
        self,
        program: Program,
        flow: Flow,
        same_BT: np.ndarray,
        changed_BT: np.ndarray,
        places_B: np.ndarray,
        watch: Sequence[int] = (),
        exchanged: Callable[[Mapping[int, torch.Tensor]], Mapping[int, torch.Tensor]] = lambda before: {},
    ) -> None:
        """`places_B`: the position of each row that may change. `watch`: values that are needed beside those that
        attention reads. `exchanged` makes sums over positions from the values before the change."""
        self.program, self.flow, self.tokens = program, flow, program.graph.tokens
        self.same_BT, self.changed_BT, self.places_B = same_BT, changed_BT, places_B
        watch = [*flow.mixes, *flow.values, *flow.scores, *watch]
        logits_BAV, self.before = program.run(same_BT, watch)
        self.sums = {mix: self.before[mix] for mix in flow.mixes}
        changed_BAV, self.after = program.run(changed_BT, watch, {**self.sums, **exchanged(self.before)})
        self.logits_elsewhere_B = _logits_elsewhere(logits_BAV, changed_BAV, places_B, self.tokens)

    def is_elsewhere(self, rows: slice = slice(None)) -> bool:
        """Whether logits, or values that attention reads, change at other positions of some rows."""
        parts = (
            (self.before[value][rows], self.after[value][rows])
            for value in self.flow.values
            if value not in self.flow.mixes
        )
        is_local = all(_local(*pair, self.places_B[rows], self.tokens) for pair in parts)
        return bool(self.logits_elsewhere_B[rows].any()) or not is_local

    def scores_elsewhere(self, row: int) -> list[int]:
        """The scores that differ elsewhere than at the query or the key of a row's position."""
        found, place = [], max(0, int(self.places_B[row]))
        for value, axis in zip(self.flow.scores, self.flow.axes.values(), strict=True):
            one, other = (part[value].movedim(axis, -1)[row] for part in (self.before, self.after))
            # a softmax cancels what all scores of a query have in common
            if not _scores_local(one, other, place, self.tokens, cancels=value not in self.flow.weights):
                found.append(value)
        return found


def _check_token(change: _Change, alone: dict[int, set[int]]) -> None:
    """Raises Objection if a token changes more than what is computed at its own position.

    `alone`: for scores, the tokens found so far that change them for queries other than their own.
    """
    for row, place in enumerate(change.places_B.tolist()):
        for value in change.scores_elsewhere(row):
            alone.setdefault(value, set()).add(place)
    for value, axis in zip(change.flow.scores, change.flow.axes.values(), strict=True):
        # with a single query, one token may change everything: that from which the query is made
        queries = change.before[value].movedim(axis, -1).shape[-2]
        if alone.get(value) and (queries >= change.tokens or len(alone[value]) > 1):
            raise Objection(f"the token at {min(alone[value])} changes how other tokens attend to each other")
    if change.is_elsewhere():
        raise Objection("a token changes something elsewhere, and not by way of attention")


def _check_summands(change: _Change, alone: Mapping[int, set[int]]) -> None:
    """Raises Objection if a token changes products of weights and values that do not belong to it. `alone`: as in
    `_check_token`; a token that may change all scores of a single query may change these products, too."""
    flow, graph, tokens = change.flow, change.program.graph, change.tokens
    excused: dict[int, set[int]] = {}
    for score, own in alone.items():
        for value in graph.downstream({score}):
            excused.setdefault(value, set()).update(own)
    sizes = {tuple(graph.blank[weights].movedim(axis, -1).shape[-2:]) for weights, axis in flow.axes.items()}
    extra = max(0, max(keys for _, keys in sizes) - tokens)
    for beside in range(extra + 1):
        weights = {
            value: _exchanged(change.before[value], change.after[value], change.places_B, beside, tokens, axis)
            for value, axis in flow.axes.items()
        }
        _, summands = change.program.run(change.changed_BT, flow.carrying, change.sums | weights)
        for value, (row, place) in product(flow.carrying, enumerate(change.places_B.tolist())):
            one, other = (_unflattened(part[value][row], sizes) for part in (change.before, summands))
            if place not in excused.get(value, ()) and not _summands_local(one, other, place, tokens, extra):
                raise Objection(f"the token at {place} changes how attention reads others, before it sums over them")


def _check_unattended(change: _Change) -> None:
    """Raises Objection if a token to which no other attends changes logits elsewhere: then something else than
    attention weights moves it, such as a matrix in the code."""
    weights = {}
    for value, axis in change.flow.axes.items():
        weights[value] = change.before[value].clone()
        for row, place in enumerate(change.places_B.tolist()):
            keys = weights[value][row].movedim(axis, -1)
            others = torch.arange(keys.shape[-2]) != (place if keys.shape[-2] == change.tokens else -1)
            keys[..., others, place : place + keys.shape[-1] - change.tokens + 1] = 0
    one_BAV, other_BAV = (change.program.run(ids, frozen=weights)[0] for ids in (change.same_BT, change.changed_BT))
    if _logits_elsewhere(one_BAV, other_BAV, change.places_B, change.tokens).any():
        raise Objection("a token to which no other attends changes something elsewhere")


def _check_many(trial: Trial, program: Program, flow: Flow, same_BT: np.ndarray, alone: dict[int, set[int]]) -> None:
    """Exchanges one token in each of many problems, because code may act in some problems alone. Raises Objection."""
    given_BT = np.roll(same_BT, 1, 0)
    order_BT = np.random.default_rng(trial.seed).random(same_BT.shape) * (same_BT != given_BT)
    rows = np.flatnonzero(order_BT.any(1))
    if len(rows):
        places = order_BT[rows].argmax(1)
        changed_BT = _with(same_BT[rows], places, given_BT[rows, places])
        _check_token(_Change(program, flow, same_BT[rows], changed_BT, places), alone)


def _acting_constants(trial: Trial, program: Program, flow: Flow) -> int:
    """How many tokens that are the same in all prompts change something elsewhere, and not by way of attention."""
    same_T = trial.sequence(-1)[: program.graph.tokens]
    places = np.flatnonzero((trial.prompts == trial.prompts[:1]).all(0))
    places = places[places < len(same_T)]
    if not len(places):
        return 0
    same_BT = np.repeat(same_T[None], len(places), 0)
    in_use = trial.in_use
    others = np.random.default_rng(trial.seed).integers(1, len(in_use), len(places))
    changed_BT = _with(same_BT, places, in_use[(np.searchsorted(in_use, same_T[places]) + others) % len(in_use)])
    change = _Change(program, flow, same_BT, changed_BT, places)
    return sum(
        change.is_elsewhere(slice(row, row + 1)) or bool(change.scores_elsewhere(row)) for row in range(len(places))
    )


def _check_positions(trial: Trial, program: Program, flow: Flow, many_BT: np.ndarray) -> None:
    """Raises Objection if what attention gives to one position changes another, and not by way of attention.

    Each position is tried in one problem, and a random one in each of many problems. Sums for single queries belong to
    one position each, and no position may be given more numbers than were counted.
    """
    tokens, single = program.graph.tokens, np.zeros(program.graph.tokens, dtype=np.int64)
    one_T, other_T = (trial.sequence(place)[:tokens] for place in (-1, -2))
    for mix, queries in flow.mixes.items():
        shape = program.graph.shape(mix)
        alone = (((*shape, 1), len(shape), -place) for place in (0, *range(tokens - 1, 0, -1)))
        for view, dim, shift in _ways(shape, tokens) if queries > 1 else alone:
            each = np.arange(view[dim])
            drawn = np.random.default_rng(trial.seed).integers(0, len(each), len(many_BT))
            one = (np.repeat(one_T[None], len(each), 0), np.repeat(other_T[None], len(each), 0), each)
            many = (many_BT, np.roll(many_BT, 1, 0), drawn)
            if all(_apart(program, flow, mix, (view, dim, shift), *problems) for problems in (one, many)):
                single[-shift] += shape.numel() * (queries == 1)
                break
        else:
            raise Objection("what attention gives to one position changes others, and not by way of attention")
    if single[1:].max() > max(flow.carried_in_all, contract.CARRIED_IN_ALL):
        raise Objection(f"attention gives {single[1:].max()} numbers to one position, and fewer to others")


def _ways(shape: Sequence[int], tokens: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """The ways in which a mix may have positions: a view of it, the dimension of the positions, and how many registers
    come before the tokens. A dimension may hold heads and positions."""
    for dim, whole in enumerate(shape):
        for size in range(tokens, tokens + MOST_EXTRA_KEYS + 1):
            heads, rest = divmod(whole, size)
            if heads and not rest:
                for own, pair in ((dim + 1, (heads, size)), (dim, (size, heads)))[:heads]:
                    view = (*shape[:dim], *pair, *shape[dim + 1 :])
                    yield from ((view, own, shift) for shift in range(size - tokens + 1))


def _apart(
    program: Program,
    flow: Flow,
    mix: int,
    way: tuple[tuple[int, ...], int, int],
    same_BT: np.ndarray,
    given_BT: np.ndarray,
    parts_B: np.ndarray,
) -> bool:
    """Whether parts of a mix, if they are taken from the sequences `given_BT`, change one position alone, if the mix
    has positions in this `way` (`_ways`). `parts_B`: which part of each sequence is taken."""
    view, dim, shift = way
    given = program.run(given_BT, [mix])[1][mix]

    def one_part_each(before: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
        here = before[mix].clone(memory_format=torch.contiguous_format)
        for row, part in enumerate(parts_B.tolist()):
            here[row].view(view).select(dim, part).copy_(given[row].reshape(view).select(dim, part))
        return {mix: here}

    change = _Change(program, flow, same_BT, same_BT, parts_B - shift, exchanged=one_part_each)
    return not change.is_elsewhere() and not any(map(change.scores_elsewhere, range(len(parts_B))))


def _with(ids_BT: np.ndarray, places_B: np.ndarray, given_B: np.ndarray) -> np.ndarray:
    """The sequences with another token in each."""
    changed_BT = ids_BT.copy()
    changed_BT[np.arange(len(places_B)), places_B] = given_B
    return changed_BT


def _same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (one == other) | (one.isnan() & other.isnan())


def _logits_elsewhere(one_BAV: torch.Tensor, other_BAV: torch.Tensor, places_B: np.ndarray, tokens: int) -> np.ndarray:
    """For each row, whether logits differ at another position than the row's own."""
    differs_BA = (~_same(one_BAV, other_BAV)).any(-1).numpy()
    return (differs_BA & (np.arange(tokens)[-differs_BA.shape[1] :] != places_B[:, None])).any(-1)


def _local(one_B: torch.Tensor, other_B: torch.Tensor, places_B: np.ndarray, tokens: int) -> bool:
    """Whether all that differs in each row lies, along one dimension, at the place of the row's changed token.

    If attention has keys beside the tokens, the dimension is longer, and all places are moved by the same number.
    """
    rows, *where = torch.argwhere(~_same(one_B, other_B)).T
    for size, column in zip(one_B.shape[1:], where, strict=True):
        moved = (column - torch.from_numpy(places_B)[rows]).unique().tolist()
        if len(moved) == 1 and 0 <= moved[0] <= size - tokens <= MOST_EXTRA_KEYS:
            return True
    return not len(rows)


def _exchanged(
    before_B: torch.Tensor, after_B: torch.Tensor, places_B: np.ndarray, beside: int, tokens: int, axis: int
) -> torch.Tensor:
    """The weights `before_B`, except that those of each row's changed token, as a query and as a key, come from
    `after_B`. `beside`: how many keys come before those of the tokens, such as registers; queries may be shifted too.
    `axis`: the dimension of the keys."""
    mixed_B = before_B.clone()
    for row, place in enumerate(places_B.tolist()):
        one, other = mixed_B[row].movedim(axis, -1), after_B[row].movedim(axis, -1)
        for dim in (-2, -1):
            if one.shape[dim] >= tokens:
                at = place + min(beside, one.shape[dim] - tokens)
                one.select(dim, at).copy_(other.select(dim, at))
    return mixed_B


def _unflattened(one: torch.Tensor, sizes: Collection[tuple[int, ...]]) -> torch.Tensor:
    """The tensor with queries and keys in dimensions of their own. `sizes`: how many of both there may be."""
    found = {math.prod(pair): pair for pair in sizes if min(pair) > 1}
    return one.reshape([size for whole in one.shape for size in found.get(whole, (whole,))])


def _summands_local(one: torch.Tensor, other: torch.Tensor, place: int, tokens: int, extra: int) -> bool:
    """Whether each number that differs belongs to the changed token: as a query or as a key.

    `extra`: how many keys there are beside the tokens. Then the token's key may be at another place than the weights
    that were exchanged, so two keys may change.
    """
    spots = torch.argwhere(~_same(one, other))
    for dim, size in enumerate(one.shape):
        if tokens <= size <= tokens + MOST_EXTRA_KEYS:
            at = spots[:, dim]
            near = at[(at >= place - extra) & (at <= place + size - tokens + extra)]
            most = near.bincount(minlength=2).topk(1 + (extra > 0)).indices if len(near) else near
            spots = spots[~torch.isin(at, most)]
    return not len(spots)


def _scores_local(one: torch.Tensor, other: torch.Tensor, place: int, tokens: int, cancels: bool) -> bool:
    """Whether scores (..., queries, keys) differ only at the query or at the key of the changed token.

    Rows and columns are moved if there are queries and keys beside the tokens. `cancels`: a number that is added to all
    scores of a query does not count.
    """
    first, second = one.double(), other.double()
    finite = first.isfinite() & second.isfinite()
    seen = finite
    if cancels:
        highest = torch.where(finite, torch.maximum(first, second), -torch.inf).amax(-1, keepdim=True)
        seen = finite & (torch.maximum(first, second) > highest - UNSEEN)
    size = torch.where(seen, first.abs(), 0)
    rounding = 1e-11 * size + 1e-15 * size.amax(-1, keepdim=True) + 1e-13 * cancels
    moved = torch.where(seen, second - first, torch.nan)
    queries, keys = one.shape[-2:]
    for key in range(place, place + max(0, keys - tokens) + 1):
        others = torch.arange(keys) != key
        shift = moved[..., others].nanmedian(-1, keepdim=True).values.nan_to_num() if cancels else 0
        alike = _same(first, second) | (finite & ~seen) | ((moved - shift).abs() <= rounding)
        rows = {int(spot[-2]) for spot in torch.argwhere(~alike & others)}
        own = queries >= tokens and rows <= set(range(place, place + max(0, queries - tokens) + 1))
        if not rows or (own and len(rows) == 1):
            return True
    return False
