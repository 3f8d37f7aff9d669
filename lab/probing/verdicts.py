"""What instruments found, in sentences, and what to look for in their figures."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lab.probing import illusion
from lab.probing.measured import Measured

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


def _competence(measured: Sequence[Measured]) -> list[str]:
    exact, digits = measured
    lengths = exact.axes["length"]
    shown = ", ".join(f"{value:.0%} at {length}" for length, value in zip(lengths, exact.value, strict=True))
    low = [str(length) for length, value in zip(lengths, digits.value, strict=True) if value < 0.5]
    warning = f" It gets fewer than half of the digits right at {', '.join(low)}." if low else ""
    return [f"Right sums by number of digits: {shown}.{warning}"]


def _patching(measured: Sequence[Measured]) -> list[str]:
    """The strongest head each way, beside the median one."""
    effect = measured[0].at(place="everywhere")
    found = []
    for way in effect.axes["carry"]:
        one = effect.at(carry=way)
        if np.isnan(one.value).all():
            found.append(f"Of the carry {way}, the subject's answer shows nothing that a patch could bring about.")
            continue
        layer, head = np.unravel_index(int(np.nanargmax(np.abs(one.value))), one.value.shape)
        value, low, high = (array[layer, head] for array in one[2:5])
        middle = np.nanmedian(np.abs(one.value))
        found.append(
            f"L{layer}H{head} brings the carry {way} about by {value:.0%} ({low:.0%} to {high:.0%}); the median head "
            f"by {middle:.0%}."
        )
    return found


def _illusion(measured: Sequence[Measured]) -> list[str]:
    return [f"{claim.sentence()}." for claim in illusion.claims_of(measured[0])]


def _edges(measured: Sequence[Measured]) -> list[str]:
    """The smallest circuit that has nine tenths of the answer."""
    curve = next(one for one in measured if one.name == "faithfulness")
    found = []
    for ablation in curve.axes["ablation"]:
        enough = np.flatnonzero(curve.at(ablation=ablation).value >= 0.9)
        share = f"{curve.axes['share of edges'][enough[0]]:.1%} of the edges" if enough.size else "no part of the edges"
        found.append(f"Under {ablation} ablation {share} do at least 90 % of what the model does.")
    return found


_VERDICTS: Mapping[str, Callable[[Sequence[Measured]], list[str]]] = {
    "competence": _competence,
    "patching": _patching,
    "illusion": _illusion,
    "edges": _edges,
}
