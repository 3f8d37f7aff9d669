"""Generation with a local model.

This engine writes the same tokens as `generate` of transformers does over unsorted batches. It is several times faster,
for four reasons. Requests are sorted by group and length before they are divided into batches. The beginning that
prompts share is computed once, and the rest without padding. Each request has its own budget, and leaves the batch soon
after it is finished. A CPU puts bfloat16 weights in order once, instead of in every product
(`lab.trees.packed_weights`).

Some architectures cannot be read in this way (Bloom, GPT-J, GPT-Neo and Gemma 2, whose attention takes other masks, and
recurrent ones). This is tried once, with two short prompts. They are left to `generate` of transformers, and write the
same tokens as they would alone.

Shapes: B requests in a batch (fewer as they finish), V words in the vocabulary.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.engines.choosing import Chooser
from lab.engines.engine import GREEDY, Completion, ModelEngine, Request, Sampling, never
from lab.engines.plain import UnpaddedEngine
from lab.errors import ModelError
from lab.models.swaps import swap_of
from lab.text.examples import encode_prompt
from lab.trees.cache import RaggedCache
from lab.trees.layout import row_inputs
from lab.trees.packed_weights import packed_weights
from lab.trees.paths import attend_along_paths, attention_of, reads_trees
from lab.trees.prefill import PromptReader

_MOSTLY_RUNNING = 0.85
"""Finished rows are removed from the cache as soon as at most this share of the rows is still running. They are not
removed one by one, because each removal copies the cache."""
_ROOM = 256
"""At first, the cache has room for at most this many new tokens of each request. Budgets may be thousands of tokens,
but are rarely used up."""
_TRIED = ([2, 3, 4, 5, 3, 2], [2, 3, 5, 4])
"""Two short texts that begin alike, as token ids that every vocabulary has."""
_ALIKE = 5e-2
"""How far logits that are computed in two ways may differ, as a share of the largest; bfloat16 needs most of it."""
_DECODED_AGAIN = 32
"""A new token may change how the last few tokens decode, so at least this many are decoded again. (Fewer would do.)"""


class LocalEngine(ModelEngine):
    """The engine described above. A request gets one token from each forward pass; reading a prompt is one pass."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, batch_size: int) -> None:
        super().__init__(model, tokenizer, batch_size)
        self._plain = None if reads_alike(model) else UnpaddedEngine(model, tokenizer, batch_size)
        self.format = swap_of(model).format
        self.window: int | None = getattr(model.config, "sliding_window", None)

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
    ) -> Iterator[dict[int, Completion]]:
        """See `Engine`. Each completion is returned when it is finished. A batch that is partly done is computed again
        as a whole."""
        if self._plain:
            self._plain.ends = self.ends
            for found in self._plain.generate(requests, sampling, done):
                self.row_passes, self.written = self._plain.row_passes, self._plain.written
                yield found
            return
        prompts = [encode_prompt(request.prompt, self.tokenizer) for request in requests]
        reader = PromptReader(self.model, [request.group for request in requests], prompts)
        with packed_weights(self.model):
            for batch in self._sorted(requests, prompts):
                if done >= set(batch):
                    continue
                for finished in self._complete(self._rows(batch, requests, prompts, sampling), reader):
                    wanted = {row.index: self._completion(row) for row in finished if row.index not in done}
                    if wanted:
                        yield wanted

    def _rows(
        self, batch: Sequence[int], requests: Sequence[Request], prompts: Sequence[list[int]], sampling: Sampling
    ) -> list["_Row"]:
        choosers = [Chooser(sampling, i) if sampling.temperature else None for i in batch]
        return [_Row(i, requests[i], prompts[i], one, self.decode) for i, one in zip(batch, choosers, strict=True)]

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """See `BatchingEngine`."""
        if self._plain:
            return self._plain.batches(requests)
        return self._sorted(requests, [encode_prompt(request.prompt, self.tokenizer) for request in requests])

    def _sorted(self, requests: Sequence[Request], prompts: Sequence[list[int]]) -> list[list[int]]:
        """Indices in batches of nearly equal size, sorted by group and then by length."""

        def like(i: int) -> tuple[str, int, int]:
            return requests[i].group, requests[i].max_tokens, len(prompts[i])

        order = sorted(range(len(requests)), key=like)
        count = -(-len(order) // self.batch_size)
        bounds = [len(order) * k // max(1, count) for k in range(count + 1)]
        return [order[start:end] for start, end in itertools.pairwise(bounds)]

    @torch.inference_mode()
    def _complete(self, rows: list["_Row"], reader: PromptReader) -> Iterator[list["_Row"]]:
        """Yields the rows that finish in the same forward pass.

        The time of a pass is divided equally among the rows that were not finished then.
        """
        began = time.perf_counter()
        longest = max(len(row.prompt) for row in rows)
        budget = max(row.request.max_tokens for row in rows)
        cache = RaggedCache(len(rows), longest + min(budget, _ROOM), longest + budget)
        logits_BV = reader.read([row.index for row in rows], cache)
        while True:
            choices = _choices(rows, logits_BV)  # waits for the GPU, so the time includes the whole pass
            unfinished = [row for row in rows if not row.reason]
            share = (time.perf_counter() - began) / len(unfinished)
            began = time.perf_counter()
            for row, token in zip(rows, choices, strict=True):
                if not row.reason:
                    row.seconds += share
                    row.write(token, self.ends)
            self.row_passes += len(unfinished)
            self.written += len(unfinished)
            finished = [row for row in unfinished if row.reason]
            if finished:
                paused = time.perf_counter()
                yield finished
                began += time.perf_counter() - paused  # the caller's time is not part of the cost
            kept = [index for index, row in enumerate(rows) if not row.reason]
            if not kept:
                return
            if len(kept) <= _MOSTLY_RUNNING * len(rows):
                rows = [rows[index] for index in kept]
                cache.select(kept)
            logits_BV = self._forward(rows, cache)

    def _forward(self, rows: list["_Row"], cache: RaggedCache) -> torch.Tensor:
        """The logits (B, V) after the last token of each row."""
        lengths = [len(row.tokens) - 1 for row in rows]  # a finished row computes its last token again
        if self.window and max(lengths) >= self.window:
            what = f"some layers see only {self.window} tokens back, but a prompt with its answer is longer"
            raise ModelError(f"{what}; serve it (vllm serve) and use engine.kind=openai, or smaller budgets")
        counts = [1] * len(rows)
        inputs = cache.place(lengths, counts)
        inputs |= row_inputs(self.model, [row.tokens for row in rows], counts, written=True)
        ids_B1 = torch.tensor([row.tokens[-1:] for row in rows], device=self.model.device)
        return self.model(input_ids=ids_B1, **inputs).logits[:, -1]

    def _completion(self, row: "_Row") -> Completion:
        written = row.tokens[len(row.prompt) :]
        said = written[:-1] if row.reason == "stop" else written
        text = self.whole(row.prompt, self.decode(said))
        return Completion(text, len(row.prompt), len(written), row.seconds, row.reason)


def reads_alike(model: Any) -> bool:
    """Lets a model attend along paths, and tells whether it computes the same for prompts in a tree, and then for one
    more token after its cache, as for each text alone. If not, its attention is as it was."""
    usual = attention_of(model)
    attend_along_paths(model)
    if getattr(model.config, "model_type", "llama") == "llama" or (reads_trees(model) and _same_in_trees(model)):
        return True
    if attention_of(model) != usual:
        model.set_attn_implementation(usual)
    return False


@torch.inference_mode()
def _same_in_trees(model: Any) -> bool:
    texts = _TRIED
    try:
        cache = RaggedCache(len(texts), 8, 8)
        reader = PromptReader(model, [""] * len(texts), [text[:-1] for text in texts])
        first_BV = reader.read(range(len(texts)), cache)
        inputs = cache.place([len(text) - 1 for text in texts], [1] * len(texts))
        last_BV = model(torch.tensor([text[-1:] for text in texts], device=model.device), **inputs).logits[:, 0]
        alone_B2V = torch.stack([model(torch.tensor([text], device=model.device)).logits[0, -2:] for text in texts])
    except Exception:  # of any layer
        return False
    scale = alone_B2V.masked_fill(alone_B2V.isinf(), 0).float().abs().max()
    gap_B2V = (torch.stack([first_BV, last_BV], 1) - alone_B2V).float().nan_to_num(0)
    return bool(gap_B2V.abs().max() <= _ALIKE * scale)


def _choices(rows: list["_Row"], logits_BV: torch.Tensor) -> list[int]:
    """The next token of each row."""
    choosers = [row.chooser for row in rows if row.chooser]
    if not choosers:
        return logits_BV.max(-1).indices.tolist()  # argmax takes several times as long in bfloat16 on a CPU
    return [int(chooser(logits_V)) for chooser, logits_V in zip(choosers, logits_BV, strict=True)]


class _Row:
    """A request in progress."""

    def __init__(
        self,
        index: int,
        request: Request,
        prompt: list[int],
        chooser: "Chooser | None",
        decode: Callable[[list[int]], str],
    ) -> None:
        self.index, self.request, self.prompt, self.chooser = index, request, prompt, chooser
        self.tokens = [*prompt]
        """The prompt and what has been written so far."""
        self.seconds, self.reason = 0.0, ""
        self._text = None if request.decided is never else _GrowingText(decode)

    def write(self, token: int, ends: Set[int]) -> None:
        """Adds a token that the model chose; `ends` end a text."""
        self.tokens.append(token)
        if token in ends:
            self.reason = "stop"
        elif self._text and self.request.decided(self._text.add(token)):
            self.reason = "decided"
        elif len(self.tokens) - len(self.prompt) == self.request.max_tokens:
            self.reason = "length"


class _GrowingText:
    """The text of a growing sequence of tokens, without decoding all of them for each new token."""

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        self._settled, self._latest = "", []

    def add(self, token: int) -> str:
        self._latest.append(token)
        latest = self._decode(self._latest)
        whole = self._settled + latest
        if len(self._latest) >= 2 * _DECODED_AGAIN:
            head, tail = self._latest[:-_DECODED_AGAIN], self._latest[-_DECODED_AGAIN:]
            first = self._decode(head)
            if first + self._decode(tail) == latest:  # if not, the cut splits a character; try after the next token
                self._settled, self._latest = self._settled + first, tail
        return whole
