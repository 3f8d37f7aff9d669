"""The problems: ten edge cases and pairs drawn uniformly."""

import random

from lab.smallest_adder.contract import DIGITS

Pair = tuple[int, int]

LARGEST = 10**DIGITS - 1

EDGE_CASES: tuple[Pair, ...] = (
    (0, 0),
    (0, 1),
    (1, 0),
    (0, LARGEST),
    (LARGEST, 0),
    (LARGEST, 1),
    (1, LARGEST),
    (LARGEST, LARGEST),
    (5555555555, 4444444445),
    (1234567890, 9876543210),
)

PUBLIC_SEED = 2025


def problems(seed: int, count: int = 10_000) -> list[Pair]:
    """The 10 edge cases and `count` pairs drawn uniformly."""
    drawn = random.Random(seed)
    return [*EDGE_CASES, *((drawn.randint(0, LARGEST), drawn.randint(0, LARGEST)) for _ in range(count))]


def practice(seed: int, count: int) -> list[Pair]:
    """Problems that do not count: uniform ones, sums whose digits add up to nines (a carry would run through them), and
    short numbers."""
    drawn = random.Random(f"practice {seed}")
    pairs = [(drawn.randint(0, LARGEST), drawn.randint(0, LARGEST)) for _ in range(count)]
    for length in (*range(1, DIGITS + 1), *[DIGITS] * 14):
        a, b = drawn.randrange(10**length), drawn.randrange(10**length)
        pairs += [(a, b), (a, LARGEST - a)]
    return pairs
