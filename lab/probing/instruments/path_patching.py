"""Path patching: what one component passes directly to another (Wang et al. 2022, arXiv 2211.00593, appendix B;
Goldowsky-Dill et al. 2023, arXiv 2304.05969).

The residual stream is the sum of what components write. If all other components are frozen, patching a sender's output
changes what a later receiver reads by exactly the difference of two writes:

    1. delta     what the sender writes with the source's output, minus what it writes with the base's
    2. receive   compute only the receiver's layer, with delta added to its stream, and keep the receiver's query, key,
                 value or output
    3. go on     patch this query, key, value or output into the base's run, and compute everything after it again

A receiver is the query, key or value input of a head, an MLP, or the logits. In grouped-query attention, the heads of a
group share keys and values, so k and v receivers are groups ("L20H6-8.v"); each head has its own queries. The bridge's
settings stay the same, and weights are never read, so unmerged adapters and quantized weights do not matter.

The control is another head of the sender's layer, drawn from all heads that are not senders, whatever their effects.

Shapes: B pairs (each in both directions), C copies of the base's run, T tokens, D width of the model, H heads, Z width
of a head.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch

from lab.errors import ModelError, TaskError
from lab.numbers.philox import philox
from lab.probing import interventions
from lab.probing.answered import Answered, Runs
from lab.probing.batching import batches
from lab.probing.bridge import Hook, Subject, check_components
from lab.probing.components import Component, Site
from lab.probing.contrast import Contrasting
from lab.probing.instruments.patching import BATCH, replacing
from lab.probing.instruments.writes import EMBEDDING
from lab.probing.measured import Measured

Input: TypeAlias = Literal["q", "k", "v", "mlp", "logits"]


class Receiver(NamedTuple):
    """Where a path ends."""

    input: Input
    layer: int
    head: int = 0
    """The head for q; the key-value head for k and v."""
    serves: int = 1
    """The number of heads that share this key-value head (grouped-query attention)."""

    def __str__(self) -> str:
        if self.input == "logits":
            return "logits"
        if self.input == "mlp":
            return f"L{self.layer} mlp"
        first, last = self.head * self.serves, (self.head + 1) * self.serves - 1
        return f"L{self.layer}H{first}{f'-{last}' * (last > first)}.{self.input}"

    def is_after(self, sender: Component) -> bool:
        """Whether the receiver reads what the sender writes. MLPs read the heads of their own layer; all receivers read
        the embedding."""
        if sender == EMBEDDING:
            return True
        same_layer = self.input == "logits" or (self.input == "mlp" and sender.kind == "head")
        return self.layer > sender.layer or (same_layer and self.layer == sender.layer)


class Paths(NamedTuple):
    """Effects of paths and of their controls."""

    effect: Measured
    """Axes direction, sender, receiver; nan if the receiver is not after the sender."""
    control: Measured
    """The same for the control heads, which are the labels of its axis sender."""
    gap: Measured
    """See `answered.Effects`."""


def receivers(subject: Subject) -> list[Receiver]:
    """All receivers of a subject."""
    groups, layers = _groups(subject), range(subject.layers)
    heads: dict[Input, int] = {"q": subject.heads, "k": groups, "v": groups, "mlp": 1}
    serves = {name: subject.heads // groups if name in ("k", "v") else 1 for name in heads}
    found = [
        Receiver(name, layer, head, serves[name]) for layer in layers for name in heads for head in range(heads[name])
    ]
    return [*found, Receiver("logits", subject.layers - 1)]


def patch_paths(subject: Subject, pairs: Contrasting, senders: Sequence[Component], into: Sequence[Receiver]) -> Paths:
    """The effects of the paths from each sender to each receiver.

    Args:
        senders: heads, MLPs, or the embedding.
        into: the receivers.

    Raises the same errors as `Answered.of_right_pairs`; ModelError for senders and receivers that the subject does not
    have, for MLPs that run in parallel with attention, and if there is no head left for a control; and TaskError if
    there are no senders or no receivers.
    """
    _check(subject, senders, into)
    answered = Answered.of_right_pairs(subject, pairs, BATCH)
    stand_ins = _others(subject, senders)
    distinct = sorted({*senders, *stand_ins})
    changed = margins(answered, distinct, into)

    def effects(name: str, of: Sequence[Component]) -> tuple[Measured, Measured]:
        axes = {"sender": list(map(str, of)), "receiver": list(map(str, into))}
        return answered.effects(name, axes, changed[:, [distinct.index(one) for one in of]])

    effect, gap = effects("effect of a path", senders)
    return Paths(effect, effects("effect of a path from a random head", stand_ins)[0], gap)


@torch.inference_mode()
def margins(
    answered: Answered, senders: Sequence[Component], into: Sequence[Receiver], batch_size: int = BATCH
) -> np.ndarray:
    """The metrics after patching each path, (B, senders, receivers); nan if there is no path."""
    subject = answered.subject
    written = [_written(sender) for sender in senders]
    outputs = [sender.hook_point for sender in senders]
    changed = np.full((len(answered), len(senders), len(into)), np.nan)
    for rows in batches(len(answered), batch_size):
        runs = Runs(answered, rows, written, outputs)
        at_once = max(1, batch_size // len(runs))
        for s, sender in enumerate(senders):
            delta_BTD = _delta(runs, sender)
            after = [receiver for receiver in into if receiver.is_after(sender)]
            for layer in sorted({receiver.layer for receiver in after}):
                here = [receiver for receiver in after if receiver.layer == layer]
                received = _received(runs, here, layer, delta_BTD)
                for few in batches(len(here), at_once):
                    group = here[few]
                    hooks = _receiving(group, layer, received, delta_BTD)
                    found_CB = runs.rerun(range(layer, subject.layers), hooks, len(group)).cpu().numpy()
                    for receiver, found_B in zip(group, found_CB, strict=True):
                        changed[rows, s, into.index(receiver)] = found_B
    return changed


def _delta(runs: Runs, sender: Component) -> torch.Tensor:
    """What the sender writes with the source's output minus what it writes with the base's, (B, T, D). A head's write
    is measured, not computed from weights, because adapters may be beside them."""
    name = _written(sender)
    if sender.kind != "head":
        return runs.source[name] - runs.base[name]
    hooks = replacing([[sender]], runs.source, torch.ones(1, 1, 1, dtype=torch.bool))
    return runs.within(sender.layer, [name], hooks)[name] - runs.base[name]


def _received(runs: Runs, group: Sequence[Receiver], layer: int, delta_BTD: torch.Tensor) -> dict[Input, torch.Tensor]:
    """What the receivers of a layer compute from the stream plus delta: the queries, keys and values of all heads
    (B, T, H, Z), and the output of the MLP (B, T, D)."""
    wanted = {receiver.input for receiver in group}
    found: dict[Input, torch.Tensor] = {}
    sites: tuple[tuple[Site, tuple[Input, ...]], ...] = (("pre", ("q", "k", "v")), ("mid", ("mlp",)))
    for site, inputs in sites:
        points: dict[Input, str] = {name: _hook_point(name, layer) for name in inputs if name in wanted}
        if points:
            hooks = interventions.residual(layer, site, lambda stream_BTD: stream_BTD + delta_BTD)
            kept = runs.within(layer, list(points.values()), hooks)
            found |= {name: kept[point] for name, point in points.items()}
    return found


def _receiving(
    group: Sequence[Receiver], layer: int, received: dict[Input, torch.Tensor], delta_BTD: torch.Tensor
) -> list[Hook]:
    """Hooks for a batch with one copy of the rows for each receiver, in which they patch this receiver."""

    def hook(name: Input) -> Hook:
        def put(activation: torch.Tensor, hook: object) -> torch.Tensor:
            copies = activation.clone().reshape(len(group), -1, *activation.shape[1:])
            for copy, receiver in enumerate(group):
                if receiver.input == name == "logits":
                    copies[copy] += delta_BTD
                elif receiver.input == name == "mlp":
                    copies[copy] = received[name]
                elif receiver.input == name:
                    copies[copy, :, :, receiver.head] = received[name][:, :, receiver.head]
            return copies.reshape(activation.shape)

        return _hook_point(name, layer), put

    return [hook(name) for name in get_args(Input) if any(receiver.input == name for receiver in group)]


def _hook_point(name: Input, layer: int) -> str:
    ends = {"mlp": "hook_mlp_out", "logits": "hook_resid_post"}
    return f"blocks.{layer}.{ends.get(name, f'attn.hook_{name}')}"


def _written(sender: Component) -> str:
    """The hook point at which a sender's write enters the residual stream. Heads of a layer share it."""
    return f"blocks.{sender.layer}.hook_attn_out" if sender.kind == "head" else sender.hook_point


