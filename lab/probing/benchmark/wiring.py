"""Writes the weights of a small transformer, given which named directions of the residual stream each part reads and
writes.

The architecture is TransformerLens' own: no norm, learned positions, ReLU. The directions are the rows of a basis drawn
from a seed. The basis is orthonormal, or oblique and read with its dual basis. Instead of a bias, a part reads the
direction "one", which every token has.

Shapes: D width, Q directions, V words, N neurons, H heads, Z width of a head, T places.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import nn
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module
from transformer_lens.model_bridge.sources.native import NativeModel

from lab.probing.benchmark.known import END, PLUS, WORDS, FieldSums
from lab.probing.bridge import Subject

Weights: TypeAlias = Mapping[str, float]
"""A weight for each direction, by name."""

_WIDTH = 20
"""The smallest width of a residual stream."""
HEAD_WIDTH = 4
SHARPNESS = 4000.0
"""How sharp attention is: every other token gets at most e^-58 of the weight of the right one."""
_MOVED = ("value", "plus")
"""The directions whose coordinates heads copy into other directions."""
ALWAYS = ("one", "value", "plus", "cos", "sin")
"""Directions that every adder has: a constant, a token's digit, whether it is "+", and its position on a circle."""


class Wiring:
    """The weights of an adder while they are being written."""

    def __init__(
        self,
        names: Sequence[str],
        heads: Sequence[str],
        layers: int,
        seed: int,
        *,
        level: float = 1,
        lean: float = 0,
        noise: float = 0,
    ) -> None:
        """An adder without weights.

        Args:
            names: directions besides `ALWAYS`.
            heads: names of the heads of each layer; a seed above 0 shuffles them.
            layers: number of layers.
            seed: the seed of the basis and of the order of the heads.
            level: the size of the constant, which is along the direction "one".
            lean: how far the basis is from orthonormal.
            noise: the size of a random vector that is added to each word's embedding, so that features are in
                superposition.
        """
        used = (*ALWAYS, *names)
        width = len(heads) * math.ceil(max(_WIDTH, len(used)) / len(heads))  # some architectures need a multiple
        self.names = (*used, *(f"spare {number}" for number in range(width - len(used))))
        self.layers, self._seed = layers, seed
        basis_QD = basis(len(self.names), seed)
        if lean:
            basis_QD = basis_QD + lean * basis(len(self.names), seed + 1)
            basis_QD = basis_QD / basis_QD.norm(dim=1, keepdim=True)
        self.at: dict[str, torch.Tensor] = dict(zip(self.names, basis_QD, strict=True))
        self.at["one"] = level * self.at["one"]
        dual_QD = torch.linalg.inv(torch.stack([self.at[name] for name in self.names])).T
        self.dual: dict[str, torch.Tensor] = dict(zip(self.names, dual_QD, strict=True))
        self.plus_value = 0.0
        """The digit as which "+" is read."""
        self.steps_back: dict[tuple[int, int], int] = {}
        self._noise = noise
        self.head = shuffled(heads, seed)
        self._query_LHZD, self._key_LHZD = torch.zeros(2, layers, len(heads), HEAD_WIDTH, len(basis_QD))
        self.out_LDHZ = torch.zeros(layers, len(basis_QD), len(heads), HEAD_WIDTH)
        self.neurons: list[list[tuple[torch.Tensor, torch.Tensor]]] = [[] for _ in range(layers)]

    def reads(self, weights: Weights) -> torch.Tensor:
        """The vector whose dot product with the residual stream is this weighted sum of its coordinates."""
        return torch.stack([weight * self.dual[name] for name, weight in weights.items()]).sum(0)

    def writes(self, weights: Weights) -> torch.Tensor:
        return torch.stack([weight * self.at[name] for name, weight in weights.items()]).sum(0)

    def look_back(self, layer: int, head: str, steps: int, moves: Mapping[str, str], writer: FieldSums) -> None:
        """Adds a head that attends `steps` tokens back. `moves`: for "value" or "plus", the direction into which the
        head copies the coordinate of that token."""
        at = layer, self.head[head]
        turn = 2 * math.pi / (writer.tokens + 1)  # one more than there are tokens, so that the ends do not meet
        back = steps * turn
        self._key_LHZD[at][0], self._key_LHZD[at][1] = self.dual["cos"], self.dual["sin"]
        self._query_LHZD[at][0] = self.reads({"cos": math.cos(back), "sin": math.sin(back)})
        self._query_LHZD[at][1] = self.reads({"sin": math.cos(back), "cos": -math.sin(back)})
        self.steps_back[at] = steps
        for source, target in moves.items():
            self.out_LDHZ[layer, :, at[1], _MOVED.index(source)] = self.at[target]

    def neuron(self, layer: int, reads: Weights, writes: Weights) -> None:
        self.neurons[layer].append((self.reads(reads), self.writes(writes)))

    def step(self, layer: int, reads: Weights, low: float, high: float, writes: Weights) -> None:
        """Adds two neurons that together write 0 up to `low`, `writes` from `high` on, and a ramp in between."""
        slope = 1 / (high - low)
        for bound, sign in ((low, 1), (high, -1)):
            scaled = {name: slope * weight for name, weight in reads.items()}
            shifted = {**scaled, "one": scaled.get("one", 0) - slope * bound}
            self.neuron(layer, shifted, {name: sign * weight for name, weight in writes.items()})

    @property
    def values_ZD(self) -> torch.Tensor:
        """The value weights, which all heads share."""
        rows_ZD = torch.zeros(HEAD_WIDTH, len(self.names))
        for index, name in enumerate(_MOVED):
            rows_ZD[index] = self.dual[name]
        return rows_ZD

    def mlp(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """What the neurons of a layer read (N, D) and write (D, N); all layers have the same number of neurons."""
        count = max(1, *map(len, self.neurons))
        reads_ND, writes_DN = torch.zeros(count, len(self.names)), torch.zeros(len(self.names), count)
        for index, (read_D, write_D) in enumerate(self.neurons[layer]):
            reads_ND[index], writes_DN[:, index] = read_D, write_D
        return reads_ND, writes_DN

    def subject(self, name: str, writer: FieldSums, digit: str, end: str) -> Subject:
        """The finished model. `digit`, `end`: the directions that the unembedding reads."""
        angles_T = torch.arange(writer.tokens) * 2 * math.pi / (writer.tokens + 1)
        places_TD = angles_T.cos()[:, None] * self.at["cos"] + angles_T.sin()[:, None] * self.at["sin"]
        unembedding_VD = unembedding(self.dual["one"], self.dual[digit], self.dual[end])
        layers = [
            Layer(SHARPNESS * query_HZD, key_HZD, self.values_ZD, out_DHZ, *self.mlp(layer))
            for layer, (query_HZD, key_HZD, out_DHZ) in enumerate(
                zip(self._query_LHZD, self._key_LHZD, self.out_LDHZ, strict=True)
            )
        ]
        return native(name, writer, self.embedding(), places_TD, unembedding_VD, layers)

    def embedding(self) -> torch.Tensor:
        embedding_VD = embedding(self.at)
        embedding_VD[PLUS] += self.plus_value * self.at["value"]
        if self._noise:  # none in the constant and the positions, because attention is too sharp for noise
            noisy = [name for name in self.names if name not in ("one", "cos", "sin")]
            size_VQ = self._noise * torch.randn(
                len(WORDS), len(noisy), generator=torch.Generator().manual_seed(self._seed + 2)
            )
            embedding_VD = embedding_VD + size_VQ @ torch.stack([self.at[name] for name in noisy])
        return embedding_VD


def shuffled(heads: Sequence[str], seed: int) -> dict[str, int]:
    """The place of each head in its layer, by name: in a random order, or as they are for seed 0."""
    order = np.random.default_rng(seed).permutation(len(heads)) if seed else range(len(heads))
    return dict(zip(heads, map(int, order), strict=True))


def basis(width: int, seed: int) -> torch.Tensor:
    """Orthonormal rows (D, D)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64))[0].float()


def embedding(at: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The embedding (V, D) of each word: the constant, its digit, and whether it is "+"."""
    embedding_VD = at["one"].repeat(len(WORDS), 1)
    embedding_VD[:10] += torch.arange(10.0)[:, None] * at["value"]
    embedding_VD[PLUS] += at["plus"]
    return embedding_VD


def unembedding(one_D: torch.Tensor, digit_D: torch.Tensor, end_D: torch.Tensor) -> torch.Tensor:
    """The unembedding (V, D), from the vectors that read the constant, the digit and the end. The logit of digit d is
    2 d digit - d^2, which is largest for the nearest d. The logit of <end> is the highest one if the end is found, and
    the lowest one if not."""
    rows_VD = (-200 * one_D).repeat(len(WORDS), 1)
    for value in range(10):
        rows_VD[value] = 2 * value * digit_D - value**2 * one_D
    rows_VD[END] += 400 * end_D
    return rows_VD


class Layer(NamedTuple):
    """The weights of a layer. All heads share the value weights."""

    query_HZD: torch.Tensor
    key_HZD: torch.Tensor
    value_ZD: torch.Tensor
    out_DHZ: torch.Tensor
    reads_ND: torch.Tensor
    writes_DN: torch.Tensor


def native(
    name: str,
    writer: FieldSums,
    embedding_VD: torch.Tensor,
    places_TD: torch.Tensor,
    unembedding_VD: torch.Tensor,
    layers: Sequence[Layer],
) -> Subject:
    """A transformer of TransformerLens' own architecture with these weights."""
    heads, head_width, width = layers[0].query_HZD.shape
    config = TransformerBridgeConfig(
        d_model=width,
        d_head=head_width,
        n_layers=len(layers),
        n_ctx=writer.tokens,
        n_heads=heads,
        d_mlp=len(layers[0].reads_ND),
        d_vocab=len(WORDS),
        architecture="TransformerLensNative",
        act_fn="relu",
        normalization_type=None,
        init_weights=False,
    )
    model = NativeModel(config).eval()
    weights = {"tok_embed.weight": embedding_VD, "pos.weight": places_TD, "head.weight": unembedding_VD}
    for index, layer in enumerate(layers):
        weights |= {
            f"layers.{index}.attn.q.weight": layer.query_HZD.flatten(0, 1),
            f"layers.{index}.attn.k.weight": layer.key_HZD.flatten(0, 1),
            f"layers.{index}.attn.v.weight": layer.value_ZD.repeat(heads, 1),
            f"layers.{index}.attn.o.weight": layer.out_DHZ.flatten(1),
            f"layers.{index}.mlp.fc_in.weight": layer.reads_ND,
            f"layers.{index}.mlp.fc_out.weight": layer.writes_DN,
        }
    put_weights(model, weights)
    opened = build_bridge_from_module(model, architecture="TransformerLensNative", tl_config=config, tokenizer=None)
    return Subject(name, opened, writer)


def put_weights(model: nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Sets these weights of a model, and all others to 0."""
    nothing = {name: torch.zeros_like(weight) for name, weight in model.state_dict().items()}
    model.load_state_dict(nothing | dict(weights))
