"""The parts of a model that instruments replace or remove."""

import re
from typing import Literal, NamedTuple, TypeAlias

from lab.errors import TaskError

_NAME = re.compile(r"L(\d+)(?:H(\d+)| (mlp|pre|mid|post))")

Site: TypeAlias = Literal["pre", "mid", "post"]
SITES: tuple[Site, ...] = ("pre", "mid", "post")
"""Where the residual stream is read in a layer: before attention, between attention and MLP, after the MLP."""
Kind: TypeAlias = Literal["head", "mlp", "pre", "mid", "post"]


class Component(NamedTuple):
    """The output of a head before the output projection, the output of an MLP, or the residual stream at a site of a
    layer (`SITES`)."""

    kind: Kind
    layer: int
    head: int = 0

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}" if self.kind == "head" else f"L{self.layer} {self.kind}"

    @classmethod
    def named(cls, name: str) -> "Component":
        """The component with this name, such as "L2H0" or "L1 mlp". Raises TaskError for anything else.

        >>> Component.named("L2H0"), Component.named("L1 mlp")
        (Component(kind='head', layer=2, head=0), Component(kind='mlp', layer=1, head=0))
        """
        found = _NAME.fullmatch(name)
        if not found:
            raise TaskError(f"{name!r} names no head, MLP or stream; use names such as L2H0, L1 mlp or L1 post")
        layer, head, kind = found.groups()
        return cls("head", int(layer), int(head)) if head else cls(kind, int(layer))  # type: ignore[arg-type]

    @property
    def hook_point(self) -> str:
        ends = {"head": "attn.hook_z", "mlp": "hook_mlp_out"}
        return f"blocks.{self.layer}.{ends.get(self.kind, f'hook_resid_{self.kind}')}"
