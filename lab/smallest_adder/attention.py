"""Self-attention, told by what a forward pass does rather than by how it is written.

Attention is a softmax over as many keys as there are tokens, or a fixed number more (a learned first key, a sink): in
nn.MultiheadAttention, in scaled_dot_product_attention, or written out, with `softmax` or with `exp` and a division.
Both of torch's fused forms are taken apart so that the softmax is seen.

Shapes: T tokens.
"""

from typing import Any, NamedTuple, Self

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

SOFTMAX = ("aten::_softmax", "aten::_safe_softmax")


class Weights(NamedTuple):
    """The softmax, or the exponentials, of an attention, and what they are made of."""

    scores: torch.Tensor
    keys: int
    """How many there are."""
    even: torch.Tensor
    """What they would be if all keys were alike."""


def weights(func: Any, args: tuple, out: Any) -> Weights | None:
    """Of an operation that could be attention's; whether it is, its number of keys tells."""
    if func._schema.name in SOFTMAX and out.ndim >= 2:
        keys = out.shape[args[1]]
        return Weights(args[0].movedim(args[1], -1), keys, torch.full_like(out, 1 / keys))
    if func._schema.name == "aten::exp" and out.ndim >= 2:
        return Weights(args[0], out.shape[-1], torch.ones_like(out))
    return None


class Pieces(TorchDispatchMode):
    """Inside, a pass arrives operation by operation, in torch's smallest ones."""

    def __init__(self) -> None:
        super().__init__()
        self._plain = sdpa_kernel(SDPBackend.MATH)
        self._gradless = torch.no_grad()  # in inference mode, operations arrive in larger pieces

    def __enter__(self) -> Self:
        self._fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        self._plain.__enter__()
        self._gradless.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._gradless.__exit__(*raised)
        self._plain.__exit__(*raised)
        torch.backends.mha.set_fastpath_enabled(self._fast)


class Even(Pieces):
    """Inside, attention with one of the given numbers of keys looks at all of them alike."""

    def __init__(self, keys: set[int]) -> None:
        super().__init__()
        self.keys = keys

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        found = weights(func, args, out)
        return found.even if found and found.keys in self.keys else out


def warm_up() -> None:
    """What torch imports, and writes, when it is first watched."""
    with Even({2}):
        query, key, value = torch.zeros(3, 1, 1, 2, 2)
        torch.nn.functional.scaled_dot_product_attention(query, key, value)
