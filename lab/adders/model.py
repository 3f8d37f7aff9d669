"""The model that a declared adder describes, and its numbers as tensors.

A new kind of layer is a class in spec.py, a function here, and a row in LAYERS.

Shapes: B sequences, T tokens, A positions that are asked for (the last ones), D width, H heads, K heads of keys and
values, W numbers of a head, V tokens of the vocabulary.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from lab.adders.references import Place, Reference, resolve
from lab.adders.shapes import check_shapes
from lab.adders.spec import Adder, Attention, Ffn, Head, Map, Norm, Part

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": functional.silu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "relu": functional.relu,
    "relu2": lambda x: functional.relu(x) ** 2,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "sin": torch.sin,
    "none": lambda x: x,
}
EPS = {"rms": 1e-6, "layer": 1e-5, "none": 0.0}


class Tensors:
    """The algebra of tensors (references.py)."""

    def __init__(self, tables: Mapping[str, torch.Tensor], vocabulary: int) -> None:
        self.tables, self.vocabulary = tables, vocabulary
        self.dtype = next(iter(tables.values())).dtype if tables else torch.float32

    def literal(self, value: Any, place: Place = "") -> torch.Tensor:
        return torch.from_numpy(np.array(value, dtype=np.float64)).to(self.dtype)

    def named(self, name: str, place: Place = "") -> torch.Tensor:
        return self.tables[name]

    def negative(self, value: torch.Tensor) -> torch.Tensor:
        return -value

    def transpose(self, value: torch.Tensor, place: Place = "") -> torch.Tensor:
        return value.mT

    def product(self, one: torch.Tensor, other: torch.Tensor, place: Place = "") -> torch.Tensor:
        return one * other if not one.ndim or not other.ndim else one @ other

    def join(self, parts: Sequence[torch.Tensor], place: Place = "") -> torch.Tensor:
        return torch.cat([part if part.ndim else part[None] for part in parts])

    def ramp(self, step: torch.Tensor, place: Place = "") -> torch.Tensor:
        return (torch.arange(self.vocabulary, dtype=self.dtype) * step.reshape(()))[:, None]

    def arc(self, three: torch.Tensor, place: Place = "") -> torch.Tensor:
        radius, start, step = three.reshape(3)
        angles_V = start + step * torch.arange(self.vocabulary, dtype=self.dtype)
        return radius * torch.stack([angles_V.cos(), angles_V.sin()], dim=1)


@dataclass
class Watch:
    """What attention does in a pass: its weights (B, H, A, T), one tensor for each attention, are appended to `seen`.
    If `instead` is given, these weights (H or 1, T, T) are used in their place."""

    seen: list[torch.Tensor] = field(default_factory=list)
    instead: Sequence[torch.Tensor] | None = None


class DeclaredModel:
    """The model of a declared adder. It can be called with other tables of the same shapes, to train it."""

    def __init__(self, adder: Adder) -> None:
        self.adder = adder
        self.vocabulary = check_shapes(adder)
        dtype = getattr(torch, adder.precision)
        self.tables = {
            name: torch.from_numpy(np.array(table, dtype=np.float64)).to(dtype) for name, table in adder.numbers.items()
        }
        parts = adder.model.parts()
        self._last = max((i for i, (_, kind, _) in enumerate(parts) if kind == "attention"), default=0)

    def __call__(
        self,
        ids_BT: torch.Tensor,
        asked: int | None = None,
        tables: Mapping[str, torch.Tensor] | None = None,
        watch: Watch | None = None,
    ) -> torch.Tensor:
        """The logits (B, A, V) at the last `asked` positions, or at all."""
        model = self.adder.model
        given = Pass(Tensors(self.tables if tables is None else tables, self.vocabulary), self.adder, watch or Watch())
        tokens = ids_BT.shape[1]
        x_BTD = given.get(model.embedding)[ids_BT]
        if model.positions is not None:
            x_BTD = x_BTD + given.positions(tokens, x_BTD.shape[-1])
        for index, (_, kind, part) in enumerate(model.parts()):
            given.asked = tokens if asked is None or index < self._last else asked
            x_BTD = given.part(x_BTD, part, LAYERS[kind])
        return given.head(given.norm(x_BTD[:, -(asked or tokens) :], model.norm), model.head)


class Pass:
    """One forward pass."""

    def __init__(self, tensors: Tensors, adder: Adder, watch: Watch) -> None:
        self.tensors, self.rope, self.declared, self.watch = tensors, adder.model.rope, adder.model.positions, watch
        self.asked = 0
        """At how many positions, the last ones, the next part is computed."""

    def get(self, reference: Reference) -> torch.Tensor:
        return resolve(reference, self.tensors, "")

    def map(self, x: torch.Tensor, linear: Map | None) -> torch.Tensor:
        if linear is None or (linear.w is None and linear.b is None):
            return x
        if linear.w is None:
            return self.get(linear.b).expand(*x.shape[:-1], -1)
        product = x @ self.get(linear.w).mT
        return product if linear.b is None else product + self.get(linear.b)

    def norm(self, x: torch.Tensor, norm: Norm | None) -> torch.Tensor:
        if norm is None:
            return x
        eps = norm.eps or EPS[norm.kind]
        if norm.kind == "layer":
            x = x - x.mean(-1, keepdim=True)
        if norm.kind != "none":
            x = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
        x = x if norm.gain is None else x * self.get(norm.gain)
        return x if norm.bias is None else x + self.get(norm.bias)

    def part(self, x_BTD: torch.Tensor, part: Part, layer: Callable[..., torch.Tensor]) -> torch.Tensor:
        change = layer(self, x_BTD if part.post else self.norm(x_BTD, part.norm), part)
        change = change if part.branch == 1 else change * self.get(part.branch)
        stream = x_BTD[:, -change.shape[1] :]
        if part.residual != 0:
            change = change + (stream if part.residual == 1 else stream * self.get(part.residual))
        return self.norm(change, part.norm) if part.post else change

    def head(self, x: torch.Tensor, head: Head) -> torch.Tensor:
        if head.nearest is None:
            return self.map(x, head)
        points_VD = self.get(head.nearest)
        return x @ points_VD.mT - (points_VD**2).sum(-1) / 2

    def positions(self, tokens: int, width: int) -> torch.Tensor:
        assert self.declared is not None
        if self.declared.table is not None:
            return self.get(self.declared.table)[:tokens]
        pairs = torch.arange((width + 1) // 2, dtype=self.tensors.dtype)
        rates = self.get(self.declared.sinusoidal).reshape(()) ** (-2 * pairs / width)
        angles = torch.arange(tokens, dtype=self.tensors.dtype)[:, None] * rates
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]

    def turned(self, x_BHTW: torch.Tensor, positions_T: torch.Tensor) -> torch.Tensor:
        """Rotary positions."""
        if self.rope is None:
            return x_BHTW
        half = x_BHTW.shape[-1] // 2
        if self.rope.period is not None:
            angles = positions_T[:, None] * (2 * math.pi / self.get(self.rope.period).reshape(())).expand(half)
        else:
            rates = self.get(self.rope.theta).reshape(()) ** (-torch.arange(half, dtype=self.tensors.dtype) / half)
            angles = positions_T[:, None] * rates
        cos, sin = angles.cos(), angles.sin()
        one, other = x_BHTW[..., :half], x_BHTW[..., half:]
        return torch.cat([one * cos - other * sin, one * sin + other * cos], dim=-1)


def attention(given: Pass, x_BTD: torch.Tensor, part: Attention) -> torch.Tensor:
    """Causal softmax attention (Vaswani et al. 2017), with grouped heads (Ainslie et al. 2023)."""
    kv_heads = part.kv_heads or part.heads
    tokens, asked = x_BTD.shape[1], given.asked
    q_BHAW = split(given.map(x_BTD[:, -asked:], part.q), part.heads)
    k_BKTW, v_BKTW = (split(given.map(x_BTD, each), kv_heads) for each in (part.k, part.v))
    positions_T = torch.arange(tokens, dtype=given.tensors.dtype)
    q_BHAW = given.turned(given.norm(q_BHAW, part.q_norm), positions_T[-asked:])
    k_BKTW = given.turned(given.norm(k_BKTW, part.k_norm), positions_T)
    if part.heads > kv_heads:
        k_BKTW, v_BKTW = (x.repeat_interleave(part.heads // kv_heads, 1) for x in (k_BKTW, v_BKTW))
    scores_BHAT = q_BHAW @ k_BKTW.mT
    width = math.sqrt(q_BHAW.shape[-1])
    scores_BHAT = scores_BHAT / width if part.scale is None else scores_BHAT * given.get(part.scale).reshape(())
    # slopes and mask are one table, because scores are the largest tensors of all
    distances_AT = positions_T[-asked:, None] - positions_T
    bias_AT = torch.zeros_like(distances_AT).masked_fill(distances_AT < 0, -math.inf)
    if part.alibi is not None:
        bias_AT = bias_AT - distances_AT * given.get(part.alibi).reshape(-1, 1, 1)
    weights_BHAT = (scores_BHAT + bias_AT).softmax(-1)
    if given.watch.instead is not None:
        weights_BHAT = given.watch.instead[len(given.watch.seen)][..., tokens - asked : tokens, :tokens].expand_as(
            weights_BHAT
        )
    given.watch.seen.append(weights_BHAT)
    return given.map((weights_BHAT @ v_BKTW).transpose(1, 2).flatten(2), part.o)


def split(x_BTD: torch.Tensor, heads: int) -> torch.Tensor:
    return x_BTD.unflatten(2, (heads, -1)).transpose(1, 2)


def ffn(given: Pass, x_BTD: torch.Tensor, part: Ffn) -> torch.Tensor:
    """A feed-forward layer, gated (Shazeer 2020) or not."""
    x_BAD = x_BTD[:, -given.asked :]
    up_BAF = given.map(x_BAD, part.up)
    act = ACTIVATIONS[part.act]
    hidden_BAF = act(up_BAF) if part.gate is None else act(given.map(x_BAD, part.gate)) * up_BAF
    return given.map(hidden_BAF, part.down)


LAYERS: dict[str, Callable[[Pass, torch.Tensor, Any], torch.Tensor]] = {"attention": attention, "ffn": ffn}
