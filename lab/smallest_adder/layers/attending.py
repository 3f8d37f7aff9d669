"""Whether a model is a transformer: attention moves information between positions, and nothing else does.

A recorded pass is looked at, not the source, so attention may be written in any way.

Shapes: T tokens, V tokens in the vocabulary.
"""

from typing import Any

import numpy as np

from lab.smallest_adder.layers.loop import close
from lab.smallest_adder.recording import Array, Recording
from lab.smallest_adder.sandbox import Child, Misbehaved, plain
from lab.smallest_adder.trial import COLLAPSED, Objection, Trial

MOST_EXTRA_KEYS = 4

MOST_CONSTANTS = 24
"""Different numbers in the code of a pass; a hand-written block has about ten."""

PLACES = 12
"""Positions at which a token is changed, of one problem."""


def self_attention(trial: Trial) -> str:
    """Stops models without attention, and those that do as well when attention looks everywhere alike.

    A softmax whose number of keys grows with the number of tokens is attention, whoever wrote it. A model that adds
    must find the digits that it adds.
    """
    whole = _sequence(trial, 0)
    short, long = whole[: len(whole) - 2], whole
    offsets = [
        {keys - len(ids) for keys in record(trial.model, ids, [])[0].keys if 0 <= keys - len(ids) <= MOST_EXTRA_KEYS}
        for ids in (short, long)
    ]
    trial.extra_keys = sorted(set.intersection(*offsets))
    if not trial.extra_keys:
        raise Objection("no softmax over the tokens is computed: no self-attention")
    trial.model.ask("ablate", extra=trial.extra_keys)
    share = trial.accuracy(trial.some(64))
    trial.model.ask("ablate", extra=[])
    if share > COLLAPSED:
        raise Objection(f"{share:.0%} is right with attention that looks everywhere alike: it does not add")
    return f"a softmax over all tokens; without it {share:.0%} is right"


def fixed_computation(trial: Trial) -> str:
    """Stops tables, Python arithmetic and rounding in forward: the same operations run, whatever the tokens are.

    Two problems must take the same steps with the same constants, tensors must come from parameters, buffers, ids and
    torch's own functions, and no activation is rounded to integers. A transformer is such a computation: its tokens
    are data and never decide what is computed.
    """
    one, other = (record(trial.model, _sequence(trial, place), trial.extra_keys)[0] for place in (-1, -2))
    if one.views:
        raise Objection(f"reads the bits of {plain(one.views[0])}: one number could hide several")
    if one.foreign:
        raise Objection(f"computes with {plain(one.foreign[0])} that is no parameter or buffer: a weight in the code")
    if one.steps != other.steps:
        step = next(
            (pair for pair in zip(one.steps, other.steps, strict=False) if pair[0] != pair[1]), ("more", "fewer")
        )
        raise Objection(f"what is computed depends on the tokens: {plain(step[0], 60)} or {plain(step[1], 60)}")
    rounded = [one for one, also in zip(one.rounded, other.rounded, strict=True) if one != also]
    if rounded:
        raise Objection(f"rounds activations ({plain(rounded[0]).split()[0]}): integer arithmetic, no transformer's")
    if len(one.constants) > MOST_CONSTANTS:
        raise Objection(f"{len(one.constants)} different numbers in the code of a pass; at most {MOST_CONSTANTS}")
    return f"the same {len(one.steps):,} operations with {len(one.constants)} constants for other tokens"


def attention_alone(trial: Trial) -> str:
    """Stops arithmetic beside attention, even where it stops working once it notices that attention was tampered with.

    One token is changed in a process that has not seen the others, while attention's sums over positions stay what
    they were: then attention's inputs, and the logits, change at that token's position and at no other. What a
    transformer does elsewhere it does position by position.
    """
    drawn = np.random.default_rng(trial.seed)
    before_T, other_T = _sequence(trial, -1), _sequence(trial, -2)
    before, logits_TV = record(trial.model, before_T, trial.extra_keys)
    plainly_TV = trial.model.logits("every", before_T[None])[0]
    # nobody reads those of the prompt, where a step that is sharp between digits may stand right on its edge
    written = slice(-trial.outputs.shape[1], None)
    if not close(plainly_TV[written], logits_TV[written]):
        raise Objection("the logits are others when the pass is watched")
    differ = np.flatnonzero(before_T != other_T)
    for place in drawn.permutation(differ)[:PLACES]:
        changed_T = before_T.copy()
        changed_T[place] = other_T[place]
        after, changed_TV = record(trial.witness, changed_T, trial.extra_keys, before.mixes)
        here = {int(place) + extra for extra in trial.extra_keys}
        if not len(before.scores) == len(after.scores) or not len(before.values) == len(after.values):
            raise Objection("attention is computed otherwise for other tokens")
        for one, also in zip(before.scores, after.scores, strict=True):
            if not _scores_local(_numbers(one), _numbers(also), here):
                raise Objection(f"the token at {place} changes how others attend to others")
        for one, also in zip(before.values, after.values, strict=True):
            if not _local(_numbers(one), _numbers(also), here):
                raise Objection(f"the token at {place} changes what attention reads elsewhere, before it attends")
        kept = np.arange(len(logits_TV)) != (place if len(logits_TV) > 1 else place - len(before_T) + 1)
        if not _same(logits_TV[kept], changed_TV[kept]).all():
            raise Objection(f"the token at {place} changes logits elsewhere, and not by way of attention")
    return f"a token reaches other positions by attention alone, at {min(PLACES, len(differ))} places"


def record(child: Child, ids_T: np.ndarray, extra: list[int], mixes: Any = ()) -> tuple[Recording, np.ndarray]:
    """A pass and its logits (positions, V). Raises Misbehaved."""
    sent = child.ask("record", ids=ids_T.tolist(), extra=extra, mixes=list(mixes))
    try:
        return Recording(**sent["recording"]), np.array(sent["logits"], dtype=np.float64)
    except (TypeError, ValueError, KeyError) as error:
        raise Misbehaved("sent no account of its pass") from error


def _sequence(trial: Trial, place: int) -> np.ndarray:
    """The longest that the model is ever given for a problem (T,)."""
    return np.concatenate([trial.prompts[place], trial.outputs[place, :-1]])


def _numbers(array: Any) -> np.ndarray:
    shape, numbers = Array(*array)
    return np.array(numbers, dtype=np.float64).reshape(shape)


def _same(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether numbers are equal, to the bit: with the same shapes, torch computes the same in each place."""
    return (one == other) | (np.isnan(one) & np.isnan(other))


def _local(one: np.ndarray, other: np.ndarray, here: set[int]) -> bool:
    """Whether all that differs lies, along one dimension, at the given places."""
    if one.shape != other.shape:
        return False
    places = np.argwhere(~_same(one, other))
    return not len(places) or any(set(column.tolist()) <= here for column in places.T)


def _scores_local(one: np.ndarray, other: np.ndarray, here: set[int]) -> bool:
    """Whether all that differs in (..., queries, keys) is one query or the given keys.

    But for a number that is added to all of a query's scores, which its softmax takes away.
    """
    if one.shape != other.shape:
        return False
    keys = [key for key in range(one.shape[-1]) if key not in here]
    with np.errstate(invalid="ignore"):
        first, second = (scores[..., keys] - scores[..., keys].max(-1, keepdims=True) for scores in (one, other))
        alike = _same(first, second) | (np.abs(first - second) <= 1e-6 * (1 + np.abs(one[..., keys])))
    return len(set(np.argwhere(~alike)[:, -2].tolist())) <= 1
