"""Generation without the tokens that the window hides, so that the cost of a token does not depend on the length of the
trace.

With a window, a token sees in each layer only the tokens whose position ids are within its reach (`parts.window`). So
what the last layer computes for a token depends only on tokens within a distance of reach x layers. All other tokens
can be dropped before the token is computed; the logits are the same as with the whole row. In a trace whose lines have
the ids of their places (lab/parts/trace_places.py), the tokens that remain are the few lines around the current one
and the digits of the operands at these places; in running totals (lab/parts/grid_ids.py), a few rows and places.

There is no cache: for each new token, the tokens that are still visible are read again. `read` counts them.

Shapes: B unfinished rows, K tokens so far in a row, S the largest number of tokens that are still visible in a row.
"""

from collections.abc import Sequence
from typing import Any

import torch
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.engines.choosing import Chooser
from lab.engines.plain import Clock, PlainEngine
from lab.errors import ModelError
from lab.scratch.llama import NumberLlama
from lab.trees.layout import PartInputs


class ErasingEngine(PlainEngine):
    """Like `PlainEngine`, for models from scratch with a window. The completions are the same."""

    def __init__(self, model: NumberLlama, tokenizer: PreTrainedTokenizerBase, batch_size: int) -> None:
        """Raises ModelError if the model has no window, or has heads that ignore it."""
        super().__init__(model, tokenizer, batch_size, by_group=True)
        self.number_model = model.eval()
        if (reach := reach_of(model)) is None:
            raise ModelError("what no head sees is dropped: this needs parts.window and no parts.stick_breaking")
        self.reach = reach
        self.read = 0
        """How many tokens the forward passes have read so far."""
        self.whole_rows = 0
        """How many they would have read if every pass had read whole rows."""

    def _rows(
        self, prompts: Sequence[Sequence[int]], budget: int, clock: Clock, choosers: Sequence[Chooser] = ()
    ) -> list[list[int]]:
        rows = [list(prompt) for prompt in prompts]
        running = list(range(len(rows)))
        for _ in range(budget):
            for index, token in zip(running, self._next([rows[index] for index in running]), strict=True):
                rows[index].append(token)
            running = [index for index in running if rows[index][-1] not in self.ends]
            clock.passed()
            if not running:
                break
        return [row[len(prompt) :] for row, prompt in zip(rows, prompts, strict=True)]

    def _next(self, rows: Sequence[Sequence[int]]) -> list[int]:
        """The most likely token after each row, computed from those tokens of the row that are still visible."""
        seen = [self._seen(torch.tensor(row, device=self.model.device)) for row in rows]
        longest = max(len(kept) for _, kept, _ in seen)
        arguments = [of_some(row, given, padded(kept, longest)[None]) for row, kept, given in seen]
        together = {name: torch.cat([one[name] for one in arguments]) for name in ("input_ids", "position_ids")}
        inputs = [one["part_inputs"] for one in arguments]
        parts = {
            kind: {name: torch.cat([one[kind][name] for one in inputs]) for name in given}
            for kind, given in inputs[0].items()
        }
        # padding comes after the last token of a row, which does not see it
        logits_BSV = self.number_model(**together, part_inputs=parts, use_cache=False).logits
        ends_B = torch.tensor([len(kept) - 1 for _, kept, _ in seen], device=self.model.device)
        self.read += int(ends_B.sum()) + len(ends_B)
        self.whole_rows += sum(map(len, rows))
        return logits_BSV[torch.arange(len(rows)), ends_B].argmax(-1).tolist()

    def _seen(self, row_K: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, PartInputs]:
        """A row, which of its tokens are still visible from the last one, and what parts must know about them all."""
        given = self.number_model.part_inputs(row_K[None])
        assert given.position_ids is not None
        ids_1K = given.position_ids
        distances_K = self.number_model.positions_of(ids_1K[:, -1:], ids_1K).distances_BQK[0, 0]
        return row_K, (distances_K <= self.reach).nonzero()[:, 0], given


def reach_of(model: NumberLlama) -> int | None:
    """How far away, in position ids, what the last layer computes for a token may come from; None for no limit."""
    if "window" not in model.parts or "stick_breaking" in model.parts:
        return None
    return model.parts["window"].config.reach * len(model.model.layers)


def padded(kept_S: torch.Tensor, longest: int) -> torch.Tensor:
    """Repeats the last token."""
    return torch.cat([kept_S, kept_S[-1:].expand(longest - len(kept_S))])


def of_some(row_K: torch.Tensor, given: PartInputs, kept_PS: torch.Tensor) -> dict[str, Any]:
    """The arguments of a forward pass over some tokens of a row, P such passes at once.

    Args:
        row_K: the tokens of the row.
        given: what parts must know about them all.
        kept_PS: which tokens are read.
    """
    assert given.position_ids is not None
    parts = {kind: {name: part[0][kept_PS] for name, part in inputs.items()} for kind, inputs in given.parts.items()}
    return {"input_ids": row_K[kept_PS], "position_ids": given.position_ids[0][kept_PS], "part_inputs": parts}
