"""What a submission will probably generate, told from what it has generated: an answer then takes one pass, not many.

A causal model that is given its own greedy continuation predicts each token of it, so one pass over prompt and draft
tells whether the draft is what the greedy loop would have written (as in speculative decoding, Leviathan et al. 2023,
arXiv 2211.17192). A draft that is not, is thrown away.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from lab.smallest_adder.contract import DIGITS
from lab.smallest_adder.harness import Pair

PLACES = DIGITS + 2


class Drafts:
    """Each generated token as a function of one, or two neighbouring, digits of the sum."""

    def __init__(self, pairs: Sequence[Pair], outputs: np.ndarray) -> None:
        """Learned from right answers (problems, tokens)."""
        self._tables: list[tuple[np.ndarray, tuple[int, ...]]] = []
        digits = _digits(pairs)
        for tokens in outputs.T:
            for places in chain([()], _places()):
                key = _key(digits, places)
                table = np.zeros(100, dtype=np.int64)
                table[key] = tokens
                if (table[key] == tokens).all():
                    self._tables.append((table, places))
                    break
        self.complete = len(self._tables) == outputs.shape[1]

    def of(self, pairs: Sequence[Pair]) -> np.ndarray:
        """(problems, tokens). Only where `complete`."""
        digits = _digits(pairs)
        return np.stack([table[_key(digits, places)] for table, places in self._tables], axis=1)


def _places() -> Iterator[tuple[int, ...]]:
    yield from ((place,) for place in range(PLACES))
    yield from ((place, place + 1) for place in range(PLACES - 1))


def _key(digits: np.ndarray, places: Sequence[int]) -> np.ndarray:
    return sum((digits[:, place] * 10**k for k, place in enumerate(places)), np.zeros(len(digits), dtype=np.int64))


def _digits(pairs: Sequence[Pair]) -> np.ndarray:
    return np.array(pairs, dtype=np.int64).sum(1)[:, None] // 10 ** np.arange(PLACES) % 10
