"""What came of the questions of a run, besides right and wrong: answers that were cut off or empty, and none at all.

An answer was cut off if its budget of tokens ran out before it was decided: more text could have changed its reading.
An empty answer has no text although the model ended it; it counts as wrong. A model that thinks before it answers may
spend its whole budget on thoughts, and then its answers are empty because they were cut off.
"""

from collections import Counter
from collections.abc import Sequence

from lab.benchmarks.results import Arrivals, Sample, answered
from lab.drawing.tables import counted
from lab.engines.engine import Request
from lab.engines.refusals import remedy

_REASONS = 2
"""How many reasons for missing answers a line names."""


def arrivals(samples: Sequence[Sample], requests: Sequence[Request]) -> Arrivals:
    """Counts the samples of a run; `requests` are those of its benchmark, in the same order as the questions."""
    came = answered(samples)
    cut, ended = _divided(came, requests)
    silent = [sample for sample in ended if not sample.completion.text.strip()]
    reasons = Counter(sample.completion.api_error for sample in samples if not sample.answered)
    return Arrivals(
        asked=len(samples),
        answered=len(came),
        cut_off=len(cut),
        cut_off_before_text=sum(not sample.completion.text.strip() for sample in cut),
        empty=len(silent),
        empty_after_thoughts=sum(bool(sample.completion.reasoning) for sample in silent),
        reasons=dict(reasons.most_common(_REASONS)),
    )


def _divided(came: Sequence[Sample], requests: Sequence[Request]) -> tuple[list[Sample], list[Sample]]:
    """The answers that were cut off, and the others."""
    parts: tuple[list[Sample], list[Sample]] = [], []
    for sample in came:
        whole = sample.completion.finish_reason != "length" or requests[sample.index].decided(sample.completion.text)
        parts[whole].append(sample)
    return parts


def mostly_cut_off(found: Arrivals) -> bool:
    """Whether half of the answers or more were cut off, so that the other figures say little about the model."""
    return 2 * found.cut_off >= found.answered > 0


def in_short(found: Arrivals, kind: str, asked_twice: bool = False) -> list[str]:
    """A line for each thing that went wrong, none if nothing did.

    Args:
        found: the counts.
        kind: the kind of the benchmark, which decides which key of its config is the budget.
        asked_twice: whether an engine asks once more after an empty answer without thoughts.
    """
    return [*_cut_off(found, kind), *_empty(found, asked_twice), *_unanswered(found)]


def _cut_off(found: Arrivals, kind: str) -> list[str]:
    if not found.cut_off:
        return []
    little = "the figures say little: " if mostly_cut_off(found) else ""
    before = f", {found.cut_off_before_text} of them before any text" if found.cut_off_before_text else ""
    key = "benchmark.surplus_tokens" if kind == "nupa" else "benchmark.max_tokens"
    what = f"{found.cut_off} of {counted(found.answered, 'answer')} were cut off (finish_reason=length){before}"
    return [f"{little}{what}; a larger {key} gives them room, and a model that thinks first needs thousands of tokens"]


def _empty(found: Arrivals, asked_twice: bool) -> list[str]:
    if not found.empty:
        return []
    others = found.empty - found.empty_after_thoughts
    kinds = [f"{found.empty_after_thoughts} after thoughts"] if found.empty_after_thoughts else []
    kinds += [f"{others} also when asked once more"] if others and asked_twice else []
    told = f" ({', '.join(kinds)})" if kinds else ""
    return [f"{found.empty} of {counted(found.answered, 'answer')} are empty, and count as wrong{told}"]


def _unanswered(found: Arrivals) -> list[str]:
    missing = found.asked - found.answered
    if not missing:
        return []
    named = [reason if count == missing else f"{count} x {reason}" for reason, count in found.reasons.items()]
    left = missing - sum(found.reasons.values())
    reasons = "; ".join([*named, *([f"and {left} others"] if left else [])])
    told = f"{missing} of {counted(found.asked, 'question')} have no answer ({reasons}); resume=true asks them again"
    return ["; ".join(filter(None, (told, remedy(reasons))))]
