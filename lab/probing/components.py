"""The parts of a model that instruments replace or remove."""

import re
from typing import Literal, NamedTuple, TypeAlias

from lab.errors import TaskError

Site: TypeAlias = Literal["pre", "mid", "post"]
SITES: tuple[Site, ...] = ("pre", "mid", "post")
"""Where the residual stream is read in a layer: before attention, between attention and MLP, after the MLP."""
Kind: TypeAlias = Literal["head", "q", "k", "v", "pattern", "mlp", "neuron", "pre", "mid", "post"]
INDEXED: tuple[Kind, ...] = ("head", "q", "k", "v", "pattern", "neuron")
"""The kinds of which a layer has several; all others are the whole activation."""
_POINTS = {"head": "attn.hook_z", "mlp": "hook_mlp_out", "neuron": "mlp.hook_post"} | {
    kind: f"attn.hook_{kind}" for kind in ("q", "k", "v", "pattern")
}
_NAME = re.compile(r"L(\d+)(?:H(\d+)(?:\.(q|k|v|pattern))?|N(\d+)| (mlp|pre|mid|post))")


class Component(NamedTuple):
    """The output of a head before the output projection, its queries, keys, values or pattern, the output of an MLP, a
    neuron of an MLP after its activation function, or the residual stream at a site of a layer (`SITES`)."""

    kind: Kind
    layer: int
    head: int = 0
    """The number of the head, of the key-value head, or of the neuron."""

    def __str__(self) -> str:
        if self.kind == "neuron":
            return f"L{self.layer}N{self.head}"
        if self.kind in INDEXED:
            return f"L{self.layer}H{self.head}{'' if self.kind == 'head' else f'.{self.kind}'}"
        return f"L{self.layer} {self.kind}"

    @classmethod
    def named(cls, name: str) -> "Component":
        """The component with this name, such as "L2H0", "L2H0.q", "L1N5" or "L1 mlp". Raises TaskError for anything
        else.

        >>> Component.named("L2H0"), Component.named("L1 mlp")
        (Component(kind='head', layer=2, head=0), Component(kind='mlp', layer=1, head=0))
        """
        found = _NAME.fullmatch(name)
        if not found:
            raise TaskError(f"{name!r} names no head, MLP or stream; use names such as L2H0, L1 mlp or L1 post")
        layer, head, input, neuron, kind = found.groups()
        if neuron:
            return cls("neuron", int(layer), int(neuron))
        return cls(input or "head", int(layer), int(head)) if head else cls(kind, int(layer))  # type: ignore[arg-type]

    @property
    def hook_point(self) -> str:
        return f"blocks.{self.layer}.{_POINTS.get(self.kind, f'hook_resid_{self.kind}')}"
