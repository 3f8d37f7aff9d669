"""The problems, and the greedy loop that the harness owns.

The loop never stops early: MAX_OUTPUT_LEN tokens are generated, and `decode` reads what it needs of them. The model's
process gives logits; the largest is found here, and so is whether an answer is right.

Shapes: B sequences, T tokens, V tokens in the vocabulary.
"""

import random
from collections.abc import Sequence

import numpy as np

from lab.smallest_adder.contract import DIGITS
from lab.smallest_adder.sandbox import Child, Misbehaved

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
BATCH = 512


def problems(seed: int, count: int = 10_000) -> list[Pair]:
    """The 10 edge cases and `count` pairs drawn uniformly."""
    drawn = random.Random(seed)
    return [*EDGE_CASES, *((drawn.randint(0, LARGEST), drawn.randint(0, LARGEST)) for _ in range(count))]


def generate(model: Child, ids_BT: np.ndarray, length: int, vocabulary: int) -> np.ndarray:
    """Greedy continuations (B, length) of prompts. Raises Misbehaved where there are none."""
    written = []
    for start in range(0, len(ids_BT), BATCH):
        rows_BT = ids_BT[start : start + BATCH]
        for _ in range(length):
            logits_BTV = checked(model.logits("last", rows_BT)[:, None], (len(rows_BT), 1, vocabulary))
            rows_BT = np.concatenate([rows_BT, logits_BTV.argmax(-1)], axis=1)
        written.append(rows_BT[:, ids_BT.shape[1] :])
    return np.concatenate(written)


def continues(model: Child, prompts_BT: np.ndarray, drafts_BT: np.ndarray) -> np.ndarray:
    """Whether each draft is what a causal model writes after its prompt (B,), in one pass. Raises Misbehaved."""
    length = drafts_BT.shape[1]
    confirmed = []
    for start in range(0, len(prompts_BT), BATCH):
        drafted_BT = drafts_BT[start : start + BATCH]
        ids_BT = np.concatenate([prompts_BT[start : start + BATCH], drafted_BT[:, :-1]], axis=1)
        logits_BTV = model.logits("every", ids_BT)
        vocabulary = logits_BTV.shape[-1]
        checked(logits_BTV, (*ids_BT.shape, vocabulary))
        confirmed.append((logits_BTV[:, -length:].argmax(-1) == drafted_BT).all(-1))
    return np.concatenate(confirmed)


def checked(logits_BTV: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    if logits_BTV.shape != shape:
        raise Misbehaved(
            f"logits of shape {logits_BTV.shape} came where {shape} was asked: (batch, tokens, VOCAB_SIZE)"
        )
    if np.isnan(logits_BTV).any():
        raise Misbehaved("logits are not numbers (nan)")
    return logits_BTV


def right(pairs: Sequence[Pair], answers: Sequence[int | str]) -> int:
    return sum(type(answer) is int and answer == a + b for (a, b), answer in zip(pairs, answers, strict=True))
