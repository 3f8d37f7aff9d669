"""Which edges of a model carry an answer: the attributed effect of every edge, and the faithfulness of small circuits.

The residual stream is a sum of writes (`writes`), so a model is a graph: senders (embedding, heads, MLPs) write, and
receivers (the queries, keys and values of heads, MLPs, the logits) read. To patch the edge u -> r means to add

    source's write of u - base's write of u

to what r reads, and nowhere else. `path_patching` does this, one edge per pass. Edge attribution estimates the effects
of all edges from gradients:

    EAP      sum over tokens of (difference of u's writes) . (gradient of the margin in r's input at the base)
             (edge attribution patching; Syed et al. 2023, arXiv 2310.10348)
    EAP-IG   the same with the mean gradient over `steps` points between the base's embeddings and the source's: a
             switch that is flat at both ends has a slope at its threshold (Hanna et al. 2024, arXiv 2403.17806, who
             take the upper ends of equal steps; here their midpoints are taken, which integrate better)

    along the path
             at each of the points, the gradient times what u's writes change from there to the next point: what flows
             into a node then also flows out of it (conductance of Dhamdhere et al. 2018, arXiv 1805.12233, on edges)

If estimates are exact, as much effect flows into a node as out of it (`Attributed.flow`), and the edges of the
embedding add up to 1. The second alone proves nothing. Let attention compare two digits, and something later read the
result as a switch: a small part of the way turns both. Then the whole effect reaches the head, and next to nothing
leaves it, because EAP-IG multiplies the whole difference of the head's writes by a gradient that is almost nowhere
there.

An estimate is as good as the circuit that it selects. `faithfulness` keeps the edges of a circuit, gives all others
what they carry in the base's run (resample ablation) or on average (mean ablation), and measures how much of the margin
is left.

Shapes: B pairs (each in both directions), T tokens, D width, H heads, Z width of a head, U senders, R receivers.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch

from lab.errors import ModelError, TaskError, check_one_of
from lab.probing.answered import Answered, Runs
from lab.probing.batching import batches, check_positive
from lab.probing.bridge import Hook, Subject, keeping
from lab.probing.components import Component
from lab.probing.contrast import Contrasting
from lab.probing.instruments import writes
from lab.probing.instruments.ablation import means_by_layout
from lab.probing.instruments.path_patching import receivers
from lab.probing.instruments.writes import EMBEDDING
from lab.probing.measured import Measured, joined

Ablation: TypeAlias = Literal["resample", "mean"]
ABLATIONS: tuple[Ablation, ...] = ("resample", "mean")
SIZES = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Shares of all edges at which faithfulness is measured (Mueller et al. 2025, MIB, arXiv 2504.13151)."""
WAYS = ("in", "out")
_PROJECTIONS = ("q", "k", "v")
_FINER = 4
"""How many times as many steps a path may get as it had at first."""
_LOST = 0.05
"""The share of the effect, summed over all steps of a path, whose loss at a node is left as it is."""
_BATCH = 32
"""Rows per forward pass; few, because all their writes and gradients are kept."""


