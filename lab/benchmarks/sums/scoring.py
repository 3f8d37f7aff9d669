"""What the benchmarks that ask for one sum share: questions, the score of an answer, and what the scores amount to.

An answer has two readings, strict and loose, which are reported as two figures; its outcome is that of the strict one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from lab.benchmarks.benchmark import Sample
from lab.benchmarks.samples import answered, grouped
from lab.inference.engine import Request
from lab.numbers.splits import unordered
from lab.numbers.statistics import bootstrap_mean, wilson
from lab.numbers.taxonomy import INTEGER, OUTCOMES, classify, same_value
from lab.text.answers import READINGS
from lab.text.examples import Message


class Sum(NamedTuple):
    int1: str
    int2: str

    @property
    def answer(self) -> str:
        return str(int(self.int1) + int(self.int2))

    def facts(self) -> Sample:
        return {**self._asdict(), "answer": self.answer, "digits": max(map(len, self))}


def distinct(drawn: Iterator[Sum], number: int) -> list[Sum]:
    """The first `number` sums without repetition, swapped operands counting as the same; there must be so many."""
    kept: dict[tuple[str, str], Sum] = {}
    while len(kept) < number:
        item = next(drawn)
        kept.setdefault(unordered(*item), item)
    return list(kept.values())


def ask(text: str, max_tokens: int) -> Request:
    return Request((Message("user", text),), max_tokens)


def as_integer(text: str) -> str | None:
    """The text, if it is an ASCII integer and no more; int() also takes 1_000 and the digits of other scripts."""
    return text if INTEGER.fullmatch(text) else None


def scored(truth: str, strict: str | None, loose: str | None) -> Sample:
    """Both readings of what was given, and the outcome."""
    readings = {
        reading: {"given": given, "success": given is not None and same_value(given, truth)}
        for reading, given in zip(READINGS, (strict, loose), strict=True)
    }
    return {**readings, "outcome": "parse_error" if strict is None else classify(strict, truth)}


def summary(samples: Sequence[Sample]) -> dict[str, Any]:
    """Counts, rates with n and 95 % interval, and costs; counts and rates again by digits of the longer operand.

    Rates are of what was answered. `success_rate_of_asked` counts an API error as no success, so that errors cannot
    raise a figure unseen. A rate of nothing is None; numbers of digits without any answer are left out.
    """
    came = answered(samples)
    by_digits = grouped(samples, lambda sample: sample["digits"])
    seconds = [sample["seconds"] for sample in came]
    return {
        **_asked(samples),
        "success_rate": _success_rate(came, len(came)),
        "success_rate_of_asked": _success_rate(came, len(samples)),
        **_outcomes(came),
        "seconds": {
            "mean": bootstrap_mean(seconds)._asdict() if came else None,
            "median": median(seconds) if came else None,
            "total": sum(seconds),
        },
        "tokens": {kind: sum(sample[f"{kind}_tokens"] for sample in came) for kind in ("prompt", "completion")},
        "by_digits": {str(n): _rates(members) for n, members in sorted(by_digits.items()) if answered(members)},
    }


def counts(values: Iterable[str | None], names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs, 0 included."""
    counter = Counter(values)
    return {name: counter[name] for name in names}


def _rates(samples: Sequence[Sample]) -> dict[str, Any]:
    came = answered(samples)
    return {**_asked(samples), **_success_rate(came, len(came)), **_outcomes(came)}


def _asked(samples: Sequence[Sample]) -> dict[str, int]:
    came = len(answered(samples))
    return {"asked": len(samples), "answered": came, "api_errors": len(samples) - came}


def _success_rate(samples: Sequence[Sample], n: int) -> dict[str, Any]:
    return {reading: _rate(sum(sample[reading]["success"] for sample in samples), n) for reading in READINGS}


def _outcomes(samples: Sequence[Sample]) -> dict[str, Any]:
    numbers = counts((sample["outcome"] for sample in samples), OUTCOMES)
    shares = {outcome: _rate(number, len(samples)) for outcome, number in numbers.items()}
    return {"outcomes": numbers, "outcome_shares": shares}


def _rate(successes: int, n: int) -> dict[str, Any] | None:
    return wilson(successes, n)._asdict() if n else None
