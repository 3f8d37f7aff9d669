"""Where attention is in a graph, what it carries between positions, and how much is computed after it.

Attention weights are a softmax over as many keys as there are tokens, or a few more (a learned first key, a sink), or
exponentials that take its place. In a graph with neither, they are products of queries and keys (linear attention, if
it is written with its weights). A sum of products with weights is a mix: only there may positions exchange information.

Shapes: T tokens.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from lab.smallest_adder.graph.graph import IDS, Graph, Node
from lab.smallest_adder.graph.operations import CONTRACTIONS, PRODUCTS, SOFTMAXES, Kind

MOST_EXTRA_KEYS = 4


class Flow(NamedTuple):
    """Attention in a graph."""

    weights: dict[int, bool]
    """Values that are attention weights; True if they come from a softmax, and so sum to one already."""
    scores: Sequence[int]
    """Values that weights are computed from, or the products of queries and keys themselves."""
    values: Sequence[int]
    """Values that weights are multiplied with."""
    mixes: Sequence[int]
    width: int
    """The most numbers that the attentions of one layer carry to a position."""
    bends: int
    """The most activations and norms in a row after an attention."""
    steps: int
    """The most operations of arithmetic after the attentions of one layer."""
    before: int
    """Operations of arithmetic, and paddings, before any attention."""


def flow_of(graph: Graph) -> Flow:
    """Finds attention in a graph, and measures what is around it."""
    found = {node.results[0]: node for node in graph.nodes if _is_softmax(graph, node) or _is_exponential(graph, node)}
    softmaxes = bool(found)
    if not softmaxes:
        found = {node.results[0]: node for node in graph.nodes if _is_linear(graph, node)}
    scores = [node.inputs[0] if softmaxes else weights for weights, node in found.items()]
    carrying = set(found)
    level, bends, width, steps, values, mixes = {IDS: 0}, {IDS: 0}, {0: 0}, {0: 0}, [], []
    for node in graph.nodes:
        inputs = node.inputs
        here = max((level.get(value, 0) for value in inputs), default=0)
        bent = max((bends.get(value, 0) for value in inputs if level.get(value, 0) == here), default=0)
        carried = [value for value in inputs if value in carrying]
        others = [value for value in inputs if value not in carrying and value not in node.results]
        if carried and node.results[0] not in found:
            if node.name in PRODUCTS:
                values += others
            if node.name in CONTRACTIONS:
                mixes += node.results
                here, bent = here + 1, 0
                numbers = graph.shape(node.results[0]).numel() // graph.tokens if others or len(carried) == 1 else 0
                width[here] = width.get(here, 0) + numbers
            else:
                carrying.update(node.results)
        bends.update(dict.fromkeys(node.results, bent + _bends(node)))
        level.update(dict.fromkeys(node.results, here))
        steps[here] = steps.get(here, 0) + (node.kind in (Kind.SUM, Kind.BEND) or node.name == "constant_pad_nd")
    attended = graph.downstream(set(found))
    after = [bends[value] for value in attended if level.get(value, 0)]
    return Flow(
        {weights: softmaxes and node.name in SOFTMAXES for weights, node in found.items()},
        scores,
        list(dict.fromkeys(values)),
        mixes,
        max(width.values()),
        max(after, default=0),
        max((count for layer, count in steps.items() if layer), default=0),
        steps[0],
    )


def _bends(node: Node) -> bool:
    return node.kind is Kind.BEND and node.function is not torch.ops.aten.pow.Tensor_Scalar  # squares, as in norms


def _keys(graph: Graph, size: int) -> bool:
    return graph.tokens <= size <= graph.tokens + MOST_EXTRA_KEYS


def _is_softmax(graph: Graph, node: Node) -> bool:
    if node.name not in SOFTMAXES:
        return False
    shape = graph.shape(node.results[0])
    return len(shape) > 1 and _keys(graph, shape[node.args[1]])


def _is_exponential(graph: Graph, node: Node) -> bool:
    shape = graph.shape(node.results[0])
    return node.name in ("exp", "exp2") and len(shape) > 1 and _keys(graph, shape[-1]) and _keys(graph, shape[-2])


def _is_linear(graph: Graph, node: Node) -> bool:
    shape = graph.shape(node.results[0])
    return node.name in ("mm", "bmm") and len(shape) > 1 and shape[-1] == shape[-2] == graph.tokens
