"""What the instruments found, in sentences."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lab.probing.components import Component
from lab.probing.instruments import illusion
from lab.probing.instruments.alignment import Alignment, aligned_heads
from lab.probing.instruments.edges import leaks
from lab.probing.instruments.head_contents import EVERY_TOKEN, READINGS
from lab.probing.instruments.patching import STRONGEST
from lab.probing.measured import Measured, max_abs_over_directions
from lab.probing.report.telling import percent, told, told_direction

_NAMED = 4
"""The largest number of components that the sentences of one instrument name."""
_HALF = 0.5
"""The smallest share of right digits with which a subject counts as able to add, and the smallest share of the variance
with which a reading counts as an explanation."""
_BRINGS = 0.1
"""The smallest effect with which a head brings the carry about."""
_THE = {"carry": "the carry", "straight line": "a straight line"}
_LEAK = 0.1
"""The smallest difference between the flows into a node and out of it that is a warning."""
_LINES = 5
"""The largest number of lines in the summary at the end of a command."""


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
    lines = [one for name in _ORDER if name in found for one in [_line(name, found[name])] if one]
    return lines[: _LINES - len(missing)] + missing


def _line(name: str, measured: Sequence[Measured]) -> str:
    """The first sentence of an instrument; for alignment, the first two as one."""
    found = verdicts(name, measured)
    if name == "alignment" and len(found) > 1:
        return "; ".join(sentence.removesuffix(".") for sentence in found[:2]) + "."
    if name == "illusion":  # a claim that holds comes first
        found = sorted(found, key=lambda sentence: not sentence.endswith(f"{illusion.PASSED}."))
    return found[0] if found else ""


_ORDER = ("competence", "patching", "alignment", "illusion", "surgery", "path_patching", "edges", "destinations")
"""The instruments that the summary quotes, the most important ones first."""


def unable(name: str, measured: Sequence[Measured]) -> bool:
    """Whether these arrays say that the subject cannot add at any length."""
    return name == "competence" and not bool((measured[1].value >= _HALF).any())


def _competence(measured: Sequence[Measured]) -> list[str]:
    exact, digits = measured
    lengths = exact.axes["length"]
    shown = ", ".join(f"{percent(value)} at {length}" for length, value in zip(lengths, exact.value, strict=True))
    low = [str(length) for length, value in zip(lengths, digits.value, strict=True) if value < _HALF]
    warning = f" It gets fewer than half of the digits right at {', '.join(low)}." if low else ""
    return [f"Right sums by number of digits: {shown}.{warning}"]


def _alignment(measured: Sequence[Measured]) -> list[str]:
    found = [one for one in aligned_heads(Alignment(*measured[:3])) if one.number != "sum"]
    if not found:
        return ["On average over these lengths, no head looks at one digit of an operand."]
    return [
        f"L{one.layer}H{one.head} looks at the digit of {one.number} {_WHERE[one.offset]}: "
        f"{percent(one.weight)} of its attention."
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
    """The mean leak of all heads at the shortest and the longest length."""
    leak = measured[1]
    lengths = leak.axes["length"]
    first, last = (float(np.nanmean(leak.at(length=length).value)) for length in (lengths[0], lengths[-1]))
    return [
        f"On average over all heads, {percent(first)} of attention goes to foreign digits at {lengths[0]} digits, "
        f"{percent(last)} at {lengths[-1]}."
    ]


def _path_patching(measured: Sequence[Measured]) -> list[str]:
    """The strongest path of each sender, and the strongest control. A negative path works against the carry."""
    effect, control = told(measured[0]), max_abs_over_directions(measured[1].value)
    names, receivers = measured[0].axes["sender"], measured[0].axes["receiver"]
    strongest = [
        (name, receivers[at], row[at]) for name, row, at in zip(names, effect, np.abs(effect).argmax(1), strict=True)
    ]
    best = sorted(strongest, key=lambda path: -abs(path[2]))[:_NAMED]
    paths = ", ".join(f"{name} to {receiver} {percent(value)}" for name, receiver, value in best)
    others = f"from other heads of the same layers: at most {percent(control.max(initial=0))}"
    return [f"The strongest paths: {paths}; {others}."]


def _surgery(measured: Sequence[Measured]) -> list[str]:
    """The shortest length at which the subject fails, and what helps there."""
    exact = measured[0]
    plain = exact.at(operation="vanilla")
    failing = [length for length, value in zip(plain.axes["length"], plain.value, strict=True) if value < _HALF]
    if not failing:
        return ["The subject adds at all of these lengths: there is nothing to mend."]
    share = {name: float(exact.at(operation=name, length=failing[0]).value) for name in exact.axes["operation"]}
    mended = ", ".join(f"{percent(share[name])} with {name}" for name in _MENDS if name in share)
    wrong = max(value for name, value in share.items() if name not in (*_MENDS, "vanilla"))
    return [
        f"At {failing[0]} digits, {percent(share['vanilla'])} of sums are right, {mended}; {percent(wrong)} with the "
        "best control."
    ]


_MENDS = ("no leak", "alignment", "carry", "both")
"""Operations of surgery that should help; the others are controls."""


def _patching(measured: Sequence[Measured]) -> list[str]:
    """The effect of the head that was strongest on other pairs, in each direction of the carry, compared with the
    median head. Only pairs count in which the subject gets both sums right."""
    effect = measured[0].at(place="everywhere")
    name = next(one for one in measured if one.name == STRONGEST).axes["head"][0]
    head = Component.named(name)
    found, none = [], []
    for direction in effect.axes["carry"]:
        one = effect.at(carry=direction)
        value, low, high = (float(array[head.layer, head.head]) for array in one[2:5])
        if not (value >= _BRINGS and low > 0):
            doubt = f"does not clearly bring the carry about {direction}"
            none.append(f"{name}, the strongest head on other pairs, {doubt}.")
            continue
        middle = percent(np.nanmedian(np.abs(one.value)))
        bounds = f"{percent(low, '')[:-1]}-{percent(high, '')[:-1]}"
        found.append(f"{percent(value)} ({bounds}) from {direction}, the median head {middle}")
    right = f"(the {int(effect.n.max())} pairs of which both sums are right)"
    return [f"{name} brings the carry about: {'; '.join(found)} {right}."] * bool(found) + none


def _illusion(measured: Sequence[Measured]) -> list[str]:
    sentences = [claim.sentence() for claim in illusion.claims_of(measured[0])]
    return [f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences]


def _edges(measured: Sequence[Measured]) -> list[str]:
    """The smallest circuit such that it and all larger ones clearly do nine tenths of what the model does, and whether
    attribution adds up at every node."""
    curve = next(one for one in measured if one.name == "faithfulness")
    found = []
    for ablation in curve.axes["ablation"]:
        short = np.flatnonzero(~(curve.at(ablation=ablation).low >= 0.9))
        first = int(short[-1]) + 1 if short.size else 0
        sizes = curve.axes["share of edges"]
        share = f"{100 * sizes[first]:.1f} % of the edges do" if first < len(sizes) else "no circuit clearly does"
        found.append(f"Under {ablation} ablation, {share} at least 90 % of what the model does.")
    flow = [_flow(one) for one in measured if one.name == "flow through a node"]
    return [*found, *(flow or [_embedding(measured[0])])]


def _embedding(attributed: Measured) -> str:
    """What the edges of the embedding add up to, for runs that did not measure the flow. It should be 1, and may be
    even if scores are wrong."""
    total = np.nansum(attributed.value[:, attributed.axes["sender"].index("L0 pre")], -1)
    sums = " and ".join(f"{value:.2f}" for value in total)
    doubt = "" if np.abs(total - 1).max() < 0.1 else ", so these scores are not exact: take more steps"
    return f"The attributed effects of the embedding's edges add up to {sums} (1 if exact){doubt}."


def _flow(flow: Measured) -> str:
    """Whether as much flows into each node as out of it, and the node where it does not most."""
    gap, node, into, out = leaks(flow)[0]
    flows = f"{percent(into)} of the effect flows into it, {percent(out)} out of it"
    if gap > _LEAK:
        return (
            f"Warning: the scores of the edges of {node} are not exact: {flows}. Take more steps, or patch its paths."
        )
    return f"The edges add up: even at the worst node, {node}, {flows}."


def _head_contents(measured: Sequence[Measured]) -> list[str]:
    """What explains most of each head's coordinate at q_k, and the effects of exchanging this direction alone, all that
    the head writes there, and all that it writes anywhere."""
    explained, _, effect, lead = measured[:4]
    found = []
    for head in explained.axes["head"]:
        for column in explained.axes["column"]:
            shares = explained.at(head=head, column=column)
            named = {name: float(shares.at(reading=name).value) for name in READINGS if name != "digit sum"}
            ranked = sorted(named, key=lambda name: -np.nan_to_num(named[name]))
            readings = ", ".join(f"{name} {percent(share)}" for name, share in named.items())
            first, second = (_THE.get(name, name) for name in ranked[:2])
            follows = f"follows {first} best"
            if not float(lead.at(head=head, column=column).low) > 0:
                follows = f"follows {first} or {second}, which these sums do not tell apart"
            if not named[ranked[0]] >= _HALF:
                follows = "follows neither the carry nor the digits"
            at_query = f"What {head} writes at the token that predicts column {column}"
            found.append(f"{at_query} {follows} ({readings}). {_exchanged(effect.at(head=head))}")
    return found


def _exchanged(effect: Measured) -> str:
    """What exchanging parts of one head's output does, in the direction in which patching the head is told."""
    parts = effect.axes["part"]
    whole = effect.at(part=EVERY_TOKEN if EVERY_TOKEN in parts else "all of it")
    where = ""
    if "carry" in effect.axes:
        direction = told_direction(whole)
        effect, where = effect.at(carry=direction), f" from {direction}"
    share = {part: float(np.nan_to_num(effect.at(part=part).value).max()) for part in parts}
    here, anywhere = share["all of it"], share.get(EVERY_TOKEN)
    start = (
        f"This direction alone brings {percent(share['its carry direction'])} of the carry about{where}, all that it "
    )
    if anywhere is None:
        return f"{start}writes there {percent(here)}."
    elsewhere = " The difference comes from other tokens." if abs(anywhere - here) >= _BRINGS else ""
    return f"{start}writes there {percent(here)}, at all tokens {percent(anywhere)}.{elsewhere}"


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
