"""How much memory this process can still use, and how much a training step will need."""

import resource
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import torch

from lab.errors import ModelError

_BESIDE = 2.0
"""Peak memory, as a multiple of what is kept: masks and the gradients of activations come on top, and a cache is
copied. In nine trainings on a CPU, the peak was 0.75 to 2.3 times what a step keeps for its backward pass; in the
smallest of them, fixed costs dominate."""
OPTIMIZER = 12
"""Bytes for each trained weight: its gradient and the two running means of Adam, in float32."""
_WORTH_SAYING = 0.5
"""What needs more than this share of the free memory at its peak is announced."""


def check_free(kept: float, free: float, what: str, advice: Callable[[], str]) -> None:
    """Refuses what needs more bytes than are free, and says in one line if it needs much of them.

    Args:
        kept: bytes that it keeps at the same time, as a rule less than it needs at its peak.
        free: bytes that are free.
        what: what keeps them, in words.
        advice: says what to change.

    Raises ModelError, in one line, if more is kept than is free.
    """
    says = f"{what} needs about {in_words(kept)} to {in_words(_BESIDE * kept)} of memory"
    if kept > free:
        raise ModelError(f"{says}, but only {in_words(free)} are free: {advice()}")
    if _BESIDE * kept > _WORTH_SAYING * free:
        print(f"{says}; {in_words(free)} are free")


def kept_by(forward: Callable[[], torch.Tensor], weights: Sequence[torch.Tensor]) -> int:
    """The bytes that a forward pass keeps for its backward pass, without the weights. Random numbers that are drawn
    later do not change."""
    known = {weight.untyped_storage().data_ptr() for weight in weights}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.random.fork_rng(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = forward()
    del loss  # until here its graph holds the tensors, so that no two have the same address
    return sum(kept.values())


def free_memory(device: torch.device) -> float:
    """The bytes that this process can still use on a device: what the machine has free, or the limits of its container
    (cgroup) and of its shell (ulimit -v) leave."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    used = psutil.Process().memory_info()
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    left = [psutil.virtual_memory().available, *_container()]
    return min([*left, limit - used.vms] if limit != resource.RLIM_INFINITY else left)


def _container() -> list[int]:
    """What the container's limit leaves, if there is one."""
    folder = Path("/sys/fs/cgroup")
    try:
        most = (folder / "memory.max").read_text().strip()
        return [] if most == "max" else [int(most) - int((folder / "memory.current").read_text())]
    except (OSError, ValueError):
        return []


def in_words(count: float) -> str:
    """A number of bytes, such as 1.5 GB."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"
