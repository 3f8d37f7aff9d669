"""The problems of the challenge: ten edge cases, and pairs drawn uniformly. Does not import torch."""

import random

Pair = tuple[int, int]
DIGITS = 10
LARGEST = 10**DIGITS - 1
PUBLIC_SEED = 2025
QUALIFYING = 0.99
EDGE_CASES: tuple[Pair, ...] = (
    *((0, 0), (0, 1), (1, 0), (0, LARGEST), (LARGEST, 0), (LARGEST, 1), (1, LARGEST), (LARGEST, LARGEST)),
    *((5555555555, 4444444445), (1234567890, 9876543210)),
)


def problems(seed: int, count: int = 10_000) -> list[Pair]:
    """The 10 edge cases and `count` pairs drawn uniformly."""
    return [*EDGE_CASES, *drawn(random.Random(seed), count)]


def drawn(generator: random.Random, count: int) -> list[Pair]:
    return [(generator.randint(0, LARGEST), generator.randint(0, LARGEST)) for _ in range(count)]


def few_wrong(right: int, n: int) -> bool:
    """Whether 99 % are right: 9,910 of 10,010. (The challenge also says 9,900, which is 98.9 %.)"""
    return right >= QUALIFYING * n
