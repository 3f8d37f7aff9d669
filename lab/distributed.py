"""One job in several processes, started by `accelerate launch` or torchrun: which process this is, and how they
exchange values.

Every process runs the same command on the same config. Only the main process, rank 0, prints and writes files. The
expensive work is divided between the processes: batches of a training step and batches of questions.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # torch takes seconds to import, and most jobs are one process
    from types import ModuleType

T = TypeVar("T")

_LONGEST_WAIT = timedelta(days=7)
"""The longest time that processes wait for each other. One process may score answers for hours while the others wait.
If a process fails, the launcher ends the others."""


def count() -> int:
    """The number of processes of this job."""
    # a scheduler may set WORLD_SIZE by itself; only a launcher of processes sets LOCAL_RANK
    return int(os.environ.get("WORLD_SIZE", "1")) if "LOCAL_RANK" in os.environ else 1


def rank() -> int:
    """The rank of this process among all, from 0."""
    return int(os.environ.get("RANK", "0")) if count() > 1 else 0


def local_rank() -> int:
    """The number of this process among those on its machine, which is also the number of its GPU."""
    return int(os.environ["LOCAL_RANK"]) if count() > 1 else 0


def is_main() -> bool:
    """Whether this process prints and writes files."""
    return rank() == 0


def one_voice() -> AbstractContextManager[Any]:
    """A context in which only the main process prints to standard output."""
    return nullcontext() if is_main() else redirect_stdout(open(os.devnull, "w"))


def from_main(act: Callable[[], T]) -> T:
    """Calls `act` in the main process alone, and returns its result in every process.

    If `act` raises an exception, the other processes exit silently with status 2.
    """
    if count() == 1:
        return act()
    if not is_main():
        told: list[Any] = [None, None]
        _joined().broadcast_object_list(told)
        done, result = told
        if not done:
            raise SystemExit(2)
        return result
    try:
        result = act()
    except BaseException:
        _joined().broadcast_object_list([False, None])
        raise
    _joined().broadcast_object_list([True, result])
    return result


def gather(value: T) -> list[T]:
    """The values of all processes, in the order of their ranks. Waits for all processes and returns in each."""
    if count() == 1:
        return [value]
    values: list[Any] = [None] * count()
    _joined().all_gather_object(values, value)
    return values


def share(items: Sequence[T]) -> list[T]:
    """The items that this process should handle. The processes take turns, so each item is in exactly one share."""
    return list(items[rank() :: count()])


@cache
def _joined() -> "ModuleType":
    """torch.distributed, after this process has joined its group; the trainer uses the same group."""
    import atexit

    import torch
    from torch import distributed

    # both backends: objects travel by CPU, gradients by GPU
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    distributed.init_process_group(backend, timeout=_LONGEST_WAIT)
    atexit.register(distributed.destroy_process_group)
    return distributed
