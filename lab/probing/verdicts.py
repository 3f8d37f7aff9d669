"""What instruments found, in sentences, and what to look for in their figures."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lab.probing import illusion
from lab.probing.alignment import Alignment, aligned_heads
from lab.probing.measured import Measured

_NAMED = 4
"""The largest number of components that one instrument's sentences name."""
_HALF = 0.5
"""The share of right digits below which a subject cannot add."""
_LINES = 5
"""How many lines a command ends with."""

LOOK_FOR: Mapping[str, str] = {
    "competence": "Can the subject add at all? Where it cannot, nothing below says how it does.",
    "alignment": "A head that looks at one digit of a column has much attention at that offset, and little in the "
    "controls: spread evenly over the number, and from another column's query. Looking is not using.",
    "destinations": "Where attention goes in all. What leaks to foreign digits grows with length in models that fail.",
    "ablation": "Bars far below 0 are components that are missed; a head that another one stands in for is not.",
    "patching": "1 brings the source's digit about, 0 does nothing. A part of the circuit matters both ways of the "
    "carry, or its partner does: see the pairs of heads.",
    "attribution": "A guess from gradients. Trust it as far as its rank correlation with exact patches goes.",
    "path_patching": "Which sender tells which receiver. Senders by the control's name are outside of the circuit and "
    "should be 0 everywhere.",
    "edges": "Integrated gradients of every edge, then how much of the answer the best edges carry alone: a circuit "
    "that is found reaches 1 with few edges.",
    "probes": "What can be read. It means something only above the same probe on the operands.",
    "interchange": "Which subspace exchanges the carry: its rate counts above what random subspaces, the placebo and "
    "the other neighbour have. A rate alone makes no direction the carry.",
    "illusion": "Is a direction the carry? What it exchanges has to be read from there on, computed before, and better "
    "than the best of 20 random directions.",
    "logit_lens": "The layer from which on a digit can be read off the stream.",
    "logit_attribution": "Which component writes the digit.",
    "fourier": "Power at a period counts above a plain ramp, which has 63 % at the longest, and above random vectors.",
    "surgery": "What recovers at lengths outside of training when the model is given alignment, the carry, or both; "
    "the wrong forms must not help.",
    "remap": "What recovers with other position ids is a failure of positions.",
}


def verdicts(name: str, measured: Sequence[Measured]) -> list[str]:
    """Sentences of an instrument's arrays; none for instruments that only show."""
    return _VERDICTS[name](measured) if name in _VERDICTS else []


def in_short(found: Mapping[str, Sequence[Measured]], failed: Sequence[str] = ()) -> list[str]:
    """What a command ends with: at most five lines, of the instruments that say most.

    Args:
        found: the arrays of each instrument.
        failed: the instruments that could not measure.
    """
    missing = [f"Not measured: {', '.join(failed)}."] if failed else []
    told = [one for name in _ORDER if name in found for one in [_line(name, found[name])] if one]
    return told[: _LINES - len(missing)] + missing


def _line(name: str, measured: Sequence[Measured]) -> str:
    """An instrument's sentences as one, as far as they belong together."""
    found = verdicts(name, measured)
    if name == "alignment" and len(found) > 1:
        return "; ".join(sentence.removesuffix(".") for sentence in found[:2]) + "."
    if name == "illusion":  # one that holds, if there is one
        found = sorted(found, key=lambda sentence: not sentence.endswith("it is the carry."))
    return found[0] if found else ""


_ORDER = ("competence", "patching", "alignment", "illusion", "surgery", "path_patching", "edges", "destinations")
"""Instruments that say something in sentences, those first that say most."""


def unable(name: str, measured: Sequence[Measured]) -> bool:
    """Whether this is the competence of a subject that cannot add at any length."""
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
    where = {0: "of the place that is written", -1: "one place below it", -2: "two places below it"}
    return [
        f"L{one.layer}H{one.head} looks at the digit of {one.number} {where.get(one.offset, 'above it')}: "
        f"{_percent(one.weight)} of its attention."
        for one in sorted(found, key=lambda one: -one.weight)[:_NAMED]
    ]