class Graph:
    """Senders, receivers, and which pairs of them are edges."""

    def __init__(self, subject: Subject) -> None:
        self.senders = writes.writers(subject, subject.layers - 1, "post")
        self.receivers = receivers(subject)
        self.is_edge_UR = np.array([[other.is_after(one) for other in self.receivers] for one in self.senders])

    @property
    def count(self) -> int:
        return int(self.is_edge_UR.sum())

    def names(self) -> dict[str, list[str]]:
        return {"sender": list(map(str, self.senders)), "receiver": list(map(str, self.receivers))}

    def flows(self, moved_BUR: np.ndarray) -> tuple[list[str], np.ndarray]:
        """The nodes that both receive and send, and the sums of the edges into each of them and out of it, (B, N, 2).
        Heads that share keys and values are one node."""
        into: dict[str, list[int]] = {}
        out: dict[str, list[int]] = {}
        serves = max(receiver.serves for receiver in self.receivers)
        for index, receiver in enumerate(self.receivers):
            into.setdefault(_node(receiver.layer, receiver.head * receiver.serves, receiver.input, serves), []).append(
                index
            )
        for index, sender in enumerate(self.senders):
            out.setdefault(_node(sender.layer, sender.head, sender.kind, serves), []).append(index)
        nodes = [node for node in out if node in into]
        known_BUR = np.nan_to_num(moved_BUR)
        entering, leaving = known_BUR.sum(1), known_BUR.sum(2)
        sums = [(entering[:, into[node]].sum(1), leaving[:, out[node]].sum(1)) for node in nodes]
        return nodes, np.array(sums).transpose(2, 0, 1)

    def largest(self, scores_UR: np.ndarray, count: int, signed: bool = False) -> np.ndarray:
        """Whether each edge is among the `count` edges with the largest scores, (U, R); absolute scores unless
        `signed`. Of equal scores, the first ones count. Raises TaskError for scores of another shape."""
        if np.shape(scores_UR) != self.is_edge_UR.shape:
            raise TaskError(f"scores of shape {np.shape(scores_UR)}: should be {self.is_edge_UR.shape}")
        known_UR = np.nan_to_num(scores_UR)
        size_UR = np.where(self.is_edge_UR, known_UR if signed else np.abs(known_UR), -np.inf)
        chosen = np.zeros(size_UR.size, dtype=bool)
        chosen[np.argsort(-size_UR, axis=None, kind="stable")[:count]] = True
        return chosen.reshape(size_UR.shape) & self.is_edge_UR


def _node(layer: int, head: int, kind: str, serves: int) -> str:
    """The name of the node that a sender or a receiver belongs to."""
    if kind in ("head", "q", "k", "v"):
        first = head // serves * serves
        return f"L{layer}H{first}{f'-{first + serves - 1}' * (serves > 1)}"
    return "logits" if kind == "logits" else f"L{layer} {kind}"


def leaks(flow: Measured) -> list[tuple[float, str, float, float]]:
    """For each node, how much more flows into it than out of it, or the other way round, in the direction
    in which this is more; then its name and the two flows. The worst node comes first."""
    found = []
    for node in flow.axes["node"]:
        into, out = (np.nan_to_num(flow.at(node=node, way=way).value) for way in WAYS)
        worst = int(np.abs(into - out).argmax())
        found.append((float(abs(into - out)[worst]), str(node), float(into[worst]), float(out[worst])))
    return sorted(found, reverse=True)


class Attributed(NamedTuple):
    """Attributed effects of edges, and what they add up to at each node."""

    effect: Measured
    """Axes direction, sender, receiver; nan if there is no edge."""
    flow: Measured
    """The sum of the effects of all edges into a node, and of all edges out of it; axes direction, node, way (`WAYS`).
    The heads that share keys and values are one node."""


def attribute(subject: Subject, pairs: Contrasting, steps: int = 1, along_path: bool = False) -> Measured:
    """`attributed` without the flow."""
    return attributed(subject, pairs, steps, along_path).effect


def attributed(subject: Subject, pairs: Contrasting, steps: int = 1, along_path: bool = False) -> Attributed:
    """The attributed effect of every edge, and what flows through every node.

    Args:
        steps: 1 for EAP; a larger number for EAP-IG with that many points.
        along_path: multiply each gradient by what writes change there, and not by the whole difference.

    Raises the same errors as `Answered.of_right_pairs`, TaskError if `steps` is below 1, and ModelError if unmerged
    adapters hide the weights.
    """
    check_positive("steps", steps)
    answered, graph = Answered.of_right_pairs(subject, pairs, _BATCH), Graph(subject)
    found = []
    for rows in batches(len(answered), _BATCH):
        run = _EdgeRuns(answered, graph, rows)
        moved_BUR = run.along_path(steps) if along_path else run.at_points(steps)
        found.append(torch.where(torch.from_numpy(graph.is_edge_UR), moved_BUR, torch.nan))
    moved_BUR = torch.cat(found).numpy()
    nodes, ways_BNW = graph.flows(moved_BUR)
    return Attributed(
        answered.effects_of_moves("attributed effect of an edge", graph.names(), moved_BUR).effect,
        answered.effects_of_moves("flow through a node", {"node": nodes, "way": WAYS}, ways_BNW).effect,
    )