def _groups(subject: Subject) -> int:
    return subject.bridge.cfg.n_key_value_heads or subject.heads


def _check(subject: Subject, senders: Sequence[Component], into: Sequence[Receiver]) -> None:
    if not senders or not into:
        raise TaskError("no paths: give at least one sender and one receiver")
    for sender in senders:
        if sender.kind not in ("head", "mlp") and sender != EMBEDDING:
            raise ModelError(f"{sender} sends nothing of its own; senders should be heads, MLPs and the embedding")
    check_components(subject, senders)
    known = set(receivers(subject))
    if unknown := [receiver for receiver in into if receiver not in known]:
        raise ModelError(
            f"{subject.name} has no receiver {unknown[0]}: it has {subject.layers} layers, with {subject.heads} query "
            f"heads and {_groups(subject)} key-value heads each"
        )
    if subject.more_than_sums is not None:
        raise ModelError(
            f"{subject.name}: layer {subject.more_than_sums} does more to the stream than add what its attention and "
            "its MLP write; paths need a stream that is their sum"
        )
    points = subject.bridge.hook_dict
    if any(one.input == "mlp" and f"blocks.{one.layer}.hook_resid_mid" not in points for one in into):
        raise ModelError(
            f"{subject.name}: its MLPs read the same stream as the heads of their layer (parallel blocks); paths into "
            "MLPs need blocks whose MLP comes after their attention"
        )


def _others(subject: Subject, senders: Sequence[Component]) -> list[Component]:
    """A control head for each sender, from the same layer; none for a sender without another head in its layer."""
    every = [one for one in subject.components if one.kind == "head"]
    chosen = []
    for sender in senders:
        free = [head for head in every if head.layer == sender.layer and head not in senders]
        if free:
            chosen.append(free[int(np.random.Generator(philox("control", 0, str(sender))).integers(len(free)))])
    if not chosen:
        raise ModelError(
            f"{subject.name}: in the layers of {', '.join(map(str, senders))}, no head outside the circuit is left "
            "as a control"
        )
    return list(dict.fromkeys(chosen))
