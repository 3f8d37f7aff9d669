"""What the instruments found, in sentences that can be quoted: each of at most 30 words, with the number that the
drawing and the tables have, its interval and n, and the control."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lab.probing.addition import illusion
from lab.probing.addition.alignment import Alignment, aligned_heads
from lab.probing.addition.head_contents import EVERY_TOKEN, READINGS
from lab.probing.components import Component
from lab.probing.instruments.edges import leaks
from lab.probing.instruments.patching import STRONGEST
from lab.probing.measured import Measured
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
    """The first sentence of an instrument."""
    found = verdicts(name, measured)
    if name == "illusion":  # a claim that holds comes first
        found = sorted(found, key=lambda sentence: not sentence.endswith(f"{illusion.PASSED}."))
    return found[0] if found else ""


_ORDER = (
    "competence",
    "patching",
    "groups",
    "alignment",
    "illusion",
    "surgery",
    "path_patching",
    "edges",
    "destinations",
)
"""The instruments that the summary quotes, the most important ones first."""


def unable(name: str, measured: Sequence[Measured]) -> bool:
    """Whether these arrays say that the subject cannot add at any length."""
    return name == "competence" and not bool((measured["length" in measured[0].axes].value >= _HALF).any())


def _competence(measured: Sequence[Measured]) -> list[str]:
    right, digits = measured
    if "length" not in right.axes:
        ((axis, ways),) = right.axes.items()
        shares = [(way, _told(right.at(**{axis: way}))) for way in ways]
        return [f"The model answers both prompts right in {share} of pairs, {way}." for way, share in shares]
    lengths = right.axes["length"]
    shown = lengths if len(lengths) <= _NAMED else [*lengths[:2], *lengths[-2:]]
    parts = ", ".join(f"{_told(right.at(length=length), n=False)} at {length}" for length in shown)
    low = [str(length) for length, value in zip(lengths, digits.value, strict=True) if value < _HALF]
    warning = [f"It gets fewer than half of the digits right at {', '.join(low)} digits."] if low else []
    return [f"Right sums by digits: {parts} (n = {int(right.n.max())} each).", *warning]


def _alignment(measured: Sequence[Measured]) -> list[str]:
    attention, _, permuted = measured[:3]
    found = [one for one in aligned_heads(Alignment(*measured[:3])) if one.number != "sum"]
    if not found:
        return ["On average over these lengths, no head looks at one digit of an operand."]
    sentences = []
    for one in sorted(found, key=lambda one: -one.weight)[:_NAMED]:
        at = {"layer": one.layer, "head": one.head, "number": one.number, "offset": one.offset}
        low, high = (float(np.nanmean(array)) for array in attention.at(**at)[3:5])
        control, n = float(np.nanmean(permuted.at(**at).value)), int(np.nansum(attention.at(**at).n))
        sentences.append(
            f"L{one.layer}H{one.head} looks at {one.number}'s digit {_WHERE[one.offset]}: "
            f"{_with_interval(one.weight, low, high, n)} of its attention; {percent(control)} from another column."
        )
    return sentences


_WHERE = {
    2: "two places above the one written",
    1: "one place above the one written",
    0: "of the place written",
    -1: "one place below the one written",
    -2: "two places below the one written",
}


def _with_interval(value: float, low: float, high: float, n: int | None) -> str:
    """A share with its interval and n, such as "47 % (37-57, n = 10)"."""
    bounds = f"{percent(low, '')[:-1]}-{percent(high, '')[:-1]}"
    return f"{percent(value)} ({bounds}{f', n = {n}' if n is not None else ''})"


def _told(one: Measured, n: bool = True) -> str:
    """A single value, with its interval and n."""
    return _with_interval(float(one.value), float(one.low), float(one.high), int(one.n) if n else None)


def _what(measured: Measured) -> str:
    """What an effect moves, by the axis of its directions."""
    return "the carry" if "carry" in measured.axes else "the answer"


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
    """The strongest path of each sender in the direction in which it is told, and the strongest control. A negative
    path works against the answer."""
    effect, control = measured[:2]
    axis, best = next(iter(effect.axes)), told(effect)
    others = percent(np.abs(np.nan_to_num(control.value)).max(initial=0))
    strongest = sorted(
        ((row, int(np.abs(best[row]).argmax())) for row in range(len(best))), key=lambda at: -abs(best[at])
    )[:_NAMED]
    found = []
    for row, column in strongest:
        sender, receiver = effect.axes["sender"][row], effect.axes["receiver"][column]
        one = effect.at(sender=sender, receiver=receiver)
        if not best[row, column]:
            found.append(
                f"No path from {sender} clearly passes on {_what(effect)}; other heads of its layer: {others}."
            )
            continue
        way = told_direction(one)
        found.append(
            f"{sender} passes {_told(one.at(**{axis: way}))} of {_what(effect)} to {receiver}, {way}; heads at random "
            f"at most {others}."
        )
    return found


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
    """The effect of the head that was strongest on other pairs, in each direction, compared with the median head. Only
    pairs count that the subject answers right."""
    effect = measured[0].at(place="everywhere")
    axis = next(name for name in effect.axes if name not in ("layer", "head"))
    name = next(one for one in measured if one.name == STRONGEST).axes["head"][0]
    head, found = Component.named(name), []
    for way in effect.axes[axis]:
        one = effect.at(**{axis: way})
        own, middle = one.at(layer=head.layer, head=head.head), percent(np.nanmedian(np.abs(one.value)))
        if not (float(own.value) >= _BRINGS and float(own.low) > 0):
            doubt = f"does not clearly move {_what(effect)}, {way}: {_told(own)}"
            found.append(f"{name}, the strongest head on other pairs, {doubt}; the median head {middle}.")
        else:
            found.append(f"{name} moves {_told(own)} of {_what(effect)}, {way}; the median head {middle}.")
    return found


def _illusion(measured: Sequence[Measured]) -> list[str]:
    sentences = [claim.sentence() for claim in illusion.claims_of(measured[0])]
    return [f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences]


def _edges(measured: Sequence[Measured]) -> list[str]:
    """The smallest circuit such that it and all larger ones clearly do nine tenths of what the model does, and whether
    attribution adds up at every node."""
    curve = next(one for one in measured if one.name == "faithfulness")
    found, sizes = [], curve.axes["share of edges"]
    for ablation in curve.axes["ablation"]:
        of = curve.at(ablation=ablation)
        short = np.flatnonzero(~(of.low >= 0.9))
        first = int(short[-1]) + 1 if short.size else 0
        if first == len(sizes):
            found.append(f"Under {ablation} ablation, no circuit clearly does 90 % of what the model does.")
            continue
        kept, none = _told(of.at(**{"share of edges": sizes[first]})), float(of.value[0])
        found.append(
            f"Under {ablation} ablation, {100 * sizes[first]:.1f} % of the edges do {kept} of what the model does; "
            f"{100 * sizes[0]:g} % do {percent(none)}."
        )
    flow = [_flow(one) for one in measured if one.name == "flow through a node"]
    return [*found, *(flow or [_embedding(measured[0])])]


def _embedding(attributed: Measured) -> str:
    """What the edges of the embedding add up to, for runs that did not measure the flow. It should be 1, and may be
    even if scores are wrong."""
    total = np.nansum(attributed.value[:, attributed.axes["sender"].index("L0 pre")], -1)
    sums = " and ".join(f"{value:.2f}" for value in total)
    doubt = "" if np.abs(total - 1).max() < 0.1 else "; take more steps"
    return f"The effects of the embedding's edges add up to {sums} (1 if exact){doubt}."


def _flow(flow: Measured) -> str:
    """Whether as much flows into each node as out of it, and the node where it does not most."""
    gap, node, into, out = leaks(flow)[0]
    flows = f"{percent(into)} of the effect flows into it, {percent(out)} out of it"
    if gap > _LEAK:
        return f"The scores of {node}'s edges are not exact: {flows}; take more steps, or patch its paths."
    return f"The edges add up: even at the worst node, {node}, {flows}."


def _head_contents(measured: Sequence[Measured]) -> list[str]:
    """What explains most of each head's coordinate at q_k; then the effects of exchanging this direction alone, all
    that the head writes there, and all that it writes anywhere."""
    explained, _, effect, lead = measured[:4]
    found = []
    for head in explained.axes["head"]:
        for column in explained.axes["column"]:
            shares = explained.at(head=head, column=column)
            named = {name: float(shares.at(reading=name).value) for name in READINGS if name != "digit sum"}
            first, second, *_ = sorted(named, key=lambda name: -np.nan_to_num(named[name]))
            numbers = _told(shares.at(reading=first)), percent(named[second])
            one, other = (_THE.get(name, name) for name in (first, second))
            follows = f"follows {one} best: {numbers[0]} of its variance, {other} {numbers[1]}"
            if not float(lead.at(head=head, column=column).low) > 0:
                share = f"{numbers[0]} and {numbers[1]}"
                follows = f"follows {one} or {other}, which these sums do not tell apart: {share}"
            if not named[first] >= _HALF:
                follows = f"follows neither the carry nor the digits: at most {numbers[0]} of its variance"
            found.append(f"What {head} writes for column {column} {follows}.")
        found.append(_exchanged(head, effect.at(head=head)))
    return found


def _exchanged(head: str, effect: Measured) -> str:
    """What exchanging parts of one head's output does, in the direction in which patching the head is told."""
    if "column" in effect.axes:
        effect = effect.at(column=effect.axes["column"][0])
    parts = effect.axes["part"]
    whole = effect.at(part=EVERY_TOKEN if EVERY_TOKEN in parts else "all of it")
    where = ""
    if "carry" in effect.axes:
        way = told_direction(whole)
        effect, where = effect.at(carry=way), f", {way}"
    direction, here = _told(effect.at(part="its carry direction")), percent(float(effect.at(part="all of it").value))
    anywhere = f", at all tokens {percent(float(effect.at(part=EVERY_TOKEN).value))}" if EVERY_TOKEN in parts else ""
    return f"This direction of {head} moves {direction} of the carry{where}; all that it writes there {here}{anywhere}."


