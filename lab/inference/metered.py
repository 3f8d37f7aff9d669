"""Records how much an engine computes. The records are on disk with the completions, so a resumed run has them all."""

from collections.abc import Iterator, Sequence, Set

import torch

from lab.inference.engine import GREEDY, Completion, Request, Sampling
from lab.inference.local import LocalEngine
from lab.inference.plain import PlainEngine
from lab.runs import Run
from lab.text.examples import Prompt


class MeteredEngine:
    """Wraps an engine, and appends a record to <name>.jsonl whenever completions arrive.

    A record has `row_passes` and `written` since the last record and, on a GPU, `peak_bytes`: the most memory allocated
    since the call of `generate`, beyond what was allocated at its start. Records include work that a killed process did
    in vain.
    """

    def __init__(self, engine: LocalEngine | PlainEngine, run: Run, name: str) -> None:
        self.engine, self.run, self.name = engine, run, name
        self.format = engine.format

    def check(self, request: Request) -> None:
        self.engine.check(request)

    def count_tokens(self, text: str) -> int:
        return self.engine.count_tokens(text)

    def tokens_needed(self, prompt: Prompt, completion: str) -> int:
        return self.engine.tokens_needed(prompt, completion)

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
    ) -> Iterator[dict[int, Completion]]:
        device = self.engine.model.device
        on_gpu, allocated = device.type == "cuda", 0
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
            allocated = torch.cuda.memory_allocated(device)
        row_passes, written = self.engine.row_passes, self.engine.written
        for completions in self.engine.generate(requests, sampling, done):
            record = {"row_passes": self.engine.row_passes - row_passes, "written": self.engine.written - written}
            peak = {"peak_bytes": torch.cuda.max_memory_allocated(device) - allocated} if on_gpu else {}
            self.run.append(self.name, [record | peak])
            row_passes, written = self.engine.row_passes, self.engine.written
            yield completions
