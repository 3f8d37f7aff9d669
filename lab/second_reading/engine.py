"""A model of two readings as an engine: it continues any text, one request after the other, with greedy decoding."""

import time
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path

from lab.config.evaluation import LocalEngineConfig
from lab.engines.engine import GREEDY, Completion, ModelEngine, Request, Sampling
from lab.errors import ConfigError, ModelError
from lab.models import sources
from lab.second_reading import saving
from lab.second_reading.model import Continuation, TwoReadings
from lab.text.examples import encode_prompt


class TwoReadingsEngine(ModelEngine):
    """An `Engine` for a model of two readings."""

    def __init__(self, readings: TwoReadings) -> None:
        super().__init__(readings.model, readings.tokenizer, 1)
        self.readings = readings

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
    ) -> Iterator[dict[int, Completion]]:
        """See `Engine`. Raises ConfigError for a temperature, because the answers to sums are not drawn."""
        if sampling.temperature:
            raise ConfigError("temperature: a model of two readings writes the most likely tokens; leave it at 0")
        for index, request in enumerate(requests):
            if index not in done:
                yield {index: self._completion(request)}

    def _completion(self, request: Request) -> Completion:
        began = time.perf_counter()
        prompt = encode_prompt(request.prompt, self.tokenizer)
        tokens = self.readings.continued(prompt, request.max_tokens, self.ends, self._is_decided(request)).tokens
        ended = bool(tokens) and tokens[-1] in self.ends
        text = self.decode(tokens[:-1] if ended else tokens)
        reason = "stop" if ended else "decided" if request.decided(text) else "length"
        return Completion(self.whole(prompt, text), len(prompt), len(tokens), time.perf_counter() - began, reason)

    def _is_decided(self, request: Request) -> Callable[[Continuation], bool]:
        return lambda written: request.decided(self.decode(written.tokens))


def opened(config: LocalEngineConfig) -> tuple[TwoReadingsEngine, str] | None:
    """The engine of a folder of such a model, and what it runs on; None for other models.

    Raises ConfigError for a setting of other models, and ModelError if a file is missing or damaged.
    """
    folder = Path(sources.resolve(config.model.name))
    if not saving.is_saved(folder):
        return None
    for kind in config.parts:
        raise ConfigError(f"parts.{kind} does not go with a model of two readings: leave it out")
    if config.model.quantization != "none" or config.model.device == "cuda":
        raise ModelError(f"{config.model.name}: a model of two readings runs on the CPU, without quantization")
    readings = saving.load(folder, config.model.dtype)
    return TwoReadingsEngine(readings), f"cpu, {str(readings.model.dtype).removeprefix('torch.')}"
