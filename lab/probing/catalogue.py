"""The instruments of `lab probe` that know no task, by name, and what they share in a run.

An instrument is a function of a session that returns arrays, and a row in INSTRUMENTS. Those of additions are rows of
lab/probing/addition/catalogue.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from lab.probing.answered import Answered
from lab.probing.bridge import Subject
from lab.probing.components import Component
from lab.probing.config import ProbeConfig
from lab.probing.contrast import EVERYWHERE, LAST, Contrasting
from lab.probing.instruments import (
    ablation,
    atp_star,
    attribution,
    edges,
    groups,
    interchange,
    lenses,
    patching,
    path_patching,
    steering,
)
from lab.probing.measured import Measured, max_abs_over_directions
from lab.probing.prompt_pairs import PromptPairs
from lab.probing.task_pairs import task_pairs

STRONGEST = 6
"""Number of heads that are patched token by token and in pairs, and number of senders in path patching."""
_STEPS = 20
"""Points of integrated gradients. With five, even signs may be wrong."""
FEW_LAYERS = 6
"""Number of layers, evenly spaced, for instruments that take many passes per layer."""
_COARSE = "digit "
"""Roles that begin so are left out where each role takes passes of its own."""


class Session(Protocol):
    """A model, pairs, and results that several instruments share."""

    subject: Subject
    batch_size: int
    pairs: Contrasting
    """The pairs on which instruments measure."""
    discovery_pairs: Contrasting
    """Other pairs, on which heads, MLPs and edges are chosen."""
    edge_pairs: Contrasting
    """A few of `discovery_pairs`: gradients of all edges are kept for each pair."""
    edge_test_pairs: Contrasting
    """A few of `pairs`, on which circuits of edges are tested."""


class ContrastSession:
    """A session on pairs of one's own."""

    def __init__(self, subject: Subject, pairs: Contrasting, batch_size: int, examples: int = 0) -> None:
        """The pairs are split: what is found on the first half is measured on the second, or on the same pairs if there
        is only one. `examples`: how many bases' attention is shown.

        Raises the errors of `pairs.contrast`.
        """
        self.subject, self.batch_size, self._examples = subject, batch_size, examples
        contrast = pairs.contrast(subject)
        self.contrast, of_B = contrast, contrast.pair_B.numpy()
        known = np.unique(of_B)
        half = len(known) // 2 or 1
        parts = (known[:half], known[half:] if len(known) > 1 else known)
        self.discovery_pairs, self.pairs = (
            contrast.part(np.flatnonzero(np.isin(of_B, some)).tolist()) for some in parts
        )
        self.edge_pairs, self.edge_test_pairs = (
            contrast.part(np.flatnonzero(np.isin(of_B, some[:EDGE_PAIRS])).tolist()) for some in parts
        )

    @property
    def facts(self) -> list[str]:
        """What a reader of the page should know about the model and the pairs."""
        subject, (found, tested) = self.subject, (len(side) // 2 for side in (self.discovery_pairs, self.pairs))
        return [
            f"{subject.layers} layers of {subject.heads} heads, width {subject.width}",
            f"{found} pairs to find components, {tested} others to measure them; each in both directions",
            f"Roles of tokens: {', '.join(self.contrast.places)}",
        ]

    @torch.inference_mode()
    def attention(self, heads: Sequence[Component] = ()) -> list[tuple[str, list[str], list[str], np.ndarray]]:
        """The attention of heads to a few bases; see `patterns`."""
        asked = self.contrast.base
        return [patterns(self.subject, asked.part([row]), heads) for row in range(min(self._examples, len(asked)))]


EDGE_PAIRS = 16
"""Number of pairs on which edges are attributed."""


@torch.inference_mode()
def patterns(subject: Subject, asked: Any, heads: Sequence[Component]) -> tuple[str, list[str], list[str], np.ndarray]:
    """For one prompt: its text, its tokens, the names of the heads, and their patterns (H, T, T). All heads of the last
    layer if no heads are given."""
    last = subject.layers - 1
    heads = heads or [one for one in subject.components if one.kind == "head" and one.layer == last]
    names = [f"blocks.{head.layer}.attn.hook_pattern" for head in heads]
    tokens = [f"{word} " for word in subject.writer.words(asked.tokens_BT[0].tolist())]
    _, found = subject.activations(asked, sorted(set(names)))
    patterns = [found[name][0, head.head] for name, head in zip(names, heads, strict=True)]
    return "".join(tokens), tokens, list(map(str, heads)), torch.stack(patterns).float().cpu().numpy()


def strongest_heads(session: Any, count: int) -> list[Component]:
    """The heads with the largest effects on the discovery pairs."""
    strongest = np.argsort(-head_effects(session), axis=None, kind="stable")[:count]
    return [Component("head", *divmod(int(index), session.subject.heads)) for index in strongest]


def head_effects(session: Session) -> np.ndarray:
    """The effect of patching each head at all tokens on the discovery pairs, (layers, heads): the larger one of the
    directions. It is measured once in a session."""
    found = vars(session).get("_head_effects")
    if found is None:
        effect = patching.patch_heads(session.subject, session.discovery_pairs).effect
        found = vars(session)["_head_effects"] = max_abs_over_directions(effect.value)[..., 0]
    return found


def coarse_places(session: Session) -> Sequence[str]:
    """The roles without those of single digits."""
    places = session.pairs.contrast(session.subject).places
    return [place for place in places if not place.startswith(_COARSE)] or [LAST]


def _competence(session: Session) -> list[Measured]:
    answered = Answered(session.subject, session.pairs).run(session.batch_size)
    right = answered.by_direction(answered.right_B.astype(float))
    gap = answered.by_direction(answered.clean_B - answered.corrupt_B)
    return [
        Measured.share("pairs answered right", answered.directions, right),
        Measured.mean("metric of the source - metric of the base", answered.directions, gap),
    ]


def _ablation(session: Session) -> list[Measured]:
    groups = [(one,) for one in session.subject.components]
    found = []
    for replacement in ("mean", "resample"):
        left = ablation.ablate(session.subject, session.pairs, groups, replacement)
        found += [part._replace(name=f"{part.name} ({replacement} ablation)") for part in left]
    return found


def _patching(session: Session) -> list[Measured]:
    """All heads at all tokens; then the heads that were strongest on the discovery pairs, role by role and in pairs,
    because a large model has too many heads for that."""
    subject, pairs = session.subject, session.pairs
    heads = patching.patch_heads(subject, pairs)
    strongest, places = strongest_heads(session, STRONGEST), coarse_places(session)
    axes = {"head": list(map(str, strongest)), "place": places}
    patches = [patching.Patch((head,), place) for head in strongest for place in places]
    return [
        *heads,
        patching.patch(subject, pairs, patches, patching.STRONGEST, axes).effect,
        patching.patch_head_pairs(subject, pairs, strongest).effect,
        patching.patch_mlps(subject, pairs, (EVERYWHERE, LAST)).effect,
        patching.patch_residuals(subject, pairs, places, sites=("post",)).effect,
    ]


def _groups(session: Session) -> list[Measured]:
    """A group is found on the discovery pairs, and measured on the others."""
    group = groups.find(session.subject, session.discovery_pairs)
    return [groups.measure(session.subject, session.pairs, group)]


def _inputs(session: Session) -> list[Measured]:
    return [one.effect for one in patching.patch_inputs(session.subject, session.pairs).values()]


def _attribution(session: Session) -> list[Measured]:
    return [*attribution.screen(session.subject, session.pairs, coarse_places(session))]


def _atp_star(session: Session) -> list[Measured]:
    return [*atp_star.atp_star(session.subject, session.pairs)]


def _path_patching(session: Session) -> list[Measured]:
    """Paths from the heads and MLPs that have the largest effects on the discovery pairs."""
    subject = session.subject
    by_mlp = patching.patch_mlps(subject, session.discovery_pairs, (EVERYWHERE,)).effect.value
    mlps = [Component("mlp", layer) for layer in range(subject.layers)]
    effects = dict(zip(mlps, max_abs_over_directions(by_mlp)[:, 0], strict=True))
    effects |= {Component("head", *index): effect for index, effect in np.ndenumerate(head_effects(session))}
    senders = sorted(effects, key=lambda one: -effects[one])[:STRONGEST]
    return [*path_patching.patch_paths(subject, session.pairs, senders, path_patching.receivers(subject))]


def _edges(session: Session) -> list[Measured]:
    """Circuits are tested on other pairs than those on which they were found."""
    found = edges.attributed(session.subject, session.edge_pairs, steps=_STEPS, along_path=True)
    scores_UR = max_abs_over_directions(found.effect.value)
    curve = edges.curve(session.subject, session.edge_test_pairs, scores_UR).faithfulness
    return [found.effect, curve, found.flow]


def _interchange(session: Session) -> list[Measured]:
    subject = session.subject
    layers = range(0, subject.layers, -(-subject.layers // FEW_LAYERS))
    locations = [interchange.Location(layer, "post") for layer in layers]
    both = session.pairs
    return [interchange.interchange(subject, both, locations, batch_size=session.batch_size)]


def _steering(session: Session) -> list[Measured]:
    layers = range(0, session.subject.layers, -(-session.subject.layers // FEW_LAYERS))
    return [steering.steer(session.subject, session.pairs, layers, batch_size=session.batch_size)]


def _logit_lens(session: Session) -> list[Measured]:
    return [*lenses.logit_lens(session.subject, session.pairs, batch_size=session.batch_size)]


def _logit_attribution(session: Session) -> list[Measured]:
    return [lenses.direct_attribution(session.subject, session.pairs, batch_size=session.batch_size)]


INSTRUMENTS: Mapping[str, Callable[[Any], list[Measured]]] = {
    "competence": _competence,
    "patching": _patching,
    "groups": _groups,
    "inputs": _inputs,
    "attribution": _attribution,
    "atp_star": _atp_star,
    "path_patching": _path_patching,
    "edges": _edges,
    "ablation": _ablation,
    "interchange": _interchange,
    "steering": _steering,
    "logit_lens": _logit_lens,
    "logit_attribution": _logit_attribution,
}


def session_of(subject: Subject, config: ProbeConfig) -> Any:
    """The session of a config with pairs. Raises the errors of `task_pairs`, `PromptPairs.file` and
    `ContrastSession`."""
    asked = config.pairs
    assert asked is not None
    if asked.file:
        pairs: Contrasting = PromptPairs.file(asked.file, roles=asked.roles, read=asked.read)
    else:
        pairs = task_pairs(asked.task, asked.change, asked.length, asked.count, config.seed, asked.right)
    return ContrastSession(subject, pairs, config.batch_size, config.examples)
