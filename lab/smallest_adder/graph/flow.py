"""Where attention is in a graph, what it carries between positions, and how much is computed after it.

Attention weights are a softmax over as many keys as there are tokens, or a few more (a learned first key, a sink), or
exponentials that take its place. In a graph with neither, they are products of queries and keys (linear attention, if
it is written with its weights). A sum of products with weights is a mix: only there may positions exchange information.
A value that was multiplied with weights, added to them or concatenated with them carries them until it is summed.

Shapes: T tokens.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import torch

from lab.smallest_adder.graph.graph import IDS, Graph, Node
from lab.smallest_adder.graph.operations import CONTRACTIONS, SOFTMAXES, Kind

EXPONENTIALS = ("exp", "exp2")
MOST_EXTRA_KEYS = 8
"""How many keys attention may have beside the tokens: sinks, registers, a learned first key."""


class Flow(NamedTuple):
    """Attention in a graph."""

    weights: dict[int, str]
    """Values that are attention weights, and the operation that makes each; those of a softmax already sum to one."""
    axes: dict[int, int]
    """For each of `weights`, its dimension of keys, counted from the end (-1 is the last)."""
    scores: Sequence[int]
    """Values that weights are computed from, or the products of queries and keys themselves."""
    values: Sequence[int]
    """Values that weights are multiplied with, or meet in another operation."""
    mixes: dict[int, int]
    """Sums over the tokens, and for how many queries each is made."""
    carrying: Sequence[int]
    """The weights, and the values between them and the mixes."""
    carried: int
    """The most numbers that the attentions of one layer carry to a position."""
    carried_in_all: int
    """The same, of all layers together."""
    activations: int
    """The most activations and norms in a row after the attentions of all layers, together."""
    steps: int
    """The most operations of arithmetic after the attentions of one layer."""
    steps_before: int
    """Operations of arithmetic, and paddings, before any attention."""


def flow_of(graph: Graph) -> Flow:
    """Finds attention in a graph, and measures what is around it."""
    found = {node.results[0]: node for node in graph.nodes if _is_exponential(graph, node)}
    softmaxes = bool(found)
    if not softmaxes:
        found = {node.results[0]: node for node in graph.nodes if _is_linear(graph, node)}
    scores = [node.inputs[0] if softmaxes else weights for weights, node in found.items()]
    carrying = {weights: _queries(graph, node) for weights, node in found.items()}
    every_position = graph.shape(graph.logits).numel() > graph.shape(graph.logits)[-1]
    level, activations, layers, values = {IDS: 0}, {IDS: 0}, [_Layer()], []
    mixes: dict[int, int] = {}
    for node in graph.nodes:
        inputs = node.inputs
        here = max((level.get(value, 0) for value in inputs), default=0)
        in_a_row = max((activations.get(value, 0) for value in inputs if level.get(value, 0) == here), default=0)
        carried = [value for value in inputs if value in carrying]
        others = [value for value in inputs if value not in carrying and value not in node.results]
        if carried and node.results[0] not in found:
            queries = max(carrying[value] for value in carried)
            values += others
            over_tokens = any(size >= graph.tokens for value in others for size in graph.shape(value))
            loses_keys = _token_dims(graph, carried) > _token_dims(graph, node.results)
            # what mixes heads has no tokens, and their sum keeps the keys
            if node.name in CONTRACTIONS and (over_tokens if others else loses_keys):
                mixes.update(dict.fromkeys(node.results, queries))
                here, in_a_row = here + 1, 0
                layers += [_Layer()] * (here == len(layers))
                mix = graph.blank[node.results[0]]
                numbers = mix.numel() * (1 + mix.is_complex())
                layers[here] = layers[here].with_mix(numbers, queries, graph.tokens if every_position else 1)
            else:
                carrying.update(dict.fromkeys(node.results, queries))
        is_square = node.function is torch.ops.aten.pow.Tensor_Scalar and node.args[1] == 2  # as in norms
        in_a_row += node.kind is Kind.BEND and not is_square
        activations.update(dict.fromkeys(node.results, in_a_row))
        level.update(dict.fromkeys(node.results, here))
        step = node.kind in (Kind.SUM, Kind.BEND) or node.name == "constant_pad_nd"
        layers[here] = layers[here]._replace(steps=layers[here].steps + step)
    for value in graph.downstream(set(found)):
        here = level.get(value, 0)
        layers[here] = layers[here]._replace(activations=max(layers[here].activations, activations[value]))
    after = layers[1:] or [_Layer()]
    return Flow(
        {weights: node.name for weights, node in found.items()},
        {weights: _axis(graph, node) for weights, node in found.items()},
        scores,
        list(dict.fromkeys(values)),
        mixes,
        list(carrying),
        max(layer.carried for layer in after),
        sum(layer.carried for layer in after),
        sum(layer.activations for layer in after),
        max(layer.steps for layer in after),
        layers[0].steps,
    )


class _Layer(NamedTuple):
    """What is computed after one attention and before the next. `whole`: the numbers that sums over the tokens carry to
    each position. If a model attends one query at a time, `spread` is their mean over all positions, and `widest` the
    most for one query."""

    whole: int = 0
    spread: Fraction = Fraction(0)
    widest: int = 0
    activations: int = 0
    steps: int = 0

    @property
    def carried(self) -> int:
        return max(self.whole + math.ceil(self.spread), self.widest)

    def with_mix(self, numbers: int, queries: int, positions: int) -> "_Layer":
        """This layer with one more sum over the tokens, which gives `numbers` results for `queries` queries.

        `positions`: the number of positions over which sums for single queries are spread.
        """
        each = math.ceil(numbers / queries)
        if queries > 1:
            return self._replace(whole=self.whole + each)
        return self._replace(spread=self.spread + Fraction(numbers, positions), widest=max(self.widest, each))


def _token_dims(graph: Graph, values: Sequence[int]) -> int:
    """How many dimensions of some values are as long as the tokens or the keys."""
    return sum(0 <= size - graph.tokens <= MOST_EXTRA_KEYS for value in values for size in graph.shape(value))


def _queries(graph: Graph, node: Node) -> int:
    """How many tokens attend with these weights: all of them, and perhaps registers, or one."""
    shape = list(graph.shape(node.results[0]))
    shape.pop(_axis(graph, node))
    return next((size for size in shape if 0 <= size - graph.tokens <= MOST_EXTRA_KEYS), 1)


def _axis(graph: Graph, node: Node) -> int:
    """The dimension of the keys, counted from the end."""
    dimensions = len(graph.shape(node.results[0]))
    return node.args[1] % dimensions - dimensions if node.name in SOFTMAXES else -1


def _is_exponential(graph: Graph, node: Node) -> bool:
    """Whether a node makes attention weights: a softmax over the keys, or exponentials of queries and keys."""
    shape = graph.shape(node.results[0])
    axes = [node.args[1]] if node.name in SOFTMAXES else [-1, -2] if node.name in EXPONENTIALS else []
    keys = range(graph.tokens, graph.tokens + MOST_EXTRA_KEYS + 1)
    return bool(axes) and len(shape) > 1 and all(shape[axis] in keys for axis in axes)


def _is_linear(graph: Graph, node: Node) -> bool:
    shape = graph.shape(node.results[0])
    return node.name in ("mm", "bmm") and len(shape) > 1 and shape[-1] == shape[-2] == graph.tokens