def _destinations(measured: Sequence[Measured]) -> list[str]:
    """The mean over heads at the shortest and the longest length."""
    leak = measured[1]
    lengths = leak.axes["length"]
    first, last = (float(np.nanmean(leak.at(length=length).value)) for length in (lengths[0], lengths[-1]))
    return [
        f"{_percent(first)} of attention, the mean over all heads, goes to foreign digits at {lengths[0]} digits, "
        f"{_percent(last)} at {lengths[-1]}."
    ]


def _path_patching(measured: Sequence[Measured]) -> list[str]:
    """The strongest path of each sender, and the strongest control."""
    effect, control = (np.nan_to_num(np.abs(one.value)).max(0) for one in measured[:2])
    names, receivers = measured[0].axes["sender"], measured[0].axes["receiver"]
    best = sorted(zip(names, effect.max(1), effect.argmax(1), strict=True), key=lambda row: -row[1])[:_NAMED]
    told = ", ".join(f"{name} to {receivers[at]} {_percent(value)}" for name, value, at in best)
    return [f"The strongest paths: {told}; of heads outside of the circuit {_percent(control.max(initial=0))} at most."]


def _surgery(measured: Sequence[Measured]) -> list[str]:
    """The shortest length at which the subject fails, and what mends it there."""
    exact = measured[0]
    plain = exact.at(operation="vanilla")
    failing = [length for length, value in zip(plain.axes["length"], plain.value, strict=True) if value < _HALF]
    if not failing:
        return ["The subject adds at all of these lengths: there is nothing to mend."]
    share = {name: float(exact.at(operation=name, length=failing[0]).value) for name in exact.axes["operation"]}
    mended = ", ".join(f"{_percent(share[name])} with {name}" for name in _MENDS if name in share)
    wrong = max(value for name, value in share.items() if name not in (*_MENDS, "vanilla"))
    return [
        f"At {failing[0]} digits {_percent(share['vanilla'])} of sums are right, {mended}; the best control has "
        f"{_percent(wrong)}."
    ]


_MENDS = ("no leak", "alignment", "carry", "both")
"""Operations of surgery that should help; the others are controls."""


def _patching(measured: Sequence[Measured]) -> list[str]:
    """The strongest head each way, beside the median one."""
    found: dict[str, list[str]] = {}
    none = []
    for way in measured[0].axes["carry"]:
        one = measured[0].at(place="everywhere", carry=way)
        if np.isnan(one.value).all():
            none.append(f"Of the carry {way}, the subject's answer shows nothing that a patch could bring about.")
            continue
        layer, head = np.unravel_index(int(np.nanargmax(np.abs(one.value))), one.value.shape)
        value, low, high = (100 * array[layer, head] for array in one[2:5])
        middle = _percent(np.nanmedian(np.abs(one.value)))
        told = f"{value:.0f} % ({low:.0f}-{high:.0f}) from {way}, the median head {middle}"
        found.setdefault(f"L{layer}H{head}", []).append(told)
    return [f"{head} brings the carry about: {'; '.join(ways)}." for head, ways in found.items()] + none


def _illusion(measured: Sequence[Measured]) -> list[str]:
    sentences = [claim.sentence() for claim in illusion.claims_of(measured[0])]
    return [f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences]


def _edges(measured: Sequence[Measured]) -> list[str]:
    """The smallest circuit that has nine tenths of the answer."""
    curve = next(one for one in measured if one.name == "faithfulness")
    found = []
    for ablation in curve.axes["ablation"]:
        enough = np.flatnonzero(curve.at(ablation=ablation).value >= 0.9)
        share = f"{100 * curve.axes['share of edges'][enough[0]]:.1f} %" if enough.size else "no part"
        found.append(f"Under {ablation} ablation {share} of the edges do at least 90 % of what the model does.")
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
}
