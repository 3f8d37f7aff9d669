"""What `decode` may do: read digits, not add them; and whether the sums are right."""

import numpy as np

from lab.smallest_adder import codecs
from lab.smallest_adder.trial import Objection, Trial

QUALIFYING = 0.99


def decode_honesty(trial: Trial) -> str:
    """Stops arithmetic left to decode, and sums that reach it by another way than tokens.

    Generated tokens are changed one by one: each decimal place of the answer may depend on one of them, and is a
    function of it. Reading digits in any order and code is.
    """
    if trial.decode(trial.outputs.tolist()) != trial.answers:
        raise Objection("the same tokens, decoded again in another order, gave other answers")
    strange = [answer for answer in trial.answers if type(answer) is str]
    if strange and trial.right + len(strange) == len(trial.pairs) and not trial.right:
        raise Objection(f"decode {strange[0]}")
    sums = {a + b for a, b in trial.pairs}
    garbage = np.random.default_rng(trial.seed).integers(0, trial.vocabulary, (200, trial.length))
    hits = [answer for answer in trial.decode(garbage.tolist()) if type(answer) is int and answer > 10**4]
    if any(answer in sums for answer in hits):
        raise Objection("random tokens decode to the sum of a problem")
    good = [place for place in range(len(trial.pairs)) if trial.is_right(place)]
    if not good:
        return "no right answer to look at"
    outputs = trial.outputs[good]
    answers = [answer for answer in (trial.answers[place] for place in good) if type(answer) is int]
    changed = codecs.substitutions(outputs, bases=24, seed=trial.seed)
    depends: list[set[int]] = [set() for _ in range(codecs.PLACES)]
    before = codecs.places_of(answers)
    decoded = trial.decode([row for *_, row in changed])
    for (which, position, _), answer in zip(changed, decoded, strict=True):
        if type(answer) is int:
            for place in np.flatnonzero(codecs.places_of([answer])[0] != before[which]):
                depends[place].add(position)
    objection = codecs.answer_objection(outputs, answers, depends)
    if objection:
        raise Objection(objection)
    return "each decimal place is read from one generated token"


def accuracy(trial: Trial) -> str:
    """Stops what cannot add: 99 % of all problems, to the digit, is the challenge's bar."""
    share = trial.right / len(trial.pairs)
    figure = f"{trial.right:,} of {len(trial.pairs):,} right ({share:.2%})"
    if share < QUALIFYING:
        wrong = next((k for k in range(len(trial.pairs)) if not trial.is_right(k)), 0)
        (a, b), answer = trial.pairs[wrong], trial.answers[wrong]
        raise Objection(f"{figure}; at least 99% is asked; {a} + {b} became {answer}")
    return figure
