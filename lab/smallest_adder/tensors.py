"""Where a submission keeps its numbers, looked at from inside its process.

What counts is in parameters and buffers. Anything else that holds numbers is a stray; torch's own functions should be
torch's own after the submission was loaded.
"""

import builtins
import json
import math
import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

LARGEST_WALK = 200_000
"""Objects looked at when strays are sought."""


def counted(model: torch.nn.Module) -> Iterator[tuple[str, str, torch.Tensor]]:
    """(name, "parameter" or "buffer", tensor), tied tensors under each of their names.

    Read from where torch keeps them: a submission's class could answer `named_parameters` with less. Raises TypeError
    for a tensor of a class of its own, whose shape could be anything.
    """
    for prefix, module in submodules(model):
        for kind, place in (("parameter", "_parameters"), ("buffer", "_buffers")):
            for name, tensor in dict.items(vars(module)[place]):
                if tensor is None:
                    continue
                if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
                    raise TypeError(f"{name} is a {type(tensor).__name__}, not a torch.Tensor or torch.nn.Parameter")
                yield f"{prefix}.{name}".lstrip("."), kind, tensor


def submodules(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """Each once, with its name."""
    waiting, seen = [("", model)], set()
    while waiting:
        prefix, module = waiting.pop(0)
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield prefix, module
        inner = dict.items(vars(module)["_modules"])
        waiting += [(f"{prefix}.{name}".lstrip("."), part) for name, part in inner if part is not None]


def described(model: torch.nn.Module) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "kind": kind,
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "trainable": tensor.requires_grad,
            "storage": tensor.untyped_storage()._cdata,
            "offset": tensor.storage_offset(),
            "shape": list(tensor.shape),
            "stride": list(tensor.stride()),
            "bits": 8 * tensor.element_size(),
        }
        for name, kind, tensor in counted(model)
    ]


def storages(model: torch.nn.Module) -> list[torch.Tensor]:
    """The whole storages behind what is counted, each once, as one-dimensional tensors. Boolean ones are left out."""
    found = {}
    for _, _, tensor in counted(model):
        if tensor.dtype != torch.bool:
            storage = tensor.untyped_storage()
            found.setdefault(storage.data_ptr(), torch.empty(0, dtype=tensor.dtype).set_(storage))
    return list(found.values())


def clear_unseen(model: torch.nn.Module) -> None:
    """Zero what lies in the storages but in no parameter or buffer: nothing uncounted can be read from there."""
    for whole in storages(model):
        seen = torch.zeros(len(whole), dtype=torch.bool)
        for _, _, tensor in counted(model):
            if tensor.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr() and tensor.numel():
                if tensor.dtype != whole.dtype:
                    raise TypeError("a storage is read as two number types")
                seen.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).fill_(True)
        if not seen.all():
            whole[~seen] = 0


def replaced_by_zeros(model: torch.nn.Module) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(storage, its numbers before) for each that is now zero."""
    kept = [(whole, whole.clone()) for whole in storages(model)]
    for whole, _ in kept:
        whole.zero_()
    return kept


def fill_with_noise(wholes: Sequence[torch.Tensor], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for whole in wholes:
        if whole.is_floating_point():
            whole.copy_(torch.randn(len(whole), generator=generator, dtype=torch.float64))
        else:
            whole.copy_(torch.randint(0, 10, (len(whole),), generator=generator))


def is_causal_pattern(mask: torch.Tensor) -> bool:
    """Whether it is a lower or upper triangle (any diagonal) or the same everywhere."""
    if mask.numel() == 0 or bool((mask == mask.flatten()[0]).all()):
        return True
    if mask.ndim < 2 or math.prod(mask.shape[:-2]) != 1:
        return False
    square = mask.reshape(mask.shape[-2:]).to(torch.bool)
    return any(
        bool((square == torch.ones_like(square).tril(diagonal)).all())
        or bool((square == torch.ones_like(square).triu(diagonal)).all())
        for diagonal in (-1, 0, 1)
    )


def strange_masks(model: torch.nn.Module) -> list[str]:
    return [name for name, _, tensor in counted(model) if tensor.dtype == torch.bool and not is_causal_pattern(tensor)]


def strays(module: types.ModuleType, model: torch.nn.Module) -> list[str]:
    """Tensors and arrays that the submission can reach but that are no parameter or buffer, each described."""
    owned = {tensor.untyped_storage().data_ptr() for _, _, tensor in counted(model)}
    found = []
    for path, value in reachable(module, model):
        if isinstance(value, np.ndarray):
            found.append(f"{path}: an array of shape {value.shape}")
        elif value.untyped_storage().data_ptr() in owned:
            continue
        elif not (value.dtype == torch.bool and is_causal_pattern(value)):
            found.append(f"{path}: a tensor of shape {tuple(value.shape)}")
    return found


def reachable(module: types.ModuleType, model: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """Every tensor and array that the submission's globals, closures, attributes and caches lead to."""
    import gc

    waiting: list[tuple[str, Any]] = [("the file's globals", module.__dict__), ("the model", model)]
    seen: set[int] = set()
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen or len(seen) > LARGEST_WALK:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor | np.ndarray):
            yield path, value
        elif _is_foreign(value, module.__name__):
            continue
        elif isinstance(value, dict):
            waiting += [(_place(path, name), part) for name, part in value.items()]
        else:
            inner = _name(value, path)
            waiting += [(inner, part) for part in gc.get_referents(value)]


def _is_foreign(value: Any, name: str) -> bool:
    """Whether it belongs to a library, or cannot hold anything."""
    if isinstance(value, types.ModuleType | types.BuiltinFunctionType | str | bytes | int | float):
        return True
    if isinstance(value, type | types.FunctionType):
        return getattr(value, "__module__", None) != name
    return value is vars(builtins)


def _name(value: Any, path: str) -> str:
    if isinstance(value, type | types.FunctionType):
        return f"{value.__qualname__}"
    return path


def _place(path: str, name: object) -> str:
    return f"{path}, {name}" if isinstance(name, str) and not name.startswith("_") else path


CLASSES = ("Tensor", "TensorBase", "Module", "Parameter", "Linear", "Embedding")


def public_names() -> dict[tuple[str, str], Any]:
    """What the functions are that a submission could replace to deceive the harness."""
    owners = (
        builtins, json, math, torch, torch.Tensor, torch._C.TensorBase, torch.nn, torch.nn.functional, torch.nn.Module,
        torch.nn.Parameter, torch.nn.Linear, torch.nn.Embedding, torch.UntypedStorage, torch.utils, torch.autograd, np,
    )  # fmt: skip
    ours = [value for key, value in globals().items() if key in ("counted", "described", "storages", "strays")]
    names = {(owner.__name__, key): value for owner in owners for key, value in vars(owner).items()}
    return names | {(__name__, function.__name__): function for function in ours}


def changed(before: dict[tuple[str, str], Any]) -> list[str]:
    """What is another object now, or gone; or new in one of torch's classes, where it hides what they inherit."""
    now = public_names()
    missing = object()
    replaced = {key for key, value in before.items() if now.get(key, missing) is not value}
    added = {key for key in now.keys() - before.keys() if key[0] in CLASSES}
    return sorted(f"{owner}.{name}" for owner, name in replaced | added if name not in ("_", "__warningregistry__"))
