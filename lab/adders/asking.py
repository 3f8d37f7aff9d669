"""A declared adder as a model that can be asked: an engine that puts sums to it by its own templates."""

import re
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Self

from lab.adders.count import count
from lab.adders.judge import Runner
from lab.adders.problems import DIGITS
from lab.adders.spec import Adder, load
from lab.config.evaluation import LocalEngineConfig
from lab.config.notation import FormatConfig, TokenizerConfig
from lab.engines.engine import GREEDY, Completion, Request, Sampling
from lab.errors import ConfigError, ModelError
from lab.models.sources import ADDER
from lab.numbers.tasks import task
from lab.text.examples import Prompt
from lab.text.notation import Notation

TASK = task("add_integer")
NOTATION = Notation(TokenizerConfig(), FormatConfig(reverse="integer"), [TASK])
"""How sums are put to the engine: 12 + 30 is "2 1 <add_integer> 0 3 =", and 42 is "2 4"."""


def check_parts(config: LocalEngineConfig) -> None:
    """Raises ConfigError if the config changes parts for a test, which a smallest adder does not have."""
    if config.parts:
        raise ConfigError(f"parts.{next(iter(config.parts))} does not go with a smallest adder: leave it out")


class AdderEngine:
    """An `Engine` for sums of two integers of at most ten digits, in NOTATION."""

    format = FormatConfig(reverse="integer")
    notation = NOTATION

    def __init__(self, adder: Adder) -> None:
        self.adder, self._runner = adder, Runner(adder)

    @classmethod
    def of(cls, path: Path) -> Self:
        """The adder in a file, or of a run. Raises ModelError if the run has none (yet), and TaskError for a bad
        file."""
        if path.is_dir() and not (path / ADDER).is_file():
            converts = "or an older version of the lab made it (python -m experiments.convert_adders declares it)"
            raise ModelError(f"{path}: this run has no {ADDER}; it was interrupted, {converts}")
        return cls(load(path / ADDER if path.is_dir() else path))

    @property
    def parameters(self) -> int:
        return count(self.adder).parameters

    @property
    def size(self) -> str:
        return f"{self.parameters:,} parameters, a declared adder"

    def check(self, request: Request) -> None:
        _operands(request.prompt)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def tokens_needed(self, prompt: Prompt, completion: str) -> int:
        return len(str(prompt).split()) + self.count_tokens(completion) + 1

    def add(self, pairs: Sequence[tuple[int, int]]) -> list[int | None]:
        """The sum that the adder writes for each pair (a, b); None where it writes no number."""
        return self._runner.add(pairs) if pairs else []

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
    ) -> Iterator[dict[int, Completion]]:
        """See `Engine`. Yields all completions at once. Raises ModelError for a prompt that is no sum or has too many
        digits, and ConfigError if the temperature is not 0.
        """
        if sampling.temperature:
            raise ConfigError("sampling.temperature: an adder answers greedily; use 0")
        left = [index for index in range(len(requests)) if index not in done]
        began = time.perf_counter()
        sums = self.add([_operands(requests[index].prompt) for index in left])
        seconds = (time.perf_counter() - began) / max(1, len(left))
        completions = {}
        for index, found in zip(left, ("" if one is None else str(one) for one in sums), strict=True):
            read = len(str(requests[index].prompt).split())
            completions[index] = Completion(" ".join(reversed(found)), read, len(found) + 1, seconds, "stop")
        yield completions


def _operands(prompt: Prompt) -> tuple[int, int]:
    """The two numbers of a prompt in NOTATION."""
    found = re.fullmatch(rf"([\d ]*\d) <{TASK.key}> ([\d ]*\d) =", " ".join(str(prompt).split()))
    if not found:
        raise ModelError(f"{str(prompt)[:60]!r}: this adder reads only sums of two integers, such as 12 + 34")
    a, b = (number.replace(" ", "")[::-1] for number in found.groups())
    if (digits := max(len(a), len(b))) > DIGITS:
        raise ModelError(f"this adder adds numbers of at most {DIGITS} digits, and one here has {digits}")
    return int(a), int(b)
