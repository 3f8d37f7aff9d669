"""The model as the harness uses it: logits, causality, the greedy loop.

Shapes: B sequences, T tokens, V tokens in the vocabulary.
"""

import numpy as np

from lab.smallest_adder.drafts import Drafts
from lab.smallest_adder.harness import continues
from lab.smallest_adder.sandbox import plain
from lab.smallest_adder.trial import Objection, Trial, Unusable

PLAIN = 1_000
"""Problems that are always done token by token."""


def logits(trial: Trial) -> str:
    """Stops models that remember, and logits of a wrong shape: the same alone, in a batch, and asked again.

    Any of the usual ways to take ids and to return logits will do, for all positions or the last alone.
    """
    way = trial.model.ask("probe", prompt=trial.prompts[0].tolist())
    rows_BT = trial.prompts[trial.some(8)]
    shape = (len(rows_BT), trial.vocabulary)
    together = trial.model.logits("last", rows_BT)
    if together.shape != shape:
        raise Unusable(f"logits of shape {together.shape}; {shape} was expected: (batch, VOCAB_SIZE)")
    alone = np.concatenate([trial.model.logits("last", row[None]) for row in rows_BT[::-1]])[::-1]
    if not alike(together, alone):
        raise Objection("the logits of a prompt depend on what was computed before it or beside it")
    return f"takes {plain(way)}; the same logits alone and in a batch"


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether rows of logits (B, V), computed in different shapes, name the same tokens and are mostly `close`.

    A step in the model may enlarge the rounding of some.
    """
    near = [close(row, also) for row, also in zip(one, other, strict=True)]
    return bool((one.argmax(-1) == other.argmax(-1)).all()) and 4 * sum(near) >= 3 * len(near)


def close(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether logits (..., V) are the same but for rounding, told by how far the ten largest lie apart.

    A model may put tokens that it never writes at -1e9: what is close on that scale could still differ in every digit.
    """
    top = -np.sort(-one, axis=-1)[..., :10]
    lowest = np.where(np.isfinite(top), top, top[..., :1])[..., -1:]
    with np.errstate(invalid="ignore"):
        tolerance = 1e-4 * np.maximum(1, top[..., :1] - lowest) + 1e-5 * np.abs(one)
        near = np.abs(one - other) <= tolerance
    return bool(((near & np.isfinite(other)) | (one == other)).all())


def causality(trial: Trial) -> str:
    """Stops looking ahead, at any length that the harness asks for: what follows a position never changes its logits.

    A causal mask does just that.
    """
    places = trial.some(2)
    whole_BT = np.concatenate([trial.prompts[places], trial.generate(places)], axis=1)
    other_BT = np.random.default_rng(trial.seed).integers(0, trial.vocabulary, whole_BT.shape)
    start, end = trial.prompts.shape[1], whole_BT.shape[1]
    for row_T, other_T in zip(whole_BT, other_BT, strict=True):
        # In a batch of the same shape as the one below: rounding is the same, which a model's steps could enlarge.
        first_TV = trial.model.logits("every", np.repeat(row_T[None], end - 1, axis=0))[0]
        if len(first_TV) == 1:
            return "the model gives the last position's logits alone, and nothing follows it"
        if len(first_TV) != end:
            raise Objection(f"logits for {len(first_TV)} positions came of {end} tokens")
        swapped_BT = np.stack([np.concatenate([row_T[:cut], other_T[cut:]]) for cut in range(1, end)])
        swapped_BTV = trial.model.logits("every", swapped_BT)
        for cut in range(1, end):
            if not close(first_TV[:cut], swapped_BTV[cut - 1, :cut]):
                raise Objection(f"tokens from position {cut} on change logits before it")
        for cut in range(start, end):
            shorter_TV = trial.model.logits("every", row_T[None, :cut])[0]
            if not alike(first_TV[start - 1 : cut], shorter_TV[start - 1 :]):
                raise Objection(f"the logits of {cut} tokens are others when more tokens follow")
    trial.causal = True
    return f"at all {end} positions, and at lengths {start} to {end}"


def generation(trial: Trial) -> str:
    """Stops nothing by itself: every problem through the greedy loop, in an order of its own.

    Where the model is causal, most problems take one pass over the answer that is to be expected. A model that reads
    such an answer instead of working it out does not write it in the plain loop: the first problems, done both ways,
    must come out alike.
    """
    order = trial.some(len(trial.pairs))
    plainly, rest = (order, order[:0]) if trial.plain_loop or not trial.causal else np.split(order, [PLAIN])
    trial.outputs = np.zeros((len(order), trial.length), dtype=np.int64)
    trial.outputs[plainly] = trial.generate(plainly)
    answers = trial.decode(trial.outputs[plainly].tolist())
    good = [place for place, answer in zip(plainly, answers, strict=True) if answer == sum(trial.pairs[place])]
    one_pass = np.zeros(len(order), dtype=bool)
    drafts = Drafts([trial.pairs[place] for place in good], trial.outputs[good]) if len(good) > PLAIN // 2 else None
    if drafts and drafts.complete and len(rest):
        drafted = drafts.of(trial.pairs)
        one_pass = continues(trial.model, trial.prompts, drafted)
        if (trial.outputs[plainly] != drafted[plainly])[one_pass[plainly]].any():
            raise Objection("an answer that the model does not write was confirmed by it when it saw it")
        trial.outputs[rest] = drafted[rest]
    left = rest[~one_pass[rest]]
    if len(left):
        trial.outputs[left] = trial.generate(left)
    trial.answers = trial.decode(trial.outputs.tolist())
    whole = len(plainly) + len(left)
    return f"{trial.length} tokens for each of {len(order):,} problems, {whole:,} of them token by token"
