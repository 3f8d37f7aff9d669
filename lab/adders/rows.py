"""Sums as rows of token ids, by an adder's templates. A batch is a pure function of (seed, step). Does not import
torch.

Shapes: B problems, D decimal places, T tokens of a row (the prompt and all of the answer but its last token), A tokens
of an answer.
"""

from collections.abc import Sequence

import numpy as np

from lab.adders.problems import DIGITS, Pair
from lab.adders.spec import Adder
from lab.numbers.philox import philox

Item = int | str


def digits_of(pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray]:
    """The digits (B, D) of both numbers, ones first."""
    powers_D = 10 ** np.arange(DIGITS)
    return tuple(np.array(numbers)[:, None] // powers_D % 10 for numbers in zip(*pairs, strict=True))  # type: ignore[return-value]


def prompts(adder: Adder, pairs: Sequence[Pair]) -> np.ndarray:
    """The prompts (problems, tokens) of an adder."""
    a_BD, b_BD = digits_of(pairs)
    return _tokens(adder, adder.prompt, {"a": a_BD, "b": b_BD})


def rows(adder: Adder, a_BD: np.ndarray, b_BD: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (B, T) and answers (B, A) of numbers that are given by their digits, ones first."""
    sums_BD = np.pad(a_BD + b_BD, ((0, 0), (0, 1)))
    for place in range(DIGITS):
        sums_BD[:, place + 1] += sums_BD[:, place] // 10
        sums_BD[:, place] %= 10
    given = {"a": a_BD, "b": b_BD, "s": sums_BD}
    prompts_BT, answers_BA = (_tokens(adder, template, given) for template in (adder.prompt, adder.answer))
    return np.concatenate([prompts_BT, answers_BA[:, :-1]], axis=1), answers_BA


def _tokens(adder: Adder, template: Sequence[Item], digits: dict[str, np.ndarray]) -> np.ndarray:
    ids_V, count = np.array(adder.digits), len(digits["a"])

    def column(item: Item) -> np.ndarray:
        if isinstance(item, int):
            return np.full(count, item)
        number_BD, place = digits[item[0]], int(item[1:])
        return ids_V[number_BD[:, place] if place < number_BD.shape[1] else np.zeros(count, dtype=int)]

    return np.stack([column(item) for item in template], axis=1)


def batch(
    adder: Adder, split: str, seed: int, step: int, size: int, complements: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and answers of problems.

    One problem in four is uniform. In the other three, some digits are changed: those of b to 9 minus those of a, those
    of a to 0, or those of b to 0. The rate of changed digits is drawn for each problem, uniformly from 0 to
    `complements`. Without changes, only one digit sum in ten would be a nine, through which a carry passes. If
    `complements` is 0, all problems are uniform.
    """
    words = philox("adder", split, seed, step).random_raw(size * (DIGITS + 1)).view(np.uint32)
    first, second = words[: size * DIGITS], words[size * DIGITS : 2 * size * DIGITS]
    a_BD = (first % 10).astype(np.int64).reshape(size, DIGITS)
    b_BD = (second % 10).astype(np.int64).reshape(size, DIGITS)
    if complements:
        # the rest of a word, without its digit, is a second draw: below 2**32 / 10, in steps that are fine enough
        coins_BD = (second // 10).reshape(size, DIGITS) / (2**32 / 10)
        rates_B1 = words[2 * size * DIGITS :: 2][:, None] / 2**32 * complements
        chosen_BD = coins_BD < rates_B1
        b_BD[1::4] = np.where(chosen_BD, 9 - a_BD, b_BD)[1::4]
        a_BD[2::4] = np.where(chosen_BD, 0, a_BD)[2::4]
        b_BD[3::4] = np.where(chosen_BD, 0, b_BD)[3::4]
    return rows(adder, a_BD, b_BD)
