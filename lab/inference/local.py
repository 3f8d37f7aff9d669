"""Generation with a local model.

Three things make it several times faster than `generate` over unsorted batches, with the same tokens:
requests of a group stay together, like lengths in it; their prompts are read as prefix trees, without padding;
and each request has a budget of its own and leaves the batch soon after it is finished.

Shapes: B requests of a batch (fewer as they finish), L tokens of the longest so far, T nodes of a tree, V words of
the vocabulary.
"""

import itertools
import time
from collections.abc import Iterator, Sequence, Set
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.inference.cache import layers, roomy_cache
from lab.inference.engine import GREEDY, Completion, Request, Sampling
from lab.inference.tokenizing import TokenizingEngine
from lab.models.prefix_tree import PrefixTree
from lab.text.examples import encode_prompt

_TOKENS_A_TREE = 2048
_MOSTLY_RUNNING = 0.85
"""Share of a batch below which what is finished is cut out of the cache; cutting copies it."""


class LocalEngine(TokenizingEngine):
    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, batch_size: int) -> None:
        self.model, self.tokenizer, self.batch_size = model.eval(), tokenizer, batch_size
        ends: Any = model.generation_config.eos_token_id if model.generation_config else None
        own: Any = tokenizer.eos_token_id
        self.ends = {own, *(ends if isinstance(ends, list) else [ends])}
        """Chat models end a turn with tokens that only the generation config names."""

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
    ) -> Iterator[dict[int, Completion]]:
        """See `Engine`; a completion comes when it is finished. A batch that is not all done is computed as a whole."""
        prompts = [encode_prompt(request.prompt, self.tokenizer) for request in requests]
        for batch in self._batches(requests, prompts):
            if done >= set(batch):
                continue
            choosers = [_Chooser(sampling, i) for i in batch] if sampling.temperature else []
            for finished in self._complete([requests[i] for i in batch], [prompts[i] for i in batch], choosers):
                wanted = {batch[row]: completion for row, completion in finished.items() if batch[row] not in done}
                if wanted:
                    yield wanted

    def _batches(self, requests: Sequence[Request], prompts: Sequence[list[int]]) -> list[list[int]]:
        """Indices in batches of like size; groups stay together, and short requests in them."""

        def like(i: int) -> tuple[str, int, int]:
            return requests[i].group, requests[i].max_tokens, len(prompts[i])

        order = sorted(range(len(requests)), key=like)
        count = -(-len(order) // self.batch_size)
        bounds = [len(order) * k // max(1, count) for k in range(count + 1)]
        return [order[start:end] for start, end in itertools.pairwise(bounds)]

    @torch.inference_mode()
    def _complete(
        self, requests: list[Request], prompts: list[list[int]], choosers: list["_Chooser"]
    ) -> Iterator[dict[int, Completion]]:
        """Completions by row, those that end with the same token at a time; greedy without choosers.

        The time of a step is shared out among the requests that still run.
        """
        began = time.perf_counter()
        written: list[list[int]] = [[] for _ in requests]
        seconds = [0.0] * len(requests)
        running, unfinished = list(range(len(requests))), set(range(len(requests)))
        logits_BV, cache, mask_BL = self._read(prompts, max(request.max_tokens for request in requests))
        while True:
            if choosers:
                next_B = torch.stack([choosers[row](logits_BV[place]) for place, row in enumerate(running)])
            else:
                next_B = logits_BV.argmax(-1)
            share = (time.perf_counter() - began) / len(unfinished)
            began = time.perf_counter()
            finished = {}
            for row, token in zip(running, next_B.tolist(), strict=True):
                if row in unfinished:
                    seconds[row] += share
                    text, reason = self._finished(requests[row], written[row], token)
                    if reason:
                        text = self.whole(prompts[row], text)
                        finished[row] = Completion(text, len(prompts[row]), len(written[row]), seconds[row], reason)
            unfinished -= set(finished)
            if finished:
                paused = time.perf_counter()
                yield finished
                began += time.perf_counter() - paused  # what the caller does with them is no part of their cost
            if not unfinished:
                return
            kept = [place for place, row in enumerate(running) if row in unfinished]
            if len(kept) <= _MOSTLY_RUNNING * len(running):
                running = [running[place] for place in kept]
                rows_B = torch.tensor(kept, device=self.model.device)
                cache.batch_select_indices(rows_B)
                next_B, mask_BL = next_B[rows_B], mask_BL[rows_B]
            mask_BL = torch.cat([mask_BL, mask_BL.new_ones(len(running), 1)], dim=1)
            output = self.model(
                input_ids=next_B[:, None],
                attention_mask=mask_BL,
                position_ids=mask_BL.sum(1, keepdim=True) - 1,
                past_key_values=cache,
                logits_to_keep=1,
            )
            logits_BV = output.logits[:, -1]

    def _read(self, prompts: list[list[int]], room: int) -> tuple[torch.Tensor, DynamicCache, torch.Tensor]:
        """The logits after each prompt, the cache of the prompts, and its mask (B, L).

        A few prompts at a time: the attention of a tree grows with the square of its nodes.
        """
        device, longest = self.model.device, max(map(len, prompts))
        shared = _common_start(prompts)
        logits, pieces, masks = [], [], []
        count = max(1, (_TOKENS_A_TREE - shared) // max(1, longest - shared))
        for start in range(0, len(prompts), count):
            tree = PrefixTree(prompts[start : start + count])
            nodes_BL, mask_BL = (part.to(device) for part in tree.padded_paths(longest))
            cache = DynamicCache(config=self.model.config)
            output = self.model(**tree.inputs(device), past_key_values=cache, logits_to_keep=nodes_BL[:, -1])
            logits.append(output.logits[0])
            masks.append(mask_BL)
            # (1, heads, T, width) to (B, heads, L, width): to each prompt the states along its own path
            pieces.append(
                [
                    (keys[0, :, nodes_BL].transpose(0, 1), values[0, :, nodes_BL].transpose(0, 1))
                    for keys, values in layers(cache)
                ]
            )
        return torch.cat(logits), roomy_cache(pieces, room), torch.cat(masks)

    def _finished(self, request: Request, written: list[int], token: int) -> tuple[str, str]:
        """The text once `token` has come, by which `written` grows, and why it ends there, or nothing if it goes on."""
        written.append(token)
        ended = token in self.ends
        text = str(self.tokenizer.decode(written[:-1] if ended else written, skip_special_tokens=True))
        if ended:
            return text, "stop"
        if request.decided(text):
            return text, "decided"
        return text, "length" if len(written) >= request.max_tokens else ""


def _common_start(prompts: list[list[int]]) -> int:
    """How many tokens all prompts begin with: the least and the greatest of them share no more than any two do."""
    pairs = zip(min(prompts), max(prompts), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


class _Chooser:
    """Draws the tokens of one request, from a stream of its own: the same whatever else is in its batch."""

    def __init__(self, sampling: Sampling, index: int) -> None:
        self.temperature, self.top_p = sampling.temperature, sampling.top_p
        self.generator = torch.Generator().manual_seed(sampling.seed_of(index))

    def __call__(self, logits_V: torch.Tensor) -> torch.Tensor:
        """Nucleus sampling (Holtzman et al. 2020): of the likeliest tokens, as few as hold `top_p` together."""
        sorted_V, tokens_V = torch.softmax(logits_V.float() / self.temperature, -1).sort(descending=True)
        before_V = sorted_V.cumsum(-1) - sorted_V
        place = torch.multinomial((sorted_V * (before_V < self.top_p)).cpu(), 1, generator=self.generator)
        return tokens_V[place[0]]
