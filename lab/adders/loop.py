"""The challenge's loop: an answer grows by the token with the highest logit, and the model reads all that there is so
far, again at each step. Does not import torch."""

from collections.abc import Callable

import numpy as np

from lab.adders.spec import Adder


def read_answers(adder: Adder, tokens_BA: np.ndarray) -> list[int | None]:
    """The sums that the generated tokens (problems, tokens) stand for; None if they do not fit the template."""
    value_of = {token: digit for digit, token in enumerate(adder.digits)}
    answers: list[int | None] = []
    for tokens in tokens_BA.tolist():
        found: int | None = 0
        for item, token in zip(adder.answer, tokens, strict=True):
            if (isinstance(item, int) and token != item) or (isinstance(item, str) and token not in value_of):
                found = None
                break
            if isinstance(item, str):
                found += value_of[token] * 10 ** int(item[1:])
        answers.append(found)
    return answers


def generate(
    next_logits: Callable[[np.ndarray], np.ndarray], prompts_BT: np.ndarray, length: int, at_once: int
) -> np.ndarray:
    """The tokens (problems, length) that a model writes.

    Args:
        next_logits: gives for ids (B, T) the logits (B, V) after the last token.
        prompts_BT: the prompts, all of the same length.
        length: how many tokens to write; the loop never stops early.
        at_once: problems in a batch.

    Where a logit is not a number, the token is -1 from there on.
    """
    written = []
    for start in range(0, len(prompts_BT), at_once):
        ids_BT = prompts_BT[start : start + at_once]
        broken_B = np.zeros(len(ids_BT), dtype=bool)
        found = []
        for _ in range(length):
            logits_BV = next_logits(ids_BT)
            broken_B = broken_B | np.isnan(logits_BV).any(-1)
            next_B = np.nan_to_num(logits_BV).argmax(-1)
            found.append(np.where(broken_B, -1, next_B))
            ids_BT = np.concatenate([ids_BT, next_B[:, None]], axis=1)
        written.append(np.stack(found, axis=1))
    return np.concatenate(written)
