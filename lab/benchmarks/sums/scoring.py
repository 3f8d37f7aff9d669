"""Shared by the benchmarks that ask for one sum: questions, scores and summaries.

An answer has several readings, strict, loose and final, and each is reported as its own figure. The outcome
of an answer is that of the strict reading.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from lab.benchmarks.results import (
    Rates,
    Reading,
    Sample,
    Scored,
    Seconds,
    Sum,
    SumsSummary,
    answered,
    grouped,
    shared_readings,
)
from lab.engines.engine import Request
from lab.numbers.splits import unordered
from lab.numbers.statistics import Estimate, bootstrap_mean, wilson
from lab.numbers.taxonomy import INTEGER, OUTCOMES, classify, same_value
from lab.text.answers import READINGS
from lab.text.examples import Message


def distinct(drawn: Iterator[Sum], number: int) -> list[Sum]:
    """The first `number` distinct sums; swapped operands make the same sum. Never returns if there are fewer."""
    kept: dict[tuple[str, str], Sum] = {}
    while len(kept) < number:
        item = next(drawn)
        kept.setdefault(unordered(*item), item)
    return list(kept.values())


def ask(text: str, max_tokens: int) -> Request:
    return Request((Message("user", text),), max_tokens)


def as_integer(text: str) -> str | None:
    """The text itself if it is an ASCII integer, or else None. (int() also reads 1_000 and digits of other scripts.)"""
    return text if INTEGER.fullmatch(text) else None


def scored(truth: str, strict: str | None, **others: str | None) -> Scored:
    """Compares the answer in each reading with the truth, by value, and classifies the strict one.

    Args:
        truth: the right answer.
        strict: the answer in the strict reading; None if there is none.
        others: the answers in other readings, by name.
    """
    readings = {
        name: Reading(given, given is not None and same_value(given, truth))
        for name, given in {"strict": strict, **others}.items()
    }
    return Scored(readings, {"outcome": "parse_error" if strict is None else classify(strict, truth)})


def summary(samples: Sequence[Sample], **counted: Any) -> SumsSummary:
    """Counts, rates with n and 95 % interval, and costs; counts and rates also by digits of the longer operand.

    Rates are shares of the answered questions, except that `success_rate_of_asked` counts API errors as wrong. A rate
    is None if nothing was answered. Numbers of digits without any answer are left out.

    Args:
        samples: the samples to summarize.
        counted: what else the benchmark counts; fields of `SumsSummary`.
    """
    came = answered(samples)
    by_digits = grouped(samples, lambda sample: sample.length)
    seconds = [sample.completion.seconds for sample in came]
    return SumsSummary(
        **_asked(samples),
        success_rate=_success_rate(came, len(came)),
        success_rate_of_asked=_success_rate(came, len(samples)),
        outcomes=_outcomes(came),
        outcome_shares=_outcome_shares(came),
        seconds=Seconds(
            mean=bootstrap_mean(seconds) if came else None, median=median(seconds) if came else None, total=sum(seconds)
        ),
        tokens={
            kind: sum(getattr(sample.completion, f"{kind}_tokens") for sample in came)
            for kind in ("prompt", "completion")
        },
        by_digits={n: _rates(members) for n, members in sorted(by_digits.items()) if answered(members)},
        **counted,
    )


def counts(values: Iterable[str | None], names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs; names that never occur count 0."""
    counter = Counter(values)
    return {name: counter[name] for name in names}


def _rates(samples: Sequence[Sample]) -> Rates:
    came = answered(samples)
    shares = {"outcomes": _outcomes(came), "outcome_shares": _outcome_shares(came)}
    return Rates(**_asked(samples), **_success_rate(came, len(came)), **shares)


def _asked(samples: Sequence[Sample]) -> dict[str, int]:
    came = len(answered(samples))
    return {"asked": len(samples), "answered": came, "api_errors": len(samples) - came}


def _success_rate(samples: Sequence[Sample], n: int) -> dict[str, Estimate | None]:
    """The rates of the readings that all samples have; samples from an older version have fewer readings."""
    return {
        name: _rate(sum(sample.readings[name].exact_match for sample in samples), n)
        for name in (shared_readings(samples) if samples else READINGS)
    }


def _outcomes(samples: Sequence[Sample]) -> dict[str, int]:
    return counts((sample.remarks["outcome"] for sample in samples), OUTCOMES)


def _outcome_shares(samples: Sequence[Sample]) -> dict[str, Estimate | None]:
    return {outcome: _rate(number, len(samples)) for outcome, number in _outcomes(samples).items()}


def _rate(successes: int, n: int) -> Estimate | None:
    return wilson(successes, n) if n else None
