"""The usual loop: `generate` of transformers over left-padded batches.

Models from scratch use it, because their questions are short and share no prompt. For pretrained models, it is the
baseline that `LocalEngine` is compared with.
"""

import itertools
import re
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import LogitsProcessor, LogitsProcessorList, PreTrainedModel, StoppingCriteria, StoppingCriteriaList
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.drawing.tables import counted
from lab.engines.choosing import Chooser
from lab.engines.engine import GREEDY, Completion, ModelEngine, Request, Sampling
from lab.errors import ConfigError, ModelError
from lab.models.free_memory import check_free, free_memory
from lab.models.loading import ScratchRun
from lab.text.examples import encode_prompt


class PlainEngine(ModelEngine):
    """Generation in batches, in the order of the requests. The budget of a batch is the largest of its
    requests'.

    No request leaves its batch early. The tokens that it writes after its end, beyond its budget, or after its answer
    is decided, are cut off afterwards, and `written` does not count them. So completions equal those of `LocalEngine`;
    only their cost differs.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, batch_size: int, by_group: bool = False
    ) -> None:
        """`by_group`: a batch never contains requests of two groups."""
        super().__init__(model, tokenizer, batch_size)
        self.by_group = by_group

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
    ) -> Iterator[dict[int, Completion]]:
        """See `Engine`. Returns a batch at a time."""
        for indices in self.batches(requests):
            if not done >= set(indices):
                choosers = [Chooser(sampling, i) for i in indices] if sampling.temperature else []
                completions = self._complete([requests[i] for i in indices], choosers)
                yield {i: found for i, found in zip(indices, completions, strict=True) if i not in done}

    def check_memory(self, requests: Sequence[Request], key: str) -> None:
        """Raises ModelError, in one line, if the keys and values of the longest batch need more memory than is free.

        `key`: the key of the config that sets the batch size.
        """
        config = self.model.config
        longest = max(len(encode_prompt(one.prompt, self.tokenizer)) + one.max_tokens for one in requests)
        heads = config.num_key_value_heads or config.num_attention_heads
        a_token = 2 * config.num_hidden_layers * heads * config.head_dim * self.model.dtype.itemsize
        a_row = longest * a_token
        rows, free = max(map(len, self.batches(requests))), free_memory(self.model.device)
        what = f"the test ({counted(rows, 'row')} of up to {longest:,} tokens at a time)"
        advice = f"use {key}={max(1, int(free / a_row / 2))} or less, or shorter lengths"
        check_free(rows * a_row, free, what, lambda: advice)

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """See `BatchingEngine`."""
        groups = itertools.groupby(range(len(requests)), lambda i: requests[i].group if self.by_group else "")
        members = [list(indices) for _, indices in groups]
        size = self.batch_size
        return [indices[start : start + size] for indices in members for start in range(0, len(indices), size)]

    @torch.inference_mode()
    def _complete(self, requests: Sequence[Request], choosers: Sequence[Chooser]) -> list[Completion]:
        clock = Clock()
        prompts = [encode_prompt(request.prompt, self.tokenizer) for request in requests]
        rows = self._rows(prompts, max(request.max_tokens for request in requests), clock, choosers)
        clock.moments[-1] = time.perf_counter()  # copying the tokens from the device counts too
        cut = [self._cut(request, row) for request, row in zip(requests, rows, strict=True)]
        counts = [count for _, count, _ in cut]
        self.row_passes += len(rows) * max(map(len, rows))
        self.written += sum(counts)
        return [
            Completion(self.whole(prompt, text), len(prompt), count, seconds, reason)
            for prompt, (text, count, reason), seconds in zip(prompts, cut, clock.shares(counts), strict=True)
        ]

    def _rows(
        self, prompts: Sequence[Sequence[int]], budget: int, clock: "Clock", choosers: Sequence[Chooser]
    ) -> list[list[int]]:
        """The tokens written after each prompt; there may be more after an end token."""
        texts = [torch.tensor(prompt) for prompt in prompts]
        inputs = pad_sequence(texts, batch_first=True, padding_side="left")
        attended = pad_sequence([torch.ones_like(text) for text in texts], batch_first=True, padding_side="left")
        model: Any = self.model  # transformers types `generate` as that of a mixin
        tokens = model.generate(
            inputs.to(self.model.device),
            attention_mask=attended.to(self.model.device),
            max_new_tokens=budget,
            do_sample=False,
            eos_token_id=[token for token in self.ends if token is not None] or None,
            pad_token_id=self.tokenizer.pad_token_id,
            stopping_criteria=StoppingCriteriaList([clock]),
            logits_processor=LogitsProcessorList([_Drawn(choosers)] if choosers else []),
        )
        return tokens[:, inputs.shape[1] :].tolist()

    def _cut(self, request: Request, row: list[int]) -> tuple[str, int, str]:
        """Text, number of tokens and finish reason, as if generation had stopped at the right token."""
        row = row[: request.max_tokens]
        said = list(itertools.takewhile(lambda token: token not in self.ends, row))
        # bisection works because a decided text stays decided
        kept = bisect_left(range(1, len(said) + 1), True, key=lambda n: request.decided(self.decode(said[:n]))) + 1
        if kept <= len(said):
            return self.decode(said[:kept]), kept, "decided"
        if len(said) < len(row):
            return self.decode(said), len(said) + 1, "stop"
        return self.decode(said), len(said), "length"


class UnpaddedEngine(PlainEngine):
    """The loop in batches of prompts of the same length, for models that may read padding."""

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """See `BatchingEngine`."""
        lengths = [len(encode_prompt(request.prompt, self.tokenizer)) for request in requests]
        order = sorted(range(len(requests)), key=lambda i: (lengths[i], requests[i].max_tokens))
        alike = [list(indices) for _, indices in itertools.groupby(order, lengths.__getitem__)]
        size = self.batch_size
        return [some[start : start + size] for some in alike for start in range(0, len(some), size)]


class ScratchEngine(PlainEngine):
    """A model from scratch, which is asked in its own notation."""

    def __init__(self, run: ScratchRun, batch_size: int) -> None:
        super().__init__(run.model, run.tokenizer, batch_size, by_group=True)
        self.notation = run.notation
        self.size = f"{run.model.parameters_without_embeddings():,} parameters, from scratch"
        self.most = run.model.most_digits

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
    ) -> Iterator[dict[int, Completion]]:
        """See `Engine`. Raises ConfigError if the temperature is not 0, and ModelError if a number is beyond the table
        of ids, before anything is generated."""
        if sampling.temperature:
            raise ConfigError("sampling.temperature: models from scratch answer greedily; use 0")
        for index, request in enumerate(requests):
            if index not in done:
                self.check(request)
        yield from super().generate(requests, sampling, done)

    def check(self, request: Request) -> None:
        """Raises ModelError, in one line, if a number of the request has so many digits that the ids of an answer,
        which may have one digit more, would wrap around."""
        numbers = re.findall(r"\d[\d ]*", str(request.prompt))
        digits = max((len(number.replace(" ", "")) for number in numbers), default=0)
        if self.most is not None and digits >= self.most:
            what = f"a number here has {digits:,} digits, which is beyond this model's table of ids"
            raise ModelError(f"{what}: it can tell the places of at most {self.most - 1:,} digits apart")


class _Drawn(LogitsProcessor):
    """Lets the chooser of each row draw its token; no other token stays possible."""

    def __init__(self, choosers: Sequence[Chooser]) -> None:
        self._choosers = choosers

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        drawn = torch.stack([chooser(row) for chooser, row in zip(self._choosers, scores, strict=True)])
        return torch.full_like(scores, -torch.inf).scatter(1, drawn[:, None], 0.0)


class Clock(StoppingCriteria):
    """Records when each forward pass of a batch ends; it never stops generation."""

    def __init__(self) -> None:
        self.moments = [time.perf_counter()]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **kwargs: Any) -> torch.Tensor:  # type: ignore[override]
        self.passed()
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)

    def passed(self) -> None:
        """Records that a forward pass has ended."""
        self.moments.append(time.perf_counter())

    def shares(self, counts: Sequence[int]) -> list[float]:
        """The seconds of each request. As in `LocalEngine`, the time of a pass is divided equally among the requests
        that were not finished then, or among all requests if all were finished.

        `counts`: how many tokens each request wrote.
        """
        seconds = [0.0] * len(counts)
        for index, (began, ended) in enumerate(itertools.pairwise(self.moments)):
            payers = [i for i, count in enumerate(counts) if count > index] or list(range(len(counts)))
            for i in payers:
                seconds[i] += (ended - began) / len(payers)
        return seconds