class Curve(NamedTuple):
    """The faithfulness of circuits of growing size, whose edges have the best scores."""

    faithfulness: Measured
    """Axes ablation, share of edges. 1 for the whole model, 0 without edges."""
    cpr: dict[str, float]
    """Circuit performance ratio, by ablation: the area under faithfulness. Higher is better. MIB ranks edges by signed
    scores for this area."""
    cmd: dict[str, float]
    """Circuit-model distance: the area between faithfulness and 1. Lower is better. MIB ranks edges by the size of
    their scores for this area."""


def curve(
    subject: Subject,
    pairs: Contrasting,
    scores_UR: np.ndarray,
    sizes: Sequence[float] = SIZES,
    ablations: Sequence[Ablation] = ABLATIONS,
    signed: bool = False,
) -> Curve:
    """The faithfulness of the circuits whose edges have the largest scores.

    Args:
        scores_UR: the scores of the edges.
        sizes: the size of each circuit, as a share of all edges.
        ablations: how all other edges are ablated.
        signed: rank edges by their scores; by absolute scores if false.
    """
    graph = Graph(subject)
    circuits = [graph.largest(scores_UR, round(size * graph.count), signed) for size in sizes]
    left = {ablation: faithfulness(subject, pairs, circuits, ablation) for ablation in ablations}
    areas = {name: areas_of(sizes, one.value) for name, one in left.items()}
    cpr, cmd = ({name: area[which] for name, area in areas.items()} for which in (0, 1))
    by_circuit = joined("ablation", left, first=True)
    return Curve(by_circuit._replace(axes={"ablation": list(left), "share of edges": list(sizes)}), cpr, cmd)


def areas_of(sizes: Sequence[float], faithfulness: np.ndarray) -> tuple[float, float]:
    """CPR and CMD of a curve, by the trapezoid rule over shares of edges, from the first size to the last."""
    span = sizes[-1] - sizes[0]
    return tuple(float(np.trapezoid(part, sizes) / span) for part in (faithfulness, np.abs(1 - faithfulness)))  # type: ignore[return-value]


@torch.inference_mode()
def faithfulness(
    subject: Subject, pairs: Contrasting, circuits: Sequence[np.ndarray], ablation: Ablation, batch_size: int = _BATCH
) -> Measured:
    """The share of the margin that is left if all edges outside a circuit are ablated: axes circuit; the mean over
    both directions. A circuit is an array of booleans, (U, R).

    Raises the same errors as `attribute`, and TaskError for an unknown ablation.
    """
    check_one_of("ablation", ablation, ABLATIONS)
    answered, graph = Answered.of_right_pairs(subject, pairs, batch_size), Graph(subject)
    every = [*circuits, np.zeros_like(graph.is_edge_UR)]
    found = []
    # each pair is run in both directions, so the means over all bases include all sources
    mean = means_by_layout(subject, answered.contrast, _names(subject), batch_size) if ablation == "mean" else None
    for rows in batches(len(answered), batch_size):
        run = _EdgeRuns(answered, graph, rows)
        off = {name: whole[rows] for name, whole in mean.items()} if mean else run.runs.base
        found.append(torch.stack([run.margin(circuit, off) for circuit in every], 1).cpu())
    margin_BC = torch.cat(found).numpy()
    kept_BC, empty_B = margin_BC[:, :-1], margin_BC[:, -1]
    # all directions of a pair are one sample
    left_NC, whole_N = answered.by_pair(kept_BC - empty_B[:, None]), answered.by_pair(answered.clean_B - empty_B)
    return Measured.ratio("faithfulness", {"circuit": list(range(len(circuits)))}, left_NC, whole_N)


class _Stretch(NamedTuple):
    """A part of the way from base to source."""

    start: float
    end: float
    moved_BUR: torch.Tensor
    lost: float
    """The mean difference between the flows into and out of the worst node, as a share of the whole effect."""


