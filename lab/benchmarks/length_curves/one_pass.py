"""How far a model from scratch gets with an answer, found in one forward pass instead of one for each digit.

Greedy generation writes a token if it has the highest logit after the tokens before it. So it writes the right answer
if that holds for each token of the right answer after the right tokens before it; and up to its first wrong token, it
writes what is found so. What it would write after that stays unknown. An answer of 1,000 digits takes one pass of 3,000
tokens instead of 1,000 passes.

Shapes: B rows, T tokens, V words.
"""

from collections.abc import Sequence

import torch

from lab.models.scratch_runs import ScratchRun
from lab.numbers.sampling import Problem
from lab.text.examples import encode_prompt

_LARGEST = 20_000_000
"""Pairs of tokens in a batch, which memory grows with."""


def right_tokens(run: ScratchRun, problems: Sequence[Problem]) -> list[int | None]:
    """For each problem, how many tokens of its answer are right before the first wrong one; None if none is wrong.

    The end of the answer is its last token. Tokens count in the order in which they are written, so if the ones digit
    comes first, this is the place of the first wrong digit.
    """
    rows = [_row(run, problem) for problem in problems]
    most = max(1, _LARGEST // max(len(prompt) + len(answer) for prompt, answer in rows) ** 2)
    batches = [rows[start : start + most] for start in range(0, len(rows), most)]
    return [found for batch in batches for found in _right(run, batch)]


def _row(run: ScratchRun, problem: Problem) -> tuple[list[int], list[int]]:
    prompt = encode_prompt(" ".join(run.notation.question(problem)), run.tokenizer)
    answer = run.tokenizer.convert_tokens_to_ids(run.notation.answer(problem))
    return prompt, [*answer, run.tokenizer.eos_token_id]  # type: ignore[misc]


@torch.inference_mode()
def _right(run: ScratchRun, rows: Sequence[tuple[list[int], list[int]]]) -> list[int | None]:
    texts = [torch.tensor([*prompt, *answer]) for prompt, answer in rows]
    padding = float(run.tokenizer.pad_token_id)  # type: ignore[arg-type]
    ids_BT = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=padding)
    likeliest_BT = run.model(ids_BT.to(run.model.device)).logits.argmax(-1).tolist()
    return [
        next((place for place, token in enumerate(answer) if said[len(prompt) - 1 + place] != token), None)
        for (prompt, answer), said in zip(rows, likeliest_BT, strict=True)
    ]
