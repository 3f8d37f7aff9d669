"""Additions of two 10-digit integers as rows of token ids, one id per digit, ones first, for the smallest adder.

A row is `encode(a, b)` and the first ten digits of the sum. At each of its last eleven tokens, a digit of the answer is
predicted. The two numbers lie twelve tokens apart, with a zero on either side of each, so that "+" and "=" need no ids
of their own. `encode` and `decode` are also what a trained submission exports, word for word.

A batch is a pure function of (seed, step).
Shapes: B problems, D decimal places (10), T tokens of a row (34), A digits of an answer (11).
"""

import numpy as np

from lab.numbers.philox import philox

PLACES = 10
ANSWERS = 11
"""The largest number of digits of a sum."""


def encode(a: int, b: int) -> list[int]:
    a_digits = [int(digit) for digit in f"{a:010}"]
    b_digits = [int(digit) for digit in f"{b:010}"]
    return [0, *a_digits[::-1], 0, 0, *b_digits[::-1], 0]


def decode(tokens: list[int]) -> int:
    return sum(token * 10**place for place, token in enumerate(tokens))


def rows(a_BD: np.ndarray, b_BD: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (B, T) and answers (B, A) of numbers that are given by their digits, ones first."""
    answers_BA = np.zeros((len(a_BD), ANSWERS), dtype=np.int64)
    for place in range(PLACES):
        answers_BA[:, place] += a_BD[:, place] + b_BD[:, place]
        answers_BA[:, place + 1] = answers_BA[:, place] // 10
        answers_BA[:, place] %= 10
    numbers = [np.pad(number_BD, ((0, 0), (1, 1))) for number_BD in (a_BD, b_BD)]
    return np.concatenate([*numbers, answers_BA[:, :-1]], axis=1), answers_BA


def batch(split: str, seed: int, step: int, size: int, complements: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows and answers of problems.

    One problem in four is uniform. In the other three, some digits are changed: those of b to 9 minus those of a, those
    of a to 0, or those of b to 0. The rate of changed digits is drawn for each problem, uniformly from 0 to
    `complements`. Without changes, only one digit sum in ten would be a nine, through which a carry passes. If
    `complements` is 0, all problems are uniform.
    """
    words = philox("adder", split, seed, step).random_raw(size * (PLACES + 1)).view(np.uint32)
    first, second = words[: size * PLACES], words[size * PLACES : 2 * size * PLACES]
    a_BD = (first % 10).astype(np.int64).reshape(size, PLACES)
    b_BD = (second % 10).astype(np.int64).reshape(size, PLACES)
    if complements:
        # the rest of a word, without its digit, is a second draw: below 2**32 / 10, in steps that are fine enough
        coins_BD = (second // 10).reshape(size, PLACES) / (2**32 / 10)
        rates_B1 = words[2 * size * PLACES :: 2][:, None] / 2**32 * complements
        chosen_BD = coins_BD < rates_B1
        b_BD[1::4] = np.where(chosen_BD, 9 - a_BD, b_BD)[1::4]
        a_BD[2::4] = np.where(chosen_BD, 0, a_BD)[2::4]
        b_BD[3::4] = np.where(chosen_BD, 0, b_BD)[3::4]
    return rows(a_BD, b_BD)
