"""Whether `encode` only writes digits down and `decode` only reads them: no arithmetic is done in either.

Both are judged by what they did on all problems. A token of the prompt must be a function of at most two of the twenty
digits, one to one, so that no sum and no carry is in it; a decimal place of the answer, of one generated token.
"""

from collections.abc import Sequence

import numpy as np

from lab.smallest_adder.contract import DIGITS
from lab.smallest_adder.harness import Pair

PLACES = DIGITS + 2
"""Decimal places of an answer that are looked at; a right one has at most eleven."""


def digits_of(pairs: Sequence[Pair]) -> np.ndarray:
    """(problems, 20): the digits of a, from the ones up, then those of b."""
    powers = 10 ** np.arange(DIGITS)
    numbers = np.array(pairs, dtype=np.int64)
    return (numbers[:, :, None] // powers % 10).reshape(len(pairs), 2 * DIGITS)


def digit_name(place: int) -> str:
    return f"digit {place % DIGITS} of {'ab'[place // DIGITS]}"


def neighbours(pairs: Sequence[Pair]) -> list[tuple[int, int, Pair]]:
    """(which pair, which digit, the pair with that digit changed), for each digit and its nine other values."""
    changed = []
    for which, pair in enumerate(pairs):
        for place in range(2 * DIGITS):
            power = 10 ** (place % DIGITS)
            now = pair[place // DIGITS] // power % 10
            for digit in range(10):
                if digit != now:
                    new = list(pair)
                    new[place // DIGITS] += (digit - now) * power
                    changed.append((which, place, (new[0], new[1])))
    return changed


def reach(prompts: np.ndarray, changed: Sequence[tuple[int, int, Pair]], after: np.ndarray) -> list[set[int]]:
    """Of each token of the prompt, the digits that were seen to change it."""
    found: list[set[int]] = [set() for _ in range(prompts.shape[1])]
    for (which, place, _), row in zip(changed, after, strict=True):
        for position in np.flatnonzero(prompts[which] != row):
            found[position].add(place)
    return found


def prompt_objection(pairs: Sequence[Pair], prompts: np.ndarray, depends: Sequence[set[int]]) -> str:
    """Why the prompts hold more than their digits, or nothing."""
    digits = digits_of(pairs)
    for position, places in enumerate(depends):
        if len(places) > 2:
            return f"token {position} depends on {len(places)} digits; digits are copied one or two to a token"
        key = sum((digits[:, place] * 10**k for k, place in enumerate(sorted(places))), np.zeros(len(pairs), int))
        tokens = prompts[:, position]
        by_key = np.unique(np.stack([key, tokens], 1), axis=0)
        named = " and ".join(digit_name(place) for place in sorted(places)) or "no digit"
        if len(np.unique(by_key[:, 0])) < len(by_key):
            return f"token {position} is not a function of {named} alone"
        if places and len(np.unique(by_key[:, 1])) < len(by_key):
            return f"token {position} does not tell {named}: it is made of them, not a copy"
    seen = set().union(*depends) if depends else set()
    missing = [place for place in range(2 * DIGITS) if place not in seen]
    return f"no token depends on {digit_name(missing[0])}" if missing else ""


def places_of(answers: Sequence[int]) -> np.ndarray:
    """(answers, PLACES): decimal places from the ones up; the last is all that lies above."""
    values = np.array([min(max(answer, -1), 10**15) for answer in answers], dtype=np.int64)
    low = values[:, None] // 10 ** np.arange(PLACES - 1) % 10
    return np.concatenate([low, (values // 10 ** (PLACES - 1))[:, None]], axis=1)


def substitutions(outputs: np.ndarray, bases: int, seed: int) -> list[tuple[int, int, list[int]]]:
    """(which row, which token, the row with that token changed) to every token that was generated in its place."""
    changed = []
    drawn = np.random.default_rng(seed).permutation(len(outputs))[:bases]
    for which in drawn:
        for position in range(outputs.shape[1]):
            for token in np.unique(outputs[:, position]):
                if token != outputs[which, position]:
                    row = outputs[which].tolist()
                    row[position] = int(token)
                    changed.append((int(which), position, row))
    return changed


def answer_objection(outputs: np.ndarray, answers: Sequence[int], depends: Sequence[set[int]]) -> str:
    """Why the answers hold more than the generated tokens; `depends` has the tokens that change each place."""
    values = places_of(answers)
    for place, positions in enumerate(depends):
        if len(positions) > 1:
            needed = ", ".join(map(str, sorted(positions)))
            return f"decimal place {place} of the answer depends on the generated tokens {needed}; one is allowed"
        tokens = outputs[:, min(positions)] if positions else np.zeros(len(outputs), int)
        by_token = np.unique(np.stack([tokens, values[:, place]], 1), axis=0)
        if len(np.unique(by_token[:, 0])) < len(by_token):
            source = f"generated token {min(positions)}" if positions else "nothing"
            return f"decimal place {place} of the answer is not a function of {source} alone"
    return ""