class _EdgeRuns:
    """The runs of some of the pairs, with everything that patching of edges needs."""

    def __init__(self, answered: Answered, graph: Graph, rows: slice) -> None:
        self.subject, self.graph = answered.subject, graph
        self._layers = range(answered.subject.layers)
        self._reached: tuple[float, dict[str, torch.Tensor]] | None = None
        with torch.inference_mode():
            self.runs = Runs(answered, rows, names := _names(answered.subject), names)
            writes.check_additive(self.subject, self.runs.base)
            _check_projections(self.subject, self.runs.base)

    @cached_property
    def difference_UBTD(self) -> torch.Tensor:
        """The write of each sender in the source's run minus that in the base's."""
        return self._difference(self.runs.base, self.runs.source)

    def at_points(self, steps: int) -> torch.Tensor:
        """EAP or EAP-IG of every edge, (B, U, R): the whole difference of writes times the mean gradient."""
        shares = [(step + 0.5) / steps for step in range(steps)] if steps > 1 else [0.0]
        return sum(self.attributed(share, self.difference_UBTD).cpu() for share in shares) / steps  # type: ignore[return-value]

    def along_path(self, steps: int) -> torch.Tensor:
        """The effects along the path, (B, U, R). Where most is lost between what flows into a node and out of it, a
        step of the path is halved, until hardly anything is lost or there are `_FINER` times as many steps."""
        done = [self._stretch(step / steps, (step + 1) / steps) for step in range(steps)]
        while len(done) < _FINER * steps and sum(one.lost for one in done) > _LOST:
            worst = max(range(len(done)), key=lambda index: done[index].lost)
            start, end = done[worst].start, done[worst].end
            done[worst : worst + 1] = [self._stretch(start, middle := (start + end) / 2), self._stretch(middle, end)]
        return sum(one.moved_BUR for one in done)  # type: ignore[return-value]

    def _stretch(self, start: float, end: float) -> "_Stretch":
        moved_BUR = self.attributed((start + end) / 2, self.changes(start, end)).cpu()
        is_edge_UR = torch.from_numpy(self.graph.is_edge_UR)
        _, ways_BNW = self.graph.flows(torch.where(is_edge_UR, moved_BUR, 0).numpy())
        whole = float((self.runs.clean_B - self.runs.corrupt_B).abs().mean())
        lost = np.abs(ways_BNW[..., 0] - ways_BNW[..., 1]).mean(0).max(initial=0) / whole
        return _Stretch(start, end, moved_BUR, float(lost))

    @torch.inference_mode()
    def changes(self, start: float, end: float) -> torch.Tensor:
        """What the writes of each sender change between two shares of the way from base to source, (U, B, T, D)."""
        before = self._reached if self._reached and self._reached[0] == start else (start, self._written_at(start))
        self._reached = end, self._written_at(end)
        return self._difference(before[1], self._reached[1])

    def _difference(self, before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> torch.Tensor:
        names = writes.hook_points(self.subject)
        return writes.all_written(self.subject, {name: after[name].float() - before[name].float() for name in names})

    def _written_at(self, share: float) -> dict[str, torch.Tensor]:
        kept: dict[str, torch.Tensor] = {}
        begin = (EMBEDDING.hook_point, lambda stream, hook: self._stream_at(share))
        self.runs.rerun(self._layers, [begin, *keeping(writes.hook_points(self.subject), kept)])
        return kept

    def _stream_at(self, share: float) -> torch.Tensor:
        base_BTD, source_BTD = (run[EMBEDDING.hook_point] for run in (self.runs.base, self.runs.source))
        return base_BTD + share * (source_BTD - base_BTD)

    @torch.inference_mode()
    def attributed(self, share: float, change_UBTD: torch.Tensor) -> torch.Tensor:
        """The attributed effects (B, U, R) of changes of the writes, with gradients at this share of the way from base
        to source."""
        # layer by layer, because the gradients of all layers together would be larger than all activations
        of_layers = [torch.einsum("ubtd,rbtd->bur", change_UBTD, layer_RBTD) for layer_RBTD in self._gradients(share)]
        return torch.cat(of_layers, -1)

    def margin(self, circuit_UR: np.ndarray, off: dict[str, torch.Tensor]) -> torch.Tensor:
        """The margins (B,) if the edges of the circuit carry live writes, and all other edges those of `off`."""
        return self.runs.rerun(self._layers, _Circuit(self, circuit_UR, off).hooks())[0]

    def _gradients(self, share: float) -> Iterator[torch.Tensor]:
        """The gradients of the margin with respect to what the receivers of each layer read, and then the logits,
        (R, B, T, D)."""
        # the MLP's own input: its gradient does not include that of the residual stream
        mlps = {layer: f"blocks.{layer}.ln2.hook_in" for layer in self._layers}
        heads = {(name, layer): f"blocks.{layer}.attn.hook_{name}" for layer in self._layers for name in _PROJECTIONS}
        last = f"blocks.{self._layers[-1]}.hook_resid_post"
        entering = [f"blocks.{layer}.hook_resid_pre" for layer in self._layers]
        names = [*mlps.values(), *heads.values(), last, *entering]
        kept, slopes = self.runs.slopes(names, self._stream_at(share))
        for layer in self._layers:
            pulled = [
                _pull_back(self.subject, layer, name, kept[entering[layer]], slopes[heads[name, layer]])
                for name in _PROJECTIONS
            ]
            yield torch.cat([*pulled, slopes[mlps[layer]][None]])
        yield slopes[last][None]


class _Circuit:
    """A run in which each receiver reads a residual stream of its own: the sum of the live writes along edges of the
    circuit, and of the writes of `off` along all other edges."""

    def __init__(self, edges: _EdgeRuns, circuit_UR: np.ndarray, off: dict[str, torch.Tensor]) -> None:
        subject, source = edges.subject, edges.runs.source
        self._subject, self._graph, self._off, self._base = subject, edges.graph, off, edges.runs.base
        self._circuit_UR = torch.from_numpy(circuit_UR).to(source[EMBEDDING.hook_point].device, torch.float32)
        embedding_BTD = writes.written(subject, EMBEDDING, source) - writes.written(subject, EMBEDDING, off)
        self._changed_UBTD = embedding_BTD.new_empty(len(edges.graph.senders), *embedding_BTD.shape)
        """The live write of each sender minus its write in `off`, in the order of writing."""
        self._changed_UBTD[0], self._count = embedding_BTD, 1

    def hooks(self) -> list[Hook]:
        found: list[Hook] = []
        for layer in range(self._subject.layers):
            found += [self._projected(layer, name) for name in _PROJECTIONS]
            found.append(self._wrote(Component("head", layer)))
            # an alias of the MLP's input: a change reaches the MLP and nothing else (see `interventions`)
            found.append(self._reading("mlp", layer, f"blocks.{layer}.hook_resid_mid"))
            found.append(self._wrote(Component("mlp", layer)))
        last = self._subject.layers - 1
        return [*found, self._reading("logits", last, f"blocks.{last}.hook_resid_post")]

    def _read(self, input: str, layer: int, site: str) -> torch.Tensor:
        """What the receivers of a layer with this input read, (R, B, T, D)."""
        some = [r for r, one in enumerate(self._graph.receivers) if (one.input, one.layer) == (input, layer)]
        mask_RU = self._circuit_UR[: self._count, some].T
        live = mask_RU.any(0).nonzero()[:, 0]  # in a small circuit, most senders have no edge to these receivers
        return self._off[site].float() + torch.einsum("ru,ubtd->rbtd", mask_RU[:, live], self._changed_UBTD[live])

    def _projected(self, layer: int, name: str) -> Hook:
        point, site = f"blocks.{layer}.attn.hook_{name}", f"blocks.{layer}.hook_resid_pre"
        norm = self._subject.bridge.blocks[layer].ln1

        def change(activation: torch.Tensor, hook: Any) -> torch.Tensor:
            weight_RDZ = _projection(self._subject, layer, name, activation.shape[2])
            # the bias is what a real run has beyond these weights; a mean of runs also mixes in the norm
            run_BTRZ = torch.einsum("btd,rdz->btrz", norm(self._base[site].float()), weight_RDZ)
            read_BTRZ = torch.einsum("rbtd,rdz->btrz", norm(self._read(name, layer, site)), weight_RDZ)
            return (self._base[point].float() - run_BTRZ + read_BTRZ).to(activation.dtype)

        return point, change

    def _reading(self, input: str, layer: int, site: str) -> Hook:
        """A hook that gives an MLP, or the logits, what they read."""
        return site, lambda stream, hook: self._read(input, layer, site)[0].to(stream.dtype)

    def _wrote(self, component: Component) -> Hook:
        """A hook that records what an MLP, or all heads of a layer, write."""
        point = component.hook_point

        def keep(output: torch.Tensor, hook: Any) -> torch.Tensor:
            change = output.float() - self._off[point].float()
            if component.kind == "head":
                changed_UBTD = writes.heads_written(self._subject, component.layer, {point: change})
            else:
                changed_UBTD = change[None]
            self._changed_UBTD[self._count : self._count + len(changed_UBTD)] = changed_UBTD
            self._count += len(changed_UBTD)
            return output

        return point, keep


def _names(subject: Subject) -> list[str]:
    """The hook points whose activations are needed."""
    ends = ("hook_resid_pre", "hook_resid_mid", "hook_resid_post", *(f"attn.hook_{name}" for name in _PROJECTIONS))
    of_layers = [f"blocks.{layer}.{end}" for layer in range(subject.layers) for end in ends]
    return list(dict.fromkeys([*writes.hook_points(subject), *of_layers]))


def _projection(subject: Subject, layer: int, name: str, groups: int) -> torch.Tensor:
    """The weights of the queries, keys or values of a layer, (R, D, Z)."""
    weight_RDZ = getattr(subject.bridge.blocks[layer].attn, f"W_{name.upper()}").float()
    return weight_RDZ[:: len(weight_RDZ) // groups]  # the bridge may repeat a group's keys for each of its heads


def _check_projections(subject: Subject, run: dict[str, torch.Tensor]) -> None:
    """Raises ModelError unless queries, keys and values are the weights times the normed stream, plus a constant."""
    for layer in range(subject.layers):
        normed_BTD = subject.bridge.blocks[layer].ln1(run[f"blocks.{layer}.hook_resid_pre"].float())
        for name in _PROJECTIONS:
            found_BTRZ = run[f"blocks.{layer}.attn.hook_{name}"].float()
            weight_RDZ = _projection(subject, layer, name, found_BTRZ.shape[2])
            computed_BTRZ = torch.einsum("btd,rdz->btrz", normed_BTD, weight_RDZ)
            if gap := writes.gap_beyond_a_constant(found_BTRZ, computed_BTRZ):
                raise ModelError(
                    f"{subject.name}: the {name} of layer {layer} are not its weights times its normed stream (off by "
                    f"{gap:.2g}); adapters should be merged, and a norm should come first"
                )


def _pull_back(
    subject: Subject, layer: int, name: str, stream_BTD: torch.Tensor, slope_BTRZ: torch.Tensor
) -> torch.Tensor:
    """The gradient with respect to the residual stream that each head's queries, keys or values read, (R, B, T, D)."""
    weight_RDZ = _projection(subject, layer, name, slope_BTRZ.shape[2])
    with torch.inference_mode(False), torch.enable_grad():
        wanted_RBTD = torch.einsum("btrz,rdz->rbtd", slope_BTRZ.float(), weight_RDZ).detach()
        read_RBTD = stream_BTD.detach().float().expand(len(wanted_RBTD), -1, -1, -1).clone().requires_grad_()
        normed_RBTD = subject.bridge.blocks[layer].ln1(read_RBTD)
        return torch.autograd.grad((normed_RBTD * wanted_RBTD).sum(), [read_RBTD])[0]
