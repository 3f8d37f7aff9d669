"""How far a model from scratch gets with an answer, found in one forward pass instead of one for each digit.

Greedy generation writes the token that has the highest logit after the tokens before it. So it writes the right answer
if each token of the right answer has the highest logit after the right tokens before it. If not, one pass finds what
generation writes up to its first wrong token; what it would write after that stays unknown.

If the model has a window, a pass is cut into pieces: what the model does at one place depends only on the places that
its layers can see from there. A sum of 1,000 digits then costs ten times as much as one of 100, not a hundred times.
Running totals are cut along rows and places.

Shapes: T tokens of a row, P pieces, K tokens of a piece, D directions of position ids.
"""

import ctypes
from collections.abc import Iterator, Sequence

import torch
from torch.nn.utils.rnn import pad_sequence

from experiments.shared.erasing import of_some, reach_of
from lab.models.loading import ScratchRun
from lab.numbers.additions import STRATA, addition
from lab.numbers.sampling import Problem
from lab.parts.grid_ids import EVERYWHERE, rows_and_places
from lab.scratch.llama import NumberLlama
from lab.text.examples import encode_prompt

_PLACES, _PLACES_OF_GRID = 50, 8
"""Places of a piece; with two directions, rows and places. Shorter pieces overlap more; the work in longer ones grows
with their square."""
_TOGETHER = 16
"""Pieces of a forward pass."""


def right_tokens(run: ScratchRun, problems: Sequence[Problem]) -> list[int | None]:
    """For each problem, how many tokens of its answer are right before the first wrong one; None if none is wrong.

    The end of the answer is its last token. Tokens count in the order in which they are written, so if the ones digit
    comes first, this is the place of the first wrong digit.
    """
    _keep_freed_memory()
    return [_right_tokens(run, problem) for problem in problems]


def _keep_freed_memory() -> None:
    """Lets glibc keep the memory of tensors of up to 32 MB between passes. It would give it back to the system, and
    each pass would have to fetch its pages again: two to four times as many page faults."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_MMAP_THRESHOLD, 2**25)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h."""


def share_right(run: ScratchRun, digits: int, sums: int, seed: int = 0) -> float:
    """The share of right answers to sums of this length, which are drawn from the four strata in turn."""
    strata = list(STRATA)
    asked = [addition(strata[index % len(strata)], digits, seed, index) for index in range(sums)]
    return right_tokens(run, asked).count(None) / sums


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
    reach = reach_of(model)
    if reach is None:
        return model(ids_T[None]).logits[0].argmax(-1).tolist()
    given = model.part_inputs(ids_T[None])
    positions_T = model.positions(ids_T[None])[0]
    said_T = torch.empty_like(ids_T)
    for kept_PK, own_PK in pieces(positions_T, reach, "grid_ids" in model.parts):
        logits_PKV = model(**of_some(ids_T, given, kept_PK)).logits
        said_T[kept_PK[own_PK]] = logits_PKV.argmax(-1)[own_PK]
    return said_T.tolist()


def pieces(positions_T: torch.Tensor, reach: int, grid: bool) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The tokens of some pieces at a time (P, K), and which of them the piece is for; the others are there because
    those see them."""
    size = _PLACES_OF_GRID if grid else _PLACES
    at_DT = rows_and_places(positions_T) if grid else positions_T[None]
    everywhere_DT = (at_DT == EVERYWHERE) & grid
    piece_TD = at_DT.T // size
    kept, own = [], []
    for piece_D in piece_TD.unique(dim=0):
        start_D1 = piece_D[:, None] * size
        near_DT = everywhere_DT | ((at_DT >= start_D1 - reach) & (at_DT < start_D1 + size + reach))
        kept.append(near_DT.all(0).nonzero()[:, 0])
        own.append((piece_TD[kept[-1]] == piece_D).all(-1))
        if len(kept) == _TOGETHER:
            yield pad_sequence(kept, True, -1), pad_sequence(own, True)  # padding comes last, unseen
            kept, own = [], []
    if kept:
        yield pad_sequence(kept, True, -1), pad_sequence(own, True)
