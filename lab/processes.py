"""One job in several processes, as `accelerate launch` or torchrun start them: who this one is, and what they agree on.

Every process runs the same command on the same config. The main one, number 0, alone speaks and writes; what is shared
out between them is what costs time: batches of a training step, batches of questions.
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
"""One process may score for hours what the others do not; who launched them ends the rest when one of them fails."""


def count() -> int:
    # a scheduler may set WORLD_SIZE by itself; only a launcher of processes says which of its machine's each one is
    return int(os.environ.get("WORLD_SIZE", "1")) if "LOCAL_RANK" in os.environ else 1


def number() -> int:
    """Of this process, from 0 up."""
    return int(os.environ.get("RANK", "0")) if count() > 1 else 0


def number_here() -> int:
    """Of this process on its machine, which is the number of its GPU."""
    return int(os.environ["LOCAL_RANK"]) if count() > 1 else 0


def is_main() -> bool:
    return number() == 0


def one_voice() -> AbstractContextManager[Any]:
    """Within it the main process alone prints to standard output."""
    return nullcontext() if is_main() else redirect_stdout(open(os.devnull, "w"))


def from_main(act: Callable[[], T]) -> T:
    """What `act` returns in the main process, which alone performs it, in every process.

    What it raises there ends the other processes in silence, with status 2.
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
    """The value of every process, in their order, in every process; waits for all of them."""
    if count() == 1:
        return [value]
    values: list[Any] = [None] * count()
    _joined().all_gather_object(values, value)
    return values


def share(items: Sequence[T]) -> list[T]:
    """Every item is in the share of one process: they take turns."""
    return list(items[number() :: count()])


@cache
def _joined() -> "ModuleType":
    """torch.distributed, with this process in its group; the trainer finds it there."""
    import atexit

    import torch
    from torch import distributed

    # both, as objects travel by CPU while gradients do by GPU
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    distributed.init_process_group(backend, timeout=_LONGEST_WAIT)
    atexit.register(distributed.destroy_process_group)
    return distributed
