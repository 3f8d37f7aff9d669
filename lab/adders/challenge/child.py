"""A Python adder in a process of its own, seen from outside: one question goes in, one reply comes out.

Each question gets a fresh confined process, so what the file learns in one cannot reach the next. The reply is JSON of
bounded size. If there is none in time, if it is no JSON, or if the process dies, `Misbehaved` says what the file did.
Does not import torch.
"""

import json
import multiprocessing
import signal
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from lab.adders.challenge.confinement import confinable
from lab.errors import TaskError

LONGEST_REPLY = 8 << 20
"""Bytes; as JSON, they may take thirty times as much memory once they are read."""
STARTING = 600
"""Seconds that a process may take until it is ready, which importing torch may delay."""
READY = b"ready"


class Limits(NamedTuple):
    """What a file may use."""

    memory: int = 4 << 30
    """Bytes of address space of a process, of which Python and torch take about 0.7 GB."""
    seconds: float = 600
    """Seconds for everything together, without the start of processes."""
    confined: bool = True
    """If False, a file runs even if there is no seccomp; it can then do whatever its user can."""


class Misbehaved(Exception):  # noqa: N818
    """The file raised an exception, hung, died, broke a rule, or sent something that is no answer."""


def ask(question: str, source: str, given: dict[str, Any], limits: Limits, seconds: float) -> tuple[Any, float]:
    """What a file answers, and the seconds that it took.

    Args:
        question: a key of worker.QUESTIONS. source: the text of the file. given: the question's details, as JSON.
        limits: what the process may use. seconds: how long it may take.

    Raises TaskError if processes cannot be confined here, and Misbehaved if there is no answer.
    """
    if limits.confined and not confinable():
        raise TaskError(
            "Python adders are untrusted code, confined by seccomp (Linux on x86-64 or ARM), which is not "
            "available here; unconfined=true runs one that you trust"
        )
    context = multiprocessing.get_context("forkserver")
    # Importing torch takes seconds: done once, in the process that all others are forked from.
    context.set_forkserver_preload(["lab.adders.challenge.worker"])
    ours, theirs = context.Pipe()
    bounds = (limits.memory, int(limits.seconds) + 1)
    process = context.Process(target=_serve, args=(theirs, bounds, limits.confined), daemon=True)
    process.start()
    theirs.close()
    try:
        _await(ours, process)
        began = time.monotonic()
        late = threading.Timer(max(0, seconds), process.kill)
        late.start()
        try:
            reply = _reply(ours, process, [question, source, given])
        except Misbehaved:
            if time.monotonic() - began >= seconds:
                raise Misbehaved(f"no verdict within {limits.seconds:g} seconds") from None
            raise
        finally:
            late.cancel()
        return reply, time.monotonic() - began
    finally:
        ours.close()
        process.kill()
        process.join(3)


def _await(ours: Connection, process: BaseProcess) -> None:
    try:
        if ours.poll(STARTING) and ours.recv_bytes(len(READY)) == READY:
            return
    except (OSError, EOFError):
        process.join(3)
    raise TaskError(f"no process could be started and confined: {death(process.exitcode)}")


def _reply(ours: Connection, process: BaseProcess, request: Any) -> Any:
    try:
        ours.send_bytes(json.dumps(request).encode())
        reply = json.loads(ours.recv_bytes(LONGEST_REPLY))
        error, value = reply.get("error"), reply.get("value")
    except (OSError, EOFError) as error:
        if "bad message length" in str(error):
            raise Misbehaved("sent more than any answer can be") from None
        process.join(3)
        raise Misbehaved(death(process.exitcode)) from None
    except Exception:  # whatever reading it may raise
        raise Misbehaved("wrote into the channel that the lab listens to") from None
    if error is not None:
        raise Misbehaved(error)
    return value


def _serve(*given: Any) -> None:
    from lab.adders.challenge.worker import serve  # imports torch, which only the processes need

    serve(*given)


def death(code: int | None) -> str:
    """How a process ended, from its exit code."""
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return "its process was ended: too much processor time, or memory"
    if code is not None and code < 0:
        names = {each.value: each.name for each in signal.Signals}
        return f"its process died of {names.get(-code, f'signal {-code}')}"
    return "its process ended itself" if code is not None else "its process closed the channel to the lab"
