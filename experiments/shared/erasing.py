"""Generation without the tokens that the window hides, so that the cost of a token does not depend on the length of the
trace.

With a window, a token sees in each layer only the tokens whose position ids are at most `model.window` from its own. So
what the last layer computes for a token depends only on tokens within a distance of window x layers. All other tokens
can be dropped before the token is computed; the logits are the same as with the whole row. In a trace whose lines have
the ids of their places (lab/scratch/trace_places.py), the tokens that remain are the few lines around the current one
and the digits of the operands at these places; in running totals (lab/scratch/grid_places.py), a few rows and places.

There is no cache: for each new token, the tokens that are still visible are read again. `read` counts them.

Shapes: B unfinished rows, K tokens so far in a row, S the largest number of tokens that are still visible in a row.
"""

from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.engines.choosing import Chooser
from lab.engines.plain import Clock, PlainEngine
from lab.errors import ModelError
from lab.scratch.llama import NumberLlama
from lab.scratch.position_encodings import distances


class ErasingEngine(PlainEngine):
    """Like `PlainEngine`, for models from scratch with a window. The completions are the same."""

    def __init__(self, model: NumberLlama, tokenizer: PreTrainedTokenizerBase, batch_size: int) -> None:
        """Raises ModelError if the model has no window, or has heads that ignore it."""
        super().__init__(model, tokenizer, batch_size, by_group=True)
        if not model.config.window or model.config.stick_breaking:
            raise ModelError("dropping what no head can see needs model.window, and no head with stick_breaking")
        self.number_model = model.eval()
        self.reach = model.config.window * len(model.model.layers)
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
        parts = [self._seen(torch.tensor(row, device=self.model.device)) for row in rows]
        tokens_BS, positions_BS, segments_BS = (
            pad_sequence([part[index] for part in parts], batch_first=True) for index in range(3)
        )
        ends_B = torch.tensor([len(part[0]) - 1 for part in parts], device=self.model.device)
        # padding comes after the last token of a row, which does not see it
        logits_BSV = self.number_model(tokens_BS, position_ids=positions_BS, segment_ids=segments_BS).logits
        self.read += sum(len(part[0]) for part in parts)
        self.whole_rows += sum(map(len, rows))
        return logits_BSV[torch.arange(len(rows)), ends_B].argmax(-1).tolist()

    def _seen(self, row_K: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The tokens that are still visible from the last token of a row, with their position ids and segments."""
        model = self.number_model
        positions_K, segments_K = model.positions(row_K[None])[0], model.segments(row_K[None])[0]
        distances_K = distances(positions_K[None, -1:], positions_K[None], model.config.circle, model.config.grid)[0, 0]
        seen_K = distances_K <= self.reach
        return row_K[seen_K], positions_K[seen_K], segments_K[seen_K]
