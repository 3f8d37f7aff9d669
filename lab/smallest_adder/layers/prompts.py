"""What `encode` may do: write digits down, not add them.

An honest `encode` does this in any order, code and grouping by two, with signs, padding and a first token."""

import random

import numpy as np

from lab.smallest_adder import codecs
from lab.smallest_adder.contract import DIGITS, LONGEST_PROMPT
from lab.smallest_adder.harness import EDGE_CASES
from lab.smallest_adder.trial import Objection, Trial, Unusable


def encode_bounds(trial: Trial) -> str:
    """Stops prompts beyond 35 tokens, outside the vocabulary, or of a length that tells something.

    Padded numbers always have the same length.
    """
    prompts = trial.encode(trial.pairs)
    for (a, b), prompt in zip(trial.pairs, prompts, strict=True):
        if not 1 <= len(prompt) <= LONGEST_PROMPT:
            raise Unusable(f"encode({a}, {b}) has {len(prompt)} tokens; 1 to {LONGEST_PROMPT}")
        if any(not 0 <= token < trial.vocabulary for token in prompt):
            raise Unusable(f"encode({a}, {b}) has tokens outside 0 to {trial.vocabulary - 1}")
        if len(prompt) != len(prompts[0]):
            raise Unusable(f"encode({a}, {b}) has {len(prompt)} tokens, others {len(prompts[0])}: pad the numbers")
    trial.prompts = np.array(prompts, dtype=np.int64)
    return f"{trial.prompts.shape[1]} tokens for each of {len(prompts):,} problems, all below {trial.vocabulary}"


def encode_determinism(trial: Trial) -> str:
    """Stops an encode that remembers earlier problems, or leaves an operand out.

    Writing digits down depends on nothing but the digits.
    """
    again = trial.encode(trial.pairs)
    if again != trial.prompts.tolist():
        raise Objection("the same operands, encoded again in another order, gave other tokens")
    for name, powers in (("a", (1, 0)), ("b", (0, 1))):
        bases = trial.pairs[:100]
        others = [((a + powers[0]) % 10**DIGITS, (b + powers[1]) % 10**DIGITS) for a, b in bases]
        if trial.encode(others) == trial.encode(bases):
            raise Objection(f"the prompt does not depend on {name}")
    return "the same tokens twice, in two orders; they depend on both operands"


def encode_copies(trial: Trial) -> str:
    """Stops sums and carries in the prompt: each token is a one-to-one code of at most two digits.

    Digits are changed one by one, and a token may change with two of them at most, on sums of nines too, where a carry
    would run through all places. Copies of digits, in any order and code, are such tokens.
    """
    drawn = random.Random(trial.seed)
    bases = list(EDGE_CASES)
    for _ in range(24):
        a = drawn.randrange(10**DIGITS)
        # Sums of nines: one digit more, and a carry runs through all places above it.
        bases += [(a, 10**DIGITS - 1 - a), (a, drawn.randrange(10**DIGITS))]
    changed = codecs.neighbours(bases)
    before = np.array(trial.encode(bases))
    after = np.array(trial.encode([pair for *_, pair in changed]))
    depends = codecs.reach(before, changed, after)
    pairs = [*trial.pairs, *bases, *(pair for *_, pair in changed)]
    objection = codecs.prompt_objection(pairs, np.concatenate([trial.prompts, before, after]), depends)
    if objection:
        raise Objection(objection)
    return f"each token copies at most two digits, on {len(pairs):,} pairs"
