"""A Python adder in a process of its own, seen from outside: questions go in, plain numbers and texts come out.

Nothing that comes back is trusted to be more than bytes: replies are JSON and rows of numbers, never pickles. A reply
that is late, too long or malformed ends the process. This, or a process that dies by itself, raises `Misbehaved`, whose
text says what the file did. Does not import torch.
"""

import json
import multiprocessing
import secrets
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from lab.adders.challenge.confinement import confinable
from lab.adders.verdict import plain
from lab.errors import TaskError

LONGEST_REPLY = 8 << 20
"""Bytes; as JSON, they may take thirty times as much memory once they are read."""
STARTING = 600
"""Seconds that a process may take until it is ready, which importing torch may delay."""


class Limits(NamedTuple):
    """What a file may use."""

    memory: int = 4 << 30
    """Bytes of address space of its process, of which Python and torch take about 0.7 GB."""
    seconds: float = 600
    """Seconds for everything together."""
    confined: bool = True
    """If False, a file runs even if there is no seccomp; it can then do whatever its user can."""


class Misbehaved(Exception):  # noqa: N818
    """The file raised an exception, hung, died, or sent something that was not an answer."""


class Clock:
    """The time that is left for a file. It stands still while processes start."""

    def __init__(self, seconds: float) -> None:
        self.seconds = self.left = seconds


class Child:
    """One confined process with the file in it; use it as a context manager."""

    def __init__(self, source: str, limits: Limits, clock: Clock) -> None:
        """Starts the process and loads the file. Raises TaskError if processes cannot be confined here, and
        Misbehaved."""
        if limits.confined and not confinable():
            raise TaskError(
                "Python adders are untrusted code, confined by seccomp (Linux on x86-64 or ARM), which is not "
                "available here; unconfined=true runs one that you trust"
            )
        context = multiprocessing.get_context("forkserver")
        # Importing torch takes seconds: done once, in the process that all children are forked from.
        context.set_forkserver_preload(["lab.adders.challenge.worker"])
        self._clock = clock
        self._connection, theirs = context.Pipe()
        bounds = (limits.memory, int(limits.seconds) + 1)
        self._process = context.Process(target=_serve, args=(theirs, bounds, limits.confined), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self.confinement: list[str] = self._reply(None, STARTING)[0]
        except Misbehaved as error:
            self.close()
            raise TaskError(f"no process could be started and confined: {error}") from error
        try:
            self.facts: dict[str, Any] = self.ask("load", source=source)
        except Misbehaved:
            self.close()
            raise

    def ask(self, question: str, **details: Any) -> Any:
        """The file's answer to a question. Raises Misbehaved if there is none."""
        return self._timed({"question": question, **details})[0]

    def numbers(self, question: str, shape: Sequence[int | None], **details: Any) -> np.ndarray:
        """An answer that is an array. Where `shape` has None, any size will do. Raises Misbehaved."""
        sizes, data = self._timed({"question": question, **details})
        if len(integers(sizes)) != len(shape) or any(a not in (None, b) for a, b in zip(shape, sizes, strict=True)):
            raise Misbehaved(f"sent numbers in the shape {plain(sizes, 60)}")
        if len(data) != 8 * np.prod(sizes, dtype=float) or not len(data) > 0:
            raise Misbehaved("sent another number of logits than it says")
        return np.frombuffer(data, dtype=np.float64).reshape(sizes)

    def _timed(self, request: dict[str, Any]) -> tuple[Any, bytes]:
        began = time.monotonic()
        try:
            return self._reply(request, self._clock.left)
        finally:
            self._clock.left -= time.monotonic() - began

    def _reply(self, request: dict[str, Any] | None, seconds: float) -> tuple[Any, bytes]:
        """The answer to a request; without one, what the process sends by itself. Raises Misbehaved."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        watch = threading.Timer(max(0, seconds), end)
        watch.daemon = True
        watch.start()
        try:
            stamp = secrets.token_hex(8) if request is not None else None
            if request is not None:
                self._connection.send_bytes(json.dumps({"stamp": stamp, **request}).encode())
            reply = json.loads(self._connection.recv_bytes(LONGEST_REPLY))
            if reply["stamp"] != stamp:
                raise ValueError("not from the worker, who alone knows the question's stamp")
            if "error" in reply:
                raise Misbehaved(plain(reply["error"]))
            return reply["value"], self._connection.recv_bytes(LONGEST_REPLY) if reply.get("data") else b""
        except Misbehaved:
            raise
        except (OSError, EOFError) as error:
            self.close()
            if late.is_set():
                raise Misbehaved(f"no verdict within {self._clock.seconds:g} seconds") from error
            if "bad message length" in str(error):
                raise Misbehaved("sent more than any answer can be") from error
            raise Misbehaved(death(self._process.exitcode)) from error
        except Exception as error:  # whatever reading it may raise
            self.close()
            raise Misbehaved("wrote into the channel that the harness listens to") from error
        finally:
            watch.cancel()

    @property
    def alive(self) -> bool:
        return not self._connection.closed and self._process.is_alive()

    def close(self) -> None:
        self._connection.close()
        if self._process.is_alive():
            self._process.kill()
        self._process.join(3)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
    return "its process ended itself"


def integers(values: Any) -> Sequence[int]:
    """The list of ints that a process should have sent. Raises Misbehaved if it sent anything else."""
    if type(values) is not list or any(type(value) is not int for value in values):
        raise Misbehaved("sent no list of integers")
    return values
