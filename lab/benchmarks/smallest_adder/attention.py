"""Self-attention, told by what a forward pass does rather than by how it is written.

Attention is a softmax over as many keys as there are tokens, whatever that number is: in nn.MultiheadAttention, in
scaled_dot_product_attention, or written out, with `softmax` or with `exp` and a division. Both of torch's fused forms
are taken apart so that the softmax is seen.

Shapes: T tokens.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

SOFTMAX = ("aten::_softmax", "aten::_safe_softmax")


class Watch(TorchDispatchMode):
    """Notes whether a pass over T tokens attends, and which reinterpretations of bits it makes."""

    def __init__(self, length: int, ablate: bool = False) -> None:
        super().__init__()
        self.length = length
        self.ablate = ablate
        self.attends = False
        self.views: set[str] = set()
        self._plain = sdpa_kernel(SDPBackend.MATH)
        self._gradless = torch.no_grad()  # in inference mode, operations arrive in larger pieces

    def __enter__(self) -> "Watch":
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

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.view.dtype:
            self.views.add(f"{args[0].dtype} as {args[1]}")
        weights = self._weights(func, args, out)
        if weights is None:
            return out
        self.attends = True
        return weights if self.ablate else out

    def _weights(self, func: Any, args: tuple, out: Any) -> torch.Tensor | None:
        """Where `out` is attention's weights: weights that are the same for every key."""
        if func._schema.name in SOFTMAX and out.ndim >= 2 and out.shape[args[1]] == self.length:
            return torch.full_like(out, 1 / self.length)
        if func._schema.name == "aten::exp" and out.ndim >= 2 and out.shape[-1] == self.length:
            return torch.ones_like(out)
        return None


@contextmanager
def uniform(length: int) -> Iterator[Watch]:
    """Inside, attention looks at all T tokens alike."""
    with Watch(length, ablate=True) as watch:
        yield watch


def warm_up() -> None:
    """What torch imports, and writes, when it is first watched."""
    with uniform(2):
        query, key, value = torch.zeros(3, 1, 1, 2, 2)
        torch.nn.functional.scaled_dot_product_attention(query, key, value)
