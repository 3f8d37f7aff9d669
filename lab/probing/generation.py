"""What a model writes while it is changed: an intervention at every step of an answer, not only on a given one.

    from lab.probing.generation import generate

    generate(subject, ["The larger of 3.5 and 2.7 is"], hooks=[heads(20, torch.zeros_like)])

Each step computes the whole row again, without a cache, so that a hook sees all tokens at every step. The most likely
token is written.

Shapes: B rows of the same length, T tokens so far, V words.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from lab.errors import TaskError
from lab.probing.batching import batches, check_positive
from lab.probing.bridge import Hook, Subject
from lab.probing.contrast import Tokens
from lab.probing.readings import reader_of

Hooks: TypeAlias = Sequence[Hook] | Callable[[torch.Tensor], Sequence[Hook]]
"""Hooks of every step, or a function of the tokens so far (B, T) that returns the hooks of the next step."""


def generate(
    subject: Subject, prompts: Sequence[str], hooks: Hooks = (), tokens: int = 16, batch_size: int = 64
) -> list[str]:
    """What the model writes after each prompt, up to its end token, with hooks.

    Args:
        prompts: texts; for a model from scratch, its words with spaces between them.
        tokens: the largest number of tokens that are written.

    Raises TaskError for no prompts, and the errors of `Subject.logits`.
    """
    if not prompts:
        raise TaskError("there are no prompts to continue")
    reader = reader_of(subject)
    rows = [reader.reading(prompt).ids for prompt in prompts]
    written = generate_tokens(subject, rows, hooks, tokens, batch_size)
    joint = "" if hasattr(reader, "_around") else " "
    return [joint.join(reader.words(ids)) for ids in written]


@torch.inference_mode()
def generate_tokens(
    subject: Subject, rows: Sequence[Sequence[int]], hooks: Hooks = (), tokens: int = 16, batch_size: int = 64
) -> list[list[int]]:
    """Like `generate`, for rows of tokens. What is written does not include the end token."""
    check_positive("tokens", tokens)
    found: dict[int, list[int]] = {}
    for length in sorted(set(map(len, rows))):  # rows of one length need no padding
        alike = [index for index, row in enumerate(rows) if len(row) == length]
        for some in batches(len(alike), batch_size):
            group = alike[some]
            written = _written(subject, torch.tensor([list(rows[index]) for index in group]), hooks, tokens)
            found |= dict(zip(group, written, strict=True))
    return [found[index] for index in range(len(rows))]


def _written(subject: Subject, tokens_BT: torch.Tensor, hooks: Hooks, count: int) -> list[list[int]]:
    start, end, done_B = tokens_BT.shape[1], getattr(subject.writer, "end", None), torch.zeros(len(tokens_BT)).bool()
    for _ in range(count):
        step = hooks(tokens_BT) if callable(hooks) else hooks
        next_B = subject.logits(Tokens(tokens_BT), step)[:, -1].argmax(-1).cpu()
        tokens_BT = torch.cat([tokens_BT, next_B[:, None]], 1)
        done_B |= next_B == (-1 if end is None else end)
        if bool(done_B.all()):
            break
    answers = tokens_BT[:, start:].tolist()
    return [row[: row.index(end)] if end in row else row for row in answers]
