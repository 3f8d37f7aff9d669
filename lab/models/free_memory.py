"""How much memory this process can still use."""

import resource
from pathlib import Path

import psutil
import torch


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
