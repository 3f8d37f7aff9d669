"""One pass of a model, recorded: what it computes step by step, and what attention carries between positions.

The sums over positions that attention takes are its mixes. A recording can be made again on other tokens with the mixes
of an earlier one in their places: whatever still changes elsewhere than at the changed token came by another way
than attention. (Activation patching, as in Geiger et al. 2021, arXiv 2106.02997, here to test what may flow where.)

Shapes: T tokens.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_flatten

from lab.smallest_adder import tensors
from lab.smallest_adder.attention import Pieces, weights

SUMS = ("mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addmv", "sum", "mean", "einsum")
PRODUCTS = (*SUMS, "mul", "div")

ROUNDING = (
    "floor", "ceil", "round", "trunc", "frac", "remainder", "fmod", "floor_divide", "bucketize", "searchsorted",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift",
    "__lshift__", "__rshift__",
)  # fmt: skip


class Array(NamedTuple):
    """Numbers on their way between processes."""

    shape: Sequence[int]
    numbers: Sequence[float]


class Recording(NamedTuple):
    keys: Sequence[int]
    """Of every softmax, and of exponentials, how many numbers it is over."""
    steps: Sequence[str]
    """Each operation with its settings and numbers: the computation without its data."""
    constants: Sequence[float]
    """Numbers that operations were given, each once; 0, 1 and -1, the infinite and the largest left out."""
    views: Sequence[str]
    """Reinterpretations of bits."""
    foreign: Sequence[str]
    """Tensors that are no parameter, no buffer, and made by no operation of the pass."""
    rounded: Sequence[str]
    """Each rounding of floating-point numbers and a digest of its result."""
    scores: Sequence[Array]
    values: Sequence[Array]
    """What attention's weights were made of, and what they were multiplied with."""
    mixes: Sequence[Array]


class Recorder(Pieces):
    def __init__(self, ids: torch.Tensor, model: torch.nn.Module, extra: set[int], mixes: Sequence[Array]) -> None:
        """`extra`: how many keys attention has beyond tokens; `mixes`: of an earlier pass, to be used again."""
        super().__init__()
        self.attended = {ids.shape[-1] + more for more in extra}
        self.again = list(mixes)
        self.repeats = bool(mixes)
        self.known: dict[int, torch.Tensor] = {}
        self.carrying: dict[int, torch.Tensor] = {}
        for _, _, tensor in tensors.counted(model):
            self._know(tensor)
        self._know(ids)
        self.ids = ids
        self.lists: dict[str, list] = {name: [] for name in Recording._fields}

    @property
    def recording(self) -> Recording:
        plain = {name: list(dict.fromkeys(kept)) if name == "constants" else kept for name, kept in self.lists.items()}
        return Recording(**plain)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::").rstrip("_")
        leaves = tree_flatten((args, kwargs))[0]
        inputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self._note(func, name, leaves, inputs)
        carried = [tensor for tensor in inputs if _place(tensor) in self.carrying]
        others = [tensor for tensor in inputs if _place(tensor) not in self.carrying]
        out = func(*args, **kwargs)
        if carried and name in PRODUCTS:
            self.lists["values"] += [_array(tensor) for tensor in others]
        if isinstance(out, torch.Tensor):
            if carried and name in SUMS:
                out = self._mixed(out)
            elif carried:
                self.carrying[_place(out)] = out
            out = self._attended(func, args, out)
            self._round(func, name, inputs, out)
        for made in tree_flatten(out)[0]:
            if isinstance(made, torch.Tensor):
                self._know(made)
        return out

    def _know(self, tensor: torch.Tensor) -> None:
        self.known[_place(tensor)] = tensor

    def _note(self, func: Any, name: str, leaves: list, inputs: list[torch.Tensor]) -> None:
        settings = [str(leaf) for leaf in leaves if not isinstance(leaf, torch.Tensor)]
        for tensor in inputs:
            if _place(tensor) in self.known or not tensor.numel():
                continue
            self._know(tensor)
            if tensor.numel() == 1:
                settings.append(str(tensor.item()))
                self._constant(tensor.item())
            elif not (self._are_ids(tensor) or (tensor.dtype == torch.bool and tensors.is_causal_pattern(tensor))):
                self.lists["foreign"].append(f"a tensor of shape {tuple(tensor.shape)}")
        self.lists["steps"].append(f"{name}({', '.join(settings)})"[:200])
        for place, argument in zip(func._schema.arguments, leaves, strict=False):
            if isinstance(argument, int | float) and not any(word in str(place.type) for word in ("int", "bool")):
                self._constant(argument)
        if func is torch.ops.aten.view.dtype:
            self.lists["views"].append(f"{inputs[0].dtype} as {leaves[1]}")

    def _are_ids(self, tensor: torch.Tensor) -> bool:
        """Made by a model that takes a list of ids."""
        return tensor.numel() == self.ids.numel() and bool((tensor.flatten() == self.ids.flatten()).all())

    def _constant(self, number: Any) -> None:
        if isinstance(number, int | float) and number not in (0, 1, -1) and abs(number) < 1e4:
            self.lists["constants"].append(float(number))

    def _mixed(self, out: torch.Tensor) -> torch.Tensor:
        self.lists["mixes"].append(_array(out))
        if not self.repeats:
            return out
        earlier = self.again.pop(0) if self.again else None
        if earlier is None or tuple(earlier.shape) != tuple(out.shape):
            raise ValueError("attention has another shape for other tokens")
        return torch.tensor(earlier.numbers, dtype=torch.float64).reshape(out.shape).to(out.dtype)

    def _attended(self, func: Any, args: tuple, out: torch.Tensor) -> torch.Tensor:
        found = weights(func, args, out)
        if found:
            self.lists["keys"].append(found.keys)
            if found.keys in self.attended:
                self.lists["scores"].append(_array(found.scores))
                self.carrying[_place(out)] = out
        return out

    def _round(self, func: Any, name: str, inputs: list[torch.Tensor], out: torch.Tensor) -> None:
        floats = any(tensor.is_floating_point() for tensor in inputs)
        becomes_integer = name in ("_to_copy", "copy") and not out.is_floating_point() and out.dtype != torch.bool
        rounds = name in ROUNDING or (name == "div" and "mode" in func._overloadname)
        if floats and (becomes_integer or rounds):
            numbers = str(out.flatten().tolist()).encode()
            self.lists["rounded"].append(f"{name} {hashlib.sha256(numbers).hexdigest()[:16]}")


def _place(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _array(tensor: torch.Tensor) -> Array:
    return Array(list(tensor.shape), tensor.to(torch.float64).flatten().tolist())