def _groups(measured: Sequence[Measured]) -> list[str]:
    """The effect of the group, its best member and the best random group, in each direction."""
    effect, found = measured[0], []
    axis, labels = next(iter(effect.axes)), effect.axes["patched"]
    members = [name.removesuffix(" alone") for name in labels if name.endswith(" alone")]
    for way in effect.axes[axis]:
        one = effect.at(**{axis: way})
        best, random = (
            percent(max(float(one.at(patched=name).value) for name in labels if fits(name)))
            for fits in (lambda name: name.endswith(" alone"), lambda name: name.startswith("random"))
        )
        named = " + ".join(members[:_NAMED]) + f" and {len(members) - _NAMED} more" * (len(members) > _NAMED)
        found.append(
            f"{named} together move {_told(one.at(patched='the group'))} of {_what(effect)}, {way}; the best of them "
            f"alone {best}, random groups at most {random}."
        )
    return found


_VERDICTS: Mapping[str, Callable[[Sequence[Measured]], list[str]]] = {
    "competence": _competence,
    "alignment": _alignment,
    "destinations": _destinations,
    "path_patching": _path_patching,
    "surgery": _surgery,
    "patching": _patching,
    "groups": _groups,
    "illusion": _illusion,
    "edges": _edges,
    "head_contents": _head_contents,
}
