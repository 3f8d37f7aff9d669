"""Activation patching: an activation of the base's run is replaced by the source's (Vig et al. 2020, arXiv 2004.12265;
Meng et al. 2022, arXiv 2202.05262). Which activations make the source's answer differ from the base's?

Effects are those of `answered`, in both directions. What is patched is the output of a head or an MLP, or the residual
stream, at tokens with a role for column k or at all tokens. Heads are also patched in pairs, because a carry that
follows from two digits may not change if only one head is patched.

Patches share passes: a batch contains the base's rows once for each of several patches, begins at the first layer that
one of them changes, and ends at q_k. The results equal those of one pass per patch (`benchmarks/speed_patching.py`
compares them with TransformerLens' own sweep).

Shapes: B pairs (each in both directions), P patches, C patches of one pass, T tokens, H heads, Z width of a head.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import torch

from lab.errors import TaskError
from lab.probing import interventions
from lab.probing.answered import Answered, Donor, Effects, Runs
from lab.probing.batching import batches
from lab.probing.bridge import Hook, Subject, check_components
from lab.probing.components import INDEXED, Component, Kind, Site
from lab.probing.contrast import EVERYWHERE, Contrasting
from lab.probing.measured import Axes

BATCH = 512
"""Rows per forward pass."""
INPUTS: dict[Kind, str] = {"q": "queries", "k": "keys", "v": "values", "pattern": "pattern"}
"""The inputs of a head that can be patched, and what they are called."""
STRONGEST = "effect of the strongest heads"
"""The name of the effects of heads that were strongest on other pairs; the strongest head comes first."""


class Patch(NamedTuple):
    """Components that are patched together, at one place."""

    components: tuple[Component, ...]
    place: str

    def __str__(self) -> str:
        where = self.place if self.place == EVERYWHERE else f"at {self.place}"
        return f"{' + '.join(map(str, self.components))} {where}"


def patch_heads(subject: Subject, pairs: Contrasting, places: Sequence[str] = (EVERYWHERE,)) -> Effects:
    """The effect of each head at each place, which is a role of the contrast; axes direction, layer, head, place. (The
    first axis has the name that the contrast gives its directions.) Raises the errors of `patch`."""
    axes = {"layer": range(subject.layers), "head": range(subject.heads), "place": places}
    patches = [Patch((Component("head", layer, head),), place) for layer, head, place in product(*axes.values())]
    return patch(subject, pairs, patches, "effect of a head", axes)


def patch_inputs(subject: Subject, pairs: Contrasting, places: Sequence[str] = (EVERYWHERE,)) -> dict[str, Effects]:
    """The effects of each head's queries, keys, values and pattern at each place; axes direction, layer, head, place.
    Heads that share keys and values are one head there. Raises the errors of `patch`."""
    found = {}
    for kind in INPUTS:
        heads = subject.key_value_heads if kind in ("k", "v") else subject.heads
        axes = {"layer": range(subject.layers), "head": range(heads), "place": places}
        patches = [Patch((Component(kind, layer, head),), place) for layer, head, place in product(*axes.values())]
        found[kind] = patch(subject, pairs, patches, f"effect of the {INPUTS[kind]} of a head", axes)
    return found


def patch_neurons(
    subject: Subject, pairs: Contrasting, neurons: Sequence[Component], place: str = EVERYWHERE
) -> Effects:
    """The effect of each neuron of an MLP at a place; axes direction, neuron. Raises the errors of `patch`."""
    patches = [Patch((neuron,), place) for neuron in neurons]
    return patch(subject, pairs, patches, "effect of a neuron", {"neuron": list(map(str, neurons))})


def patch_mlps(subject: Subject, pairs: Contrasting, places: Sequence[str] | None = None) -> Effects:
    """The effect of each MLP at each place, or everywhere and at all roles of the contrast if no places are given; axes
    direction, layer, place. Raises the errors of `patch`."""
    pairs, places = _with_places(subject, pairs, places)
    axes = {"layer": range(subject.layers), "place": places}
    patches = [Patch((Component("mlp", layer),), place) for layer, place in product(*axes.values())]
    return patch(subject, pairs, patches, "effect of an MLP", axes)


def patch_residuals(
    subject: Subject, pairs: Contrasting, places: Sequence[str] | None = None, sites: Sequence[Site] | None = None
) -> Effects:
    """The effect of the residual stream at each site and place, or everywhere and at all roles of the contrast if no
    places are given; axes direction, layer, site, place. Raises the errors of `patch`."""
    pairs, places = _with_places(subject, pairs, places)
    axes = {"layer": range(subject.layers), "site": sites or subject.sites, "place": places}
    patches = [Patch((Component(site, layer),), place) for layer, site, place in product(*axes.values())]
    return patch(subject, pairs, patches, "effect of the stream", axes)


def patch_head_pairs(subject: Subject, pairs: Contrasting, heads: Sequence[Component]) -> Effects:
    """The effect of two heads together, at all tokens; axes direction, first, second. On the diagonal, it is the effect
    of one head alone. Raises the errors of `patch`."""
    axes = {"first": list(map(str, heads)), "second": list(map(str, heads))}
    patches = [Patch(tuple(sorted({one, other})), EVERYWHERE) for one, other in product(heads, heads)]
    return patch(subject, pairs, patches, "effect of two heads", axes)


def patch(
    subject: Subject,
    pairs: Contrasting,
    patches: Sequence[Patch],
    name: str,
    axes: Axes,
    batch_size: int = BATCH,
    donor: Donor | None = None,
) -> Effects:
    """The effects of patches; nan for pairs that do not have the place.

    Args:
        patches: one for each combination of the axes' labels; the last axis varies fastest.
        name: what is measured.
        axes: what the patches differ in; the axis of the contrast's directions is put before these.
        donor: gives the prompts whose activations are patched in; the sources if not given. Effects are normalized by
            the metrics of base and source in any case.

    Raises the same errors as `Answered.of_right_pairs`, ModelError for components that the subject does not have, and
    TaskError for patches without components, or if their number does not fit the axes' labels.
    """
    shape = [len(labels) for labels in axes.values()]
    if not patches or not all(patch.components for patch in patches):
        raise TaskError("nothing to patch: give at least one patch, each with at least one component")
    if len(patches) != math.prod(shape):
        raise TaskError(f"{len(patches)} patches, but the labels of the axes stand for {math.prod(shape)}")
    contrast = pairs.contrast(subject)
    for place in {patch.place for patch in patches}:
        contrast.at_BT(place)
    answered = Answered.of_right_pairs(subject, contrast, batch_size)
    return answered.effects(name, axes, margins(answered, patches, batch_size, donor).reshape(-1, *shape))


def _with_places(
    subject: Subject, pairs: Contrasting, places: Sequence[str] | None
) -> tuple[Contrasting, Sequence[str]]:
    """The contrast, and the places or all that it has."""
    if places is not None:
        return pairs, places
    contrast = pairs.contrast(subject)
    return contrast, (EVERYWHERE, *contrast.places)


@torch.inference_mode()
def margins(
    answered: Answered, patches: Sequence[Patch], batch_size: int = BATCH, donor: Donor | None = None
) -> np.ndarray:
    """The metrics after each patch, (B, P); nan for pairs that do not have the place. `donor`: see `patch`."""
    subject = answered.subject
    donors = donor(answered.contrast) if donor else answered.contrast.source
    check_components(subject, {component for patch in patches for component in patch.components})
    masks = {place: answered.contrast.at_BT(place) for place in {patch.place for patch in patches}}
    names = sorted({component.hook_point for patch in patches for component in patch.components})
    distinct = sorted(set(patches), key=lambda patch: (min(part.layer for part in patch.components), patch))
    found: dict[Patch, list[torch.Tensor]] = {patch: [] for patch in distinct}
    for rows in batches(len(answered), batch_size):
        runs = Runs(answered, rows, [], () if donor else names)
        given = subject.activations(donors.part(rows), names)[1] if donor else runs.source
        at_once = max(1, batch_size // len(runs))
        for few in batches(len(distinct), at_once):
            group = distinct[few]
            lowest = min(component.layer for patch in group for component in patch.components)
            at_CBT = torch.stack([masks[patch.place][rows] for patch in group])
            hooks = replacing([patch.components for patch in group], given, at_CBT)
            changed_CB = runs.rerun(range(lowest, subject.layers), hooks, len(group))
            for patch, changed_B in zip(group, changed_CB, strict=True):
                there_B = masks[patch.place][rows].any(1).to(changed_B.device)
                found[patch].append(torch.where(there_B, changed_B, float("nan")))
    return torch.stack([torch.cat(found[patch]) for patch in patches], dim=1).cpu().numpy()


def replacing(
    groups: Sequence[Sequence[Component]], source: Mapping[str, torch.Tensor], at_CBT: torch.Tensor
) -> list[Hook]:
    """Hooks for a batch with one copy of the rows for each group. They replace the group's components in its copy.

    Args:
        groups: components that are replaced together.
        source: the new activations by hook point: (B, T, H, Z) for heads, (B, T, D) for everything else. A single row
            (B = 1) is used for all rows.
        at_CBT: whether to replace at each token; any dimension may be 1.
    """
    order = ("pre", "q", "k", "v", "pattern", "head", "mid", "neuron", "mlp", "post")
    touched = {component._replace(head=0) for group in groups for component in group}
    in_order = sorted(touched, key=lambda one: (one.layer, order.index(one.kind)))
    return [hook for one in in_order for hook in _hooks(one, _change(groups, one, source[one.hook_point], at_CBT))]


def _change(
    groups: Sequence[Sequence[Component]], touched: Component, source: torch.Tensor, at_CBT: torch.Tensor
) -> interventions.Change:
    """A change of an activation (C B, T, ...), or of a pattern (C B, H, T, T), whose queries are the tokens."""
    turned = source.transpose(1, 2) if touched.kind == "pattern" else source
    several = touched.kind in INDEXED
    parts = range(turned.shape[2] if several else 1)
    in_some = {one.head for group in groups for one in group if one._replace(head=0) == touched}
    is_in_CH = torch.tensor(
        [[part in in_some and touched._replace(head=part) in group for part in parts] for group in groups]
    )
    is_replaced = (at_CBT[..., None] & is_in_CH[:, None, None]).to(source.device)
    is_replaced = is_replaced.reshape(*is_replaced.shape, *[1] * (turned.ndim - 3))

    def change(activation: torch.Tensor) -> torch.Tensor:
        copies = activation.unflatten(0, (len(groups), -1))
        if touched.kind != "pattern":
            return torch.where(is_replaced, source.to(activation.dtype), copies).flatten(0, 1)
        changed = torch.where(is_replaced, turned.to(activation.dtype), copies.transpose(2, 3))
        return changed.transpose(2, 3).flatten(0, 1)

    return change


def _hooks(touched: Component, change: interventions.Change) -> list[Hook]:
    if touched.kind in ("pre", "mid", "post"):
        return interventions.residual(touched.layer, touched.kind, change)
    return [(touched.hook_point, lambda output, hook: change(output))]
