"""How far a model from scratch gets with an answer, found in one forward pass instead of one for each digit.

Greedy generation writes a token if it has the highest logit after the tokens before it. So it writes the right answer
if that holds for each token of the right answer after the right tokens before it; and up to its first wrong token, it
writes what this finds. What it would write after that stays unknown.

If the model has a window, a pass is cut into pieces: what it does at one place depends only on the places that its
layers can see from there. A sum of 1,000 digits then costs ten times one of 100, and not a hundred times. Running
totals are cut into pieces of a few rows.

Shapes: T tokens of a row, P pieces, K tokens of a piece.
"""

from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence

from lab.models.grid_places import EVERYWHERE
from lab.models.loading import ScratchRun
from lab.models.scratch import NumberLlama
from lab.numbers.sampling import Problem
from lab.text.examples import encode_prompt

_PLACES, _ROWS = 50, 4
"""Places of a piece, or rows if ids have rows. Shorter pieces overlap more; the work in longer ones grows with their
square."""


def right_tokens(run: ScratchRun, problems: Sequence[Problem]) -> list[int | None]:
    """For each problem, how many tokens of its answer are right before the first wrong one; None if none is wrong.

    The end of the answer is its last token. Tokens count in the order in which they are written, so if the ones digit
    comes first, this is the place of the first wrong digit.
    """
    return [_right_tokens(run, problem) for problem in problems]


def _right_tokens(run: ScratchRun, problem: Problem) -> int | None:
    prompt = encode_prompt(" ".join(run.notation.question(problem)), run.tokenizer)
    answer = run.tokenizer.convert_tokens_to_ids(run.notation.answer(problem))
    answer = [*answer, run.tokenizer.eos_token_id]  # type: ignore[misc]
    said = likeliest(run.model, torch.tensor([*prompt, *answer]))[len(prompt) - 1 :]
    return next((place for place, token in enumerate(answer) if said[place] != token), None)


@torch.inference_mode()
def likeliest(model: NumberLlama, ids_T: torch.Tensor) -> list[int]:
    """The token that the model would write after each token of a row."""
    ids_T = ids_T.to(model.device)
    if not model.config.window or model.config.stick_breaking:
        return model(ids_T[None]).logits[0].argmax(-1).tolist()
    positions_T, segments_T = model.positions(ids_T[None])[0], model.segments(ids_T[None])[0]
    reach, grid = model.config.window * len(model.model.layers), model.config.grid
    cut_T, size = (positions_T // grid, _ROWS) if grid else (positions_T, _PLACES)
    everywhere_T = (cut_T == EVERYWHERE) & bool(grid)
    starts = range(0, int(cut_T.max()) + 1, size)
    pieces = [everywhere_T | ((cut_T >= start - reach) & (cut_T < start + size + reach)) for start in starts]
    kept_PK = pad_sequence([piece.nonzero()[:, 0] for piece in pieces], True, -1)  # padding comes last, unseen
    said_PK = model(ids_T[kept_PK], position_ids=positions_T[kept_PK], segment_ids=segments_T[kept_PK]).logits.argmax(
        -1
    )
    own_PK = cut_T[kept_PK] // size == torch.arange(len(starts), device=model.device)[:, None]
    own_PK &= kept_PK >= 0
    said_T = torch.empty_like(ids_T)
    said_T[kept_PK[own_PK]] = said_PK[own_PK]
    return said_T.tolist()
