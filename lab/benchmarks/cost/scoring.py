"""What direct answers and followed rules cost on the same problems, and how many times as much (Number Cookbook,
Table 2).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from lab.benchmarks.benchmark import Sample
from lab.benchmarks.samples import grouped
from lab.numbers.statistics import bootstrap_mean, bootstrap_ratio, wilson


class Variant(NamedTuple):
    """One way to answer the problems, measured."""

    batch_size: int
    weight_bytes: int
    token_bytes: int
    """Of the key-value cache, for each token (lab/models/memory.py)."""
    samples: Sequence[Sample]
    """In the order of the problems, which is that of all variants."""
    passes: Sequence[Mapping[str, int]]
    """What `lab.inference.metered` recorded."""


def cache_bytes(variant: Variant) -> int:
    """Cache memory: token_bytes x the prompt and completion tokens of the `batch_size` longest requests.

    So much do the keys and values of the fullest batch take at its end, without padding and without room ahead; it
    depends on no device and no allocator.
    """
    return variant.token_bytes * sum(sorted(map(_tokens, variant.samples))[-variant.batch_size :])


def equal_memory_batch(direct: Variant, memory: int) -> int:
    """The largest batch whose cache memory is at most `memory`: no larger than the problems are many, at least 1."""
    totals = accumulate(sorted(map(_tokens, direct.samples), reverse=True))
    return max(1, sum(direct.token_bytes * total <= memory for total in totals))


def summarize(direct: Mapping[str, Variant], rule_following: Mapping[str, Variant]) -> dict[str, Any]:
    """Figures of each variant, overall, by task and by length; seconds of each that follows rules over seconds of each
    that does not, overall and by task. All variants are of the same problems.
    """
    return {
        "direct": {name: _figures(variant) for name, variant in direct.items()},
        "rule_following": {name: _figures(variant) for name, variant in rule_following.items()},
        "ratios": {
            name: {other: _ratios(variant, base) for other, base in direct.items()}
            for name, variant in rule_following.items()
        },
    }


def _figures(variant: Variant) -> dict[str, Any]:
    return {
        "batch_size": variant.batch_size,
        "weight_bytes": variant.weight_bytes,
        "cache_bytes": cache_bytes(variant),
        "peak_bytes": max((record.get("peak_bytes", 0) for record in variant.passes), default=0) or None,
        "tokens_per_pass": _ratio(*([record[key] for record in variant.passes] for key in ("written", "row_passes"))),
        "overall": _costs(variant.samples, variant.token_bytes),
        "tasks": {
            task: {
                **_costs(members, variant.token_bytes),
                "lengths": {
                    str(length): _costs(alike, variant.token_bytes)
                    for length, alike in sorted(grouped(members, lambda sample: sample["length"]).items())
                },
            }
            for task, members in grouped(variant.samples, _task).items()
        },
    }


def _costs(samples: Sequence[Sample], token_bytes: int) -> dict[str, Any]:
    """Of a sample, on average; `seconds_per_correct` is all seconds over all right answers, None without any."""
    right = [sample["strict"]["exact_match"] for sample in samples]
    return {
        **{
            cost: bootstrap_mean([sample[cost] for sample in samples]).to_json()
            for cost in ("seconds", "prompt_tokens", "completion_tokens")
        },
        "cache_bytes": bootstrap_mean([token_bytes * _tokens(sample) for sample in samples]).to_json(),
        "accuracy": wilson(sum(right), len(right))._asdict(),
        "seconds_per_correct": _ratio([sample["seconds"] for sample in samples], right) if any(right) else None,
    }


def _ratios(variant: Variant, base: Variant) -> dict[str, Any]:
    """Paired: where a problem is drawn, it is drawn in both."""
    above, below = (grouped(item.samples, _task) for item in (variant, base))
    return {
        "overall": _ratio(_seconds(variant.samples), _seconds(base.samples)),
        "tasks": {task: _ratio(_seconds(above[task]), _seconds(below[task])) for task in above},
    }


def _ratio(numerators: Sequence[float], denominators: Sequence[float]) -> dict[str, Any]:
    return bootstrap_ratio(numerators, denominators).to_json()


def _tokens(sample: Sample) -> int:
    return sample["prompt_tokens"] + sample["completion_tokens"]


def _seconds(samples: Iterable[Sample]) -> list[float]:
    return [sample["seconds"] for sample in samples]


def _task(sample: Sample) -> str:
    return f"{sample['task']}_{sample['representation']}"
