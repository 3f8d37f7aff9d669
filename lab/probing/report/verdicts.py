"""What the instruments found, in sentences, and what to look for in their figures."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml

from lab.probing.instruments import illusion
from lab.probing.instruments.alignment import Alignment, aligned_heads
from lab.probing.measured import Measured, either_way

_NAMED = 4
"""The largest number of components that the sentences of one instrument name."""
_HALF = 0.5
"""With a smaller share of right digits, a subject counts as unable to add; with a smaller share of the variance, a
reading does not count as an explanation."""
_THE = {"carry": "the carry", "straight line": "a straight line"}
_LINES = 5
"""The largest number of lines in the summary at the end of a command."""

LOOK_FOR: Mapping[str, str] = yaml.safe_load(Path(__file__).with_name("look_for.yaml").read_text(encoding="utf-8"))
"""What to look for in the figures of each instrument."""


def verdicts(name: str, measured: Sequence[Measured]) -> list[str]:
    """What an instrument's arrays say, in sentences; empty for instruments without verdicts."""
    return _VERDICTS[name](measured) if name in _VERDICTS else []


def in_short(found: Mapping[str, Sequence[Measured]], failed: Sequence[str] = ()) -> list[str]:
    """The summary at the end of a command: at most five lines, from the instruments that say most.

    Args:
        found: the arrays of each instrument.
        failed: the instruments that could not measure.
    """
    missing = [f"Not measured: {', '.join(failed)}."] if failed else []
    told = [one for name in _ORDER if name in found for one in [_line(name, found[name])] if one]
    return told[: _LINES - len(missing)] + missing


def _line(name: str, measured: Sequence[Measured]) -> str:
    """The first sentence of an instrument; for alignment, the first two as one."""
    found = verdicts(name, measured)
    if name == "alignment" and len(found) > 1:
        return "; ".join(sentence.removesuffix(".") for sentence in found[:2]) + "."
    if name == "illusion":  # a claim that holds comes first
        found = sorted(found, key=lambda sentence: not sentence.endswith("it is the carry."))
    return found[0] if found else ""


_ORDER = ("competence", "patching", "alignment", "illusion", "surgery", "path_patching", "edges", "destinations")
"""Instruments whose findings are summarized, the most important ones first."""


def unable(name: str, measured: Sequence[Measured]) -> bool:
    """Whether these arrays say that the subject cannot add at any length."""
    return name == "competence" and not bool((measured[1].value >= _HALF).any())


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _competence(measured: Sequence[Measured]) -> list[str]:
    exact, digits = measured
    lengths = exact.axes["length"]
    shown = ", ".join(f"{_percent(value)} at {length}" for length, value in zip(lengths, exact.value, strict=True))
    low = [str(length) for length, value in zip(lengths, digits.value, strict=True) if value < _HALF]
    warning = f" It gets fewer than half of the digits right at {', '.join(low)}." if low else ""
    return [f"Right sums by number of digits: {shown}.{warning}"]


def _alignment(measured: Sequence[Measured]) -> list[str]:
    found = [one for one in aligned_heads(Alignment(*measured[:3])) if one.number != "sum"]
    if not found:
        return ["No head looks at one digit of an operand at all of these lengths."]
    return [
        f"L{one.layer}H{one.head} looks at the digit of {one.number} {_WHERE[one.offset]}: "
        f"{_percent(one.weight)} of its attention."
        for one in sorted(found, key=lambda one: -one.weight)[:_NAMED]
    ]


_WHERE = {
    2: "two places above the one that is written",
    1: "one place above the one that is written",
    0: "of the place that is written",
    -1: "one place below the one that is written",
    -2: "two places below the one that is written",
}


def _destinations(measured: Sequence[Measured]) -> list[str]:
    """The mean over heads at the shortest and the longest length."""
    leak = measured[1]
    lengths = leak.axes["length"]
    first, last = (float(np.nanmean(leak.at(length=length).value)) for length in (lengths[0], lengths[-1]))
    return [
        f"On average over all heads, {_percent(first)} of attention goes to foreign digits at {lengths[0]} digits, "
        f"{_percent(last)} at {lengths[-1]}."
    ]


def _path_patching(measured: Sequence[Measured]) -> list[str]:
    """The strongest path of each sender, and the strongest control."""
    effect, control = (either_way(one.value) for one in measured[:2])
    names, receivers = measured[0].axes["sender"], measured[0].axes["receiver"]
    best = sorted(zip(names, effect.max(1), effect.argmax(1), strict=True), key=lambda row: -row[1])[:_NAMED]
    told = ", ".join(f"{name} to {receivers[at]} {_percent(value)}" for name, value, at in best)
    return [f"The strongest paths: {told}; from heads outside the circuit: at most {_percent(control.max(initial=0))}."]


