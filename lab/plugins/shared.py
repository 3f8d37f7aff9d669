"""What both plugins need: a benchmark from its config, the budgets of its answers, and the figures of an answer."""

from functools import cache
from typing import Annotated, Any, TypeAlias

from pydantic import Field, TypeAdapter

from lab.benchmarks.benchmark import Benchmark
from lab.benchmarks.kinds import open_benchmark
from lab.benchmarks.results import SUM_READINGS, Scored
from lab.config.evaluation import BenchmarkConfig
from lab.engines.engine import Completion
from lab.text.answers import without_thoughts

Config: TypeAlias = Annotated[BenchmarkConfig, Field(discriminator="kind")]

VERSION = 2
"""Must be increased if a question or a score changes."""

NUPA_METRICS = {
    **dict.fromkeys((f"exact_match_{reading}" for reading in SUM_READINGS), True),
    "digit_match": True,
    "dlength": False,
}
SUM_METRICS = dict.fromkeys((f"success_{reading}" for reading in SUM_READINGS), True)
"""For each metric, whether higher is better. Digit match and dlength are those of the strict reading."""


@cache
def open_cached(config: str, seed: int) -> Benchmark:
    """The benchmark of a config. The config is JSON, because it is stored with the questions for scoring."""
    return open_benchmark(TypeAdapter(Config).validate_json(config), seed)


def completed(text: str, reasoning: str = "", finish_reason: str = "stop") -> Completion:
    """An answer of the tool's engine as a Completion; its cost is unknown."""
    text, thoughts = without_thoughts(text)
    return Completion(text, 0, 0, 0.0, finish_reason, reasoning or thoughts)


def figures(scored: Scored) -> dict[str, float]:
    """The numbers of a score: those of NUPA_METRICS or of SUM_METRICS."""
    strict, right = scored.readings["strict"], {name: float(r.exact_match) for name, r in scored.readings.items()}
    if strict.digit_match is None or strict.dlength is None:
        return {f"success_{name}": right[name] for name in SUM_READINGS}
    matches = {f"exact_match_{name}": right[name] for name in SUM_READINGS}
    return {**matches, "digit_match": strict.digit_match, "dlength": float(strict.dlength)}


def budget(benchmark: Benchmark) -> int:
    """The largest number of tokens that any answer of a benchmark may have, if each character is a token."""
    return max(request.max_tokens for request in benchmark.requests())


@cache
def budgets(config: str, seed: int, tokenizer: Any = None) -> list[int]:
    """The number of tokens that each answer of a benchmark may have: the same as in `lab evaluate`.

    Args:
        config: the benchmark's config in JSON.
        seed: the seed from which problems are drawn.
        tokenizer: the model's tokenizer; without it, each character counts as a token.
    """
    count = len if tokenizer is None else lambda text: len(tokenizer.encode(text, add_special_tokens=False))
    return [request.max_tokens for request in open_cached(config, seed).requests(count)]
