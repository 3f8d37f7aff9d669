"""The cost of direct answers and of rule following on the same problems, and their ratio (Number Cookbook, Table 2)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from lab.benchmarks.results import (
    VERSION,
    CostRatios,
    Costs,
    CostSummary,
    Sample,
    TaskCosts,
    VariantCosts,
    answered,
    grouped,
)
from lab.numbers.statistics import Estimate, bootstrap_mean, bootstrap_ratio, wilson


class Variant(NamedTuple):
    """The measurements of one way to answer the problems."""

    batch_size: int
    weight_bytes: int
    token_bytes: int
    """Bytes of the key-value cache for each token."""
    samples: Sequence[Sample]
    """The samples, in the same order of problems for all variants."""
    passes: Sequence[Mapping[str, int]]
    """The records of a `Meter` (lab/benchmarks/cost/measuring.py)."""


def cache_bytes(variant: Variant) -> int:
    """Cache memory in bytes: `token_bytes` times the prompt and completion tokens of the `batch_size` longest requests.

    This is the size of the keys and values of the largest possible batch at its end, without padding or spare room. It
    does not depend on the device or its allocator.
    """
    return variant.token_bytes * sum(sorted(map(_tokens, variant.samples))[-variant.batch_size :])


def equal_memory_batch(direct: Variant, memory: int) -> int:
    """The largest batch of direct answers whose cache memory is at most `memory` bytes.

    It is at least 1 and at most the number of problems.
    """
    totals = accumulate(sorted(map(_tokens, direct.samples), reverse=True))
    return max(1, sum(direct.token_bytes * total <= memory for total in totals))


def summarize(
    direct: Mapping[str, Variant], rule_following: Mapping[str, Variant], left_out: Mapping[str, int]
) -> CostSummary:
    """The figures of each variant, overall, by task and by length, and ratios of seconds, overall and by task.

    Args:
        direct: variants that answer directly, by name.
        rule_following: variants that follow rules; the seconds of each are divided by those of each direct variant.
        left_out: how many problems of each task were not asked.

    All variants must have been asked the same problems, in the same order.
    """
    return CostSummary(
        version=VERSION,
        left_out=dict(left_out),
        direct={name: _variant_costs(variant) for name, variant in direct.items()},
        rule_following={name: _variant_costs(variant) for name, variant in rule_following.items()},
        ratios={
            name: {other: _ratios(variant, base) for other, base in direct.items()}
            for name, variant in rule_following.items()
        },
    )


def _variant_costs(variant: Variant) -> VariantCosts:
    return VariantCosts(
        batch_size=variant.batch_size,
        weight_bytes=variant.weight_bytes,
        cache_bytes=cache_bytes(variant),
        peak_bytes=max((record.get("peak_bytes", 0) for record in variant.passes), default=0) or None,
        tokens_per_pass=_ratio(
            [record["written"] for record in variant.passes], [record["row_passes"] for record in variant.passes]
        ),
        overall=_costs(variant.samples, variant.token_bytes),
        tasks={
            task: TaskCosts(
                **vars(_costs(members, variant.token_bytes)), lengths=_by_length(members, variant.token_bytes)
            )
            for task, members in grouped(variant.samples, lambda sample: sample.task).items()
        },
    )


def _by_length(samples: Sequence[Sample], token_bytes: int) -> dict[int, Costs]:
    by_length = grouped(samples, lambda sample: sample.length)
    return {length: _costs(by_length[length], token_bytes) for length in sorted(by_length)}


def _costs(samples: Sequence[Sample], token_bytes: int) -> Costs:
    came = answered(samples)
    right = [sample.right for sample in came]
    return Costs(
        seconds=_mean(_seconds(came)),
        prompt_tokens=_mean([sample.completion.prompt_tokens for sample in came]),
        completion_tokens=_mean([sample.completion.completion_tokens for sample in came]),
        cache_bytes=_mean([token_bytes * _tokens(sample) for sample in came]),
        accuracy=wilson(sum(right), len(right)) if came else None,
        seconds_per_correct=_ratio(_seconds(came), right),
    )


def _mean(values: Sequence[float]) -> Estimate | None:
    return bootstrap_mean(values) if values else None


def _ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate | None:
    return bootstrap_ratio(numerators, denominators) if any(denominators) else None


def _ratios(variant: Variant, base: Variant) -> CostRatios:
    """Ratios of seconds. The bootstrap is paired: a problem that is drawn is drawn for both variants."""
    pairs = list(zip(variant.samples, base.samples, strict=True))
    by_task = grouped(pairs, lambda pair: pair[0].task)
    return CostRatios(
        overall=_seconds_ratio(pairs), tasks={task: _seconds_ratio(members) for task, members in by_task.items()}
    )


def _seconds_ratio(pairs: Iterable[tuple[Sample, Sample]]) -> Estimate | None:
    both = [pair for pair in pairs if all(sample.answered for sample in pair)]
    return _ratio(_seconds(above for above, _ in both), _seconds(below for _, below in both))


def _tokens(sample: Sample) -> int:
    return sample.completion.prompt_tokens + sample.completion.completion_tokens


def _seconds(samples: Iterable[Sample]) -> list[float]:
    return [sample.completion.seconds for sample in samples]
