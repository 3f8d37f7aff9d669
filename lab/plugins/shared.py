"""What both plugins need: a benchmark from its config, and the figures of an answer from the tool's own engine."""

from functools import cache
from typing import Annotated, TypeAlias

from pydantic import Field, TypeAdapter

from lab.benchmarks.benchmark import Benchmark
from lab.benchmarks.opening import open_benchmark
from lab.benchmarks.results import Scored
from lab.config.evaluation import BenchmarkConfig
from lab.inference.engine import Completion
from lab.text.answers import without_thoughts

Config: TypeAlias = Annotated[BenchmarkConfig, Field(discriminator="kind")]

VERSION = 1
"""Must be increased if a question or a score changes."""

NUPA_METRICS = {"exact_match_strict": True, "exact_match_loose": True, "digit_match": True, "dlength": False}
SUM_METRICS = {"success_strict": True, "success_loose": True}
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
    strict, loose = scored.readings["strict"], scored.readings["loose"]
    if strict.digit_match is None or strict.dlength is None:
        return {"success_strict": float(strict.exact_match), "success_loose": float(loose.exact_match)}
    return {
        "exact_match_strict": float(strict.exact_match),
        "exact_match_loose": float(loose.exact_match),
        "digit_match": strict.digit_match,
        "dlength": float(strict.dlength),
    }


def budget(benchmark: Benchmark) -> int:
    """The largest number of tokens that any answer of a benchmark may have."""
    return max(request.max_tokens for request in benchmark.requests())