def _surgery(measured: Sequence[Measured]) -> list[str]:
    """The shortest length at which the subject fails, and what helps there."""
    exact = measured[0]
    plain = exact.at(operation="vanilla")
    failing = [length for length, value in zip(plain.axes["length"], plain.value, strict=True) if value < _HALF]
    if not failing:
        return ["The subject adds at all of these lengths: there is nothing to mend."]
    share = {name: float(exact.at(operation=name, length=failing[0]).value) for name in exact.axes["operation"]}
    mended = ", ".join(f"{_percent(share[name])} with {name}" for name in _MENDS if name in share)
    wrong = max(value for name, value in share.items() if name not in (*_MENDS, "vanilla"))
    return [
        f"At {failing[0]} digits, {_percent(share['vanilla'])} of sums are right, {mended}; {_percent(wrong)} with the "
        "best control."
    ]


_MENDS = ("no leak", "alignment", "carry", "both")
"""Operations of surgery that should help; the others are controls."""


def _patching(measured: Sequence[Measured]) -> list[str]:
    """The head that brings most of the carry about, in each direction, compared with the median head."""
    effect = measured[0].at(place="everywhere")
    found: dict[str, list[str]] = {}
    none = []
    for way in effect.axes["carry"]:
        one = effect.at(carry=way)
        if np.isnan(one.value).all():
            none.append(f"The subject's answer does not change with the carry {way}, so no patch could bring it about.")
            continue
        layer, head = np.unravel_index(int(np.nanargmax(one.value)), one.value.shape)
        value, low, high = (100 * array[layer, head] for array in one[2:5])
        if value <= 0:
            none.append(f"No head brings the carry about {way}.")
            continue
        middle = _percent(np.nanmedian(np.abs(one.value)))
        told = f"{value:.0f} % ({low:.0f}-{high:.0f}) from {way}, the median head {middle}"
        found.setdefault(f"L{layer}H{head}", []).append(told)
    return [f"{head} brings the carry about: {'; '.join(ways)}." for head, ways in found.items()] + none


def _illusion(measured: Sequence[Measured]) -> list[str]:
    sentences = [claim.sentence() for claim in illusion.claims_of(measured[0])]
    return [f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences]


def _edges(measured: Sequence[Measured]) -> list[str]:
    """The smallest circuit that carries nine tenths of the answer."""
    curve = next(one for one in measured if one.name == "faithfulness")
    found = []
    for ablation in curve.axes["ablation"]:
        enough = np.flatnonzero(curve.at(ablation=ablation).value >= 0.9)
        share = (
            f"{100 * curve.axes['share of edges'][enough[0]]:.1f} % of the edges do"
            if enough.size
            else "no circuit does"
        )
        found.append(f"Under {ablation} ablation, {share} at least 90 % of what the model does.")
    return found


def _head_contents(measured: Sequence[Measured]) -> list[str]:
    """What explains most of each head's coordinate, and how much the direction alone does."""
    explained, _, effect = measured
    found = []
    for head in explained.axes["head"]:
        for column in explained.axes["column"]:
            shares = explained.at(head=head, column=column)
            named = {
                name: float(shares.at(reading=name).value)
                for name in ("carry", "straight line", "a's digit", "b's digit")
            }
            most = max(named, key=lambda name: np.nan_to_num(named[name]))
            alone, whole = (
                float(np.nan_to_num(effect.at(head=head, part=part).value).max())
                for part in ("its carry direction", "all of it")
            )
            told = ", ".join(f"{name} {_percent(share)}" for name, share in named.items())
            clear = named[most] >= _HALF
            follows = f"follows {_THE.get(most, most)} best" if clear else "follows neither the carry nor the digits"
            found.append(
                f"What {head} writes for column {column} {follows} ({told}); this direction alone brings "
                f"{_percent(alone)} of the carry about, the whole head {_percent(whole)}."
            )
    return found


_VERDICTS: Mapping[str, Callable[[Sequence[Measured]], list[str]]] = {
    "competence": _competence,
    "alignment": _alignment,
    "destinations": _destinations,
    "path_patching": _path_patching,
    "surgery": _surgery,
    "patching": _patching,
    "illusion": _illusion,
    "edges": _edges,
    "head_contents": _head_contents,
}
