"""Records one pass of a model: each operation with its settings, and the tensors that it takes from outside.

Values are numbered as they appear; 0 is the ids. In-place operations and views are turned into plain ones on the way
(`torch.func.functionalize`), and attention into its smallest parts, so what is written is a list of pure functions.

Shapes: T tokens, V tokens in the vocabulary.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from unittest.mock import MagicMock, patch

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_WHY = {
    "storage": "forward reads numbers of its tensors in Python",
    "mutating a non-functional tensor": "forward changes a tensor that it keeps (leave out a cache of keys and values)",
}
"""What torch's messages mean here, by a part of them."""
OF_NO_ACCOUNT = ("device", "layout", "pin_memory", "memory_format", "non_blocking", "generator")
"""Settings that are not recorded: they change no number that an allowed operation computes."""
IDS = 0


class Tape(TorchDispatchMode):
    """While it is active, every operation is done and written to `nodes`, as [name, arguments, settings, results]."""

    def __init__(self, ids: torch.Tensor) -> None:
        super().__init__()
        self.ids = ids
        self.nodes: list[list[Any]] = []
        self.outside: dict[int, torch.Tensor] = {}
        self._seen: dict[int, tuple[int, torch.Tensor]] = {}
        self._values = count()
        self._number(ids)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        settings = {name: value for name, value in (kwargs or {}).items() if name not in OF_NO_ACCOUNT}
        written = [str(func), self._plainly(args), self._plainly(settings)]
        out = func(*args, **(kwargs or {}))
        for made in tree_leaves(out):  # changed in place, or handed through: another value from here on
            self._seen.pop(id(made), None)
        made = [self._number(leaf) for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        self.nodes.append([*written, made])
        return out

    def value(self, tensor: torch.Tensor) -> int:
        """The number of a tensor. A tensor that was not seen before comes from outside."""
        if id(tensor) in self._seen:
            return self._seen[id(tensor)][0]
        made = self._number(tensor)
        alike = tensor.numel() == self.ids.numel() and tensor.dtype == torch.int64
        if alike and tensor.flatten().tolist() == self.ids.flatten().tolist():  # made of a plain list of the ids
            self.nodes.append(["aten.view.default", [{"value": IDS}, list(tensor.shape)], {}, [made]])
        else:
            self.outside[made] = tensor
        return made

    def _number(self, tensor: torch.Tensor) -> int:
        if id(tensor) not in self._seen:
            self._seen[id(tensor)] = (next(self._values), tensor)  # kept, so that no later tensor gets its id
        return self._seen[id(tensor)][0]

    def _plainly(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return {"value": self.value(value)}
        if isinstance(value, torch.dtype):
            return {"type": str(value).removeprefix("torch.")}
        if isinstance(value, list | tuple):
            return [self._plainly(part) for part in value]
        if isinstance(value, dict):
            return {name: self._plainly(part) for name, part in value.items()}
        return value if value is None or isinstance(value, bool | int | float | str) else None


def written_down(model: Callable[[Any], Any], ids: Sequence[int], vocabulary: int) -> tuple[Tape, int]:
    """The recorded pass of a model over one sequence, and the value number of its logits.

    The ids are given as a batch of one row; if the model does not take that, as a row alone; then as a plain list.
    If none of them gives logits, raises what the first of them raised.
    """
    batch = torch.tensor([ids])
    refused: Exception | None = None
    for given in (batch, batch[0].clone(), list(ids)):
        tensor = given if isinstance(given, torch.Tensor) else batch
        tape = Tape(tensor)
        try:
            own = patch.object(torch.autograd.Function, "apply", classmethod(forward_alone))
            with own, torch.no_grad(), sdpa_kernel(SDPBackend.MATH), tape:
                logits = torch.func.functionalize(
                    lambda ids, given=given: first(model(given if isinstance(given, list) else ids))
                )(tensor)
            as_many = logits.numel() in (vocabulary, vocabulary * len(ids))
            if not isinstance(logits, torch.Tensor):
                raise TypeError(f"forward returns {type(logits).__name__}; it should return the logits")
            if logits.ndim < 1 or logits.shape[-1] != vocabulary or not as_many:
                raise TypeError(f"logits of shape {tuple(logits.shape)} for {len(ids)} ids and VOCAB_SIZE {vocabulary}")
            return tape, tape.value(logits)
        except Exception as error:
            refused = refused or next((TypeError(why) for part, why in _WHY.items() if part in str(error)), error)
    raise refused or TypeError("no pass")


def first(output: Any) -> Any:
    """The logits of an output that names them, the first part of one that has several parts, else the output itself."""
    if isinstance(output, dict) and "logits" in output:
        return output["logits"]
    output = getattr(output, "logits", output)
    return output[0] if isinstance(output, tuple | list) else output


def forward_alone(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What `torch.autograd.Function.apply` computes. The context is a stand-in that accepts everything and keeps
    nothing."""
    takes_context = function.setup_context is torch.autograd.Function.setup_context
    return function.forward(*[MagicMock()] * takes_context, *args, **kwargs)


def warm_up() -> None:
    """Makes torch import now what it would import when a pass is first recorded."""
    torch.backends.mha.set_fastpath_enabled(False)
    table = torch.eye(3)

    def model(ids: torch.Tensor) -> torch.Tensor:
        x = table[torch.nn.functional.one_hot(ids, 3).argmax(-1)][:, None]
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)[:, 0]

    written_down(model, [0, 1, 2], 3)
