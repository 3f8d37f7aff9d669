"""A trained adder as a model that can be asked: an engine that puts sums to it in its own rows (rows.py).

Shapes: B sums, T tokens of a row.
"""

import re
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn

from lab.config.evaluation import LocalEngineConfig
from lab.config.notation import FormatConfig, TokenizerConfig
from lab.engines.engine import GREEDY, Completion, Request, Sampling
from lab.errors import ConfigError, ModelError
from lab.models.weight_files import check_whole
from lab.numbers.tasks import task
from lab.runs import Run
from lab.smallest_adder.config import AdderConfig
from lab.smallest_adder.models import build
from lab.smallest_adder.rows import ANSWERS, PLACES, decode, encode
from lab.text.examples import Prompt
from lab.text.notation import Notation

WEIGHTS = Path("model") / "model.safetensors"
"""Where a run of `lab adder train` keeps its best weights."""
TASK = task("add_integer")
NOTATION = Notation(TokenizerConfig(), FormatConfig(reverse="integer"), [TASK])
"""How sums are put to the engine: 12 + 30 is "2 1 <add_integer> 0 3 =", and 42 is "2 4"."""
AT_ONCE = 1000
"""Sums of one forward pass."""


def is_adder(folder: Path) -> bool:
    """Whether a folder is a run of `lab adder train`."""
    return Run(folder).command == "adder"


def check_attention(config: LocalEngineConfig) -> None:
    """Raises ConfigError if the config changes the attention for a test, which is not possible in a smallest adder."""
    for key in ("far_at_most", "clip_distance", "spacing"):
        if getattr(config, key):
            raise ConfigError(f"{key} does not go with a smallest adder: leave it out")


def open_adder(folder: Path) -> "AdderEngine":
    """The adder of a run in `folder`. Raises ModelError if the run has none (yet)."""
    weights = read_weights(folder)
    try:
        config = AdderConfig.model_validate(Run(folder).settings)
        model = build(config.model)
        model.load_state_dict({name: weight.float() for name, weight in weights.items()})
    except (ValueError, RuntimeError) as error:
        raise ModelError(f"{folder}: not a run of lab adder train: {str(error).splitlines()[0]}") from None
    return AdderEngine(model)


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """The weights of a run in `folder`. Raises ModelError if it has none (yet), or if they are damaged."""
    if not (folder / WEIGHTS).is_file():
        raise ModelError(f"{folder}: this run has no model; it was interrupted, or an older version of the lab made it")
    check_whole((folder / WEIGHTS).parent)
    return load_file(folder / WEIGHTS)


class AdderEngine:
    """An `Engine` for sums of two integers of at most ten digits, in NOTATION. The adder computes in float32."""

    format = FormatConfig(reverse="integer")
    notation = NOTATION

    def __init__(self, model: nn.Module) -> None:
        self.model = model.eval()

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def size(self) -> str:
        return f"{self.parameters:,} parameters, a smallest adder"

    def check(self, request: Request) -> None:
        _operands(request.prompt)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def tokens_needed(self, prompt: Prompt, completion: str) -> int:
        return len(str(prompt).split()) + self.count_tokens(completion) + 1

    @torch.inference_mode()
    def add(self, pairs: Sequence[tuple[int, int]]) -> list[int]:
        """The sum that the adder writes for each pair (a, b), digit after digit."""
        sums = []
        for start in range(0, len(pairs), AT_ONCE):
            ids_BT = torch.tensor([encode(a, b) for a, b in pairs[start : start + AT_ONCE]])
            for _ in range(ANSWERS):
                ids_BT = torch.cat([ids_BT, self.model(ids_BT, 1)[:, -1:].argmax(-1)], dim=1)
            sums += [decode(row) for row in ids_BT[:, -ANSWERS:].tolist()]
        return sums

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
        for index, found in zip(left, map(str, sums), strict=True):
            read = len(str(requests[index].prompt).split())
            completions[index] = Completion(" ".join(reversed(found)), read, len(found) + 1, seconds, "stop")
        yield completions


def _operands(prompt: Prompt) -> tuple[int, int]:
    """The two numbers of a prompt in NOTATION."""
    found = re.fullmatch(rf"([\d ]*\d) <{TASK.key}> ([\d ]*\d) =", " ".join(str(prompt).split()))
    if not found:
        raise ModelError(f"{str(prompt)[:60]!r}: this adder reads only sums of two integers, such as 12 + 34")
    a, b = (number.replace(" ", "")[::-1] for number in found.groups())
    if (digits := max(len(a), len(b))) > PLACES:
        raise ModelError(f"this adder adds numbers of at most {PLACES} digits, and one here has {digits}")
    return int(a), int(b)
