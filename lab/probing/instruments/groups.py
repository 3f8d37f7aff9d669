"""Groups of heads that do together what none of them does alone.

If three heads vote, and one vote or two change nothing, then every single patch and every pair has the effect 0:
patching one head at a time does not see such a circuit. So the search begins with all candidates patched, and takes
away what is not needed:

    1. order   candidates by the size of their attributed effect, the smallest first. The gradient is taken half-way
               between base and source, because a switch has no slope at either end
    2. drop    a part of them, at first half, if the rest still has `KEEP` of the effect of all; then smaller parts,
    down
               to single ones (as in delta debugging; Zeller and Hildebrandt 2002), until none can be dropped

What is left is a smallest group in the sense that it needs each of its members; other groups may do as well. It is
found on some pairs and measured on others (`measure`), against its best single member, the group without each member,
and random groups of as many heads.

Shapes: B rows, C copies of the base's run.
"""

from collections.abc import Sequence

import numpy as np
import torch

from lab.errors import TaskError
from lab.numbers.philox import philox
from lab.probing.answered import Answered
from lab.probing.bridge import Subject
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE, Contrasting
from lab.probing.instruments.attribution import attributions
from lab.probing.instruments.patching import BATCH, Patch, margins
from lab.probing.measured import Measured

KEEP = 0.9
"""The share of the effect of all candidates that a group must have."""
RANDOM = 5
"""Number of random groups."""
Group = tuple[Component, ...]


def find(
    subject: Subject,
    pairs: Contrasting,
    candidates: Sequence[Component] | None = None,
    place: str = EVERYWHERE,
    batch_size: int = BATCH,
) -> Group:
    """The group that the search finds.

    Args:
        candidates: all heads if not given.
        place: the role of the tokens that are patched.

    Raises the same errors as `patching.patch`, and TaskError if even all candidates together have less than half of the
    whole effect.
    """
    candidates = [one for one in subject.components if one.kind == "head"] if candidates is None else list(candidates)
    answered = Answered.of_right_pairs(subject, pairs, batch_size)
    kept = _ordered(answered, candidates, place)
    whole = _effects(answered, [kept], place, batch_size)[0]
    if not whole >= 0.5:
        raise TaskError(f"all candidates together have {100 * whole:.0f} % of the effect; a group needs at least half")
    size = max(1, len(kept) // 2)
    while True:
        before = len(kept)
        for chunk in [kept[start : start + size] for start in range(0, len(kept), size)]:
            rest = [one for one in kept if one not in chunk]
            if rest and _effects(answered, [rest], place, batch_size)[0] >= KEEP * whole:
                kept = rest
        if size == 1 and len(kept) == before:
            return tuple(sorted(kept))
        size = max(1, size // 2)


def measure(
    subject: Subject, pairs: Contrasting, group: Group, place: str = EVERYWHERE, batch_size: int = BATCH, seed: int = 0
) -> Measured:
    """The effects of a group, of each member alone, of the group without each member, and of random groups of as many
    other heads; axes direction, patched.

    Raises the same errors as `patching.patch`, and TaskError for an empty group.
    """
    if not group:
        raise TaskError("an empty group has no effect to measure")
    answered = Answered.of_right_pairs(subject, pairs, batch_size)
    patched = {"the group": group} | {f"{one} alone": (one,) for one in group}
    if len(group) > 1:
        patched |= {f"without {one}": tuple(other for other in group if other != one) for one in group}
    heads = [one for one in subject.components if one.kind == "head"]
    for draw in range(RANDOM):
        drawn = np.random.Generator(philox("groups", seed, draw)).permutation(len(heads)).tolist()
        others = [heads[one] for one in drawn if heads[one] not in group]
        # a group of most heads has fewer others than members
        patched[f"random {draw}"] = tuple(sorted([*others, *group][: len(group)]))
    patches = [Patch(tuple(sorted(one)), place) for one in patched.values()]
    found = margins(answered, patches, batch_size)
    return answered.effects("effect of a group", {"patched": list(patched)}, found).effect


def _effects(answered: Answered, groups: Sequence[Sequence[Component]], place: str, batch_size: int) -> np.ndarray:
    """The mean effect of each group over all rows."""
    found_BG = margins(answered, [Patch(tuple(sorted(group)), place) for group in groups], batch_size)
    gap_B = answered.clean_B - answered.corrupt_B
    moved_BG = (found_BG - answered.corrupt_B[:, None]) * np.sign(gap_B)[:, None]
    return np.nansum(moved_BG, 0) / np.abs(gap_B).sum()


def _ordered(answered: Answered, candidates: Sequence[Component], place: str) -> list[Component]:
    """The candidates by the size of their attributed effects, the smallest first. Components without an attribution,
    such as streams, come last."""
    subject = answered.subject
    with torch.inference_mode(False):
        guessed_BN = attributions(answered, (place,), half_way=True)
    of = [one for one in subject.components if one.kind == "head"]
    of += [one for one in subject.components if one.kind == "mlp"]
    size = dict(zip(of, np.abs(np.nan_to_num(guessed_BN)).mean(0), strict=True))
    return sorted(candidates, key=lambda one: size.get(one, np.inf))
