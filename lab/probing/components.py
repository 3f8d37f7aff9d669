"""The parts of a model that instruments replace or take away."""

from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["head", "mlp", "pre", "mid", "post"]


class Component(NamedTuple):
    """A head's output before the output projection, what an MLP adds, or the stream before, within, after a layer."""

    kind: Kind
    layer: int
    head: int = 0

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}" if self.kind == "head" else f"L{self.layer} {self.kind}"

    @property
    def hook_point(self) -> str:
        ends = {"head": "attn.hook_z", "mlp": "hook_mlp_out"}
        return f"blocks.{self.layer}.{ends.get(self.kind, f'hook_resid_{self.kind}')}"
