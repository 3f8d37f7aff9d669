"""A submission in a process of its own, seen from outside: questions go in, plain numbers and texts come out.

Nothing that comes back is trusted to be more than bytes: replies are JSON and bytes, never pickles. A reply that is
late, too long or malformed ends the process. This, or a process that dies by itself, raises `Misbehaved`, whose text
says what the submission did. One clock runs for the whole trial.
"""

import json
import multiprocessing
import secrets
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from lab.errors import TaskError
from lab.smallest_adder.trace.confinement import confinable
from lab.smallest_adder.verdict import plain

LONGEST_NUMBERS = 256 << 20
"""Bytes of all parameters and buffers together."""
LONGEST_TEXT = 16 << 20
"""Bytes of JSON, which may take thirty times as much memory once it is read."""
STARTING = 600
"""Seconds that a process may take until it is ready for a submission."""


class Limits(NamedTuple):
    """What a submission may use."""

    memory: int = 4 << 30
    """Bytes of address space of its process, of which Python and torch take about 0.7 GB."""
    seconds: int = 600
    """Seconds for the whole trial."""
    confined: bool = True
    """If False, a submission runs even if there is no seccomp; it can then do whatever its user can."""


class Misbehaved(Exception):  # noqa: N818
    """The submission raised an exception, hung, died, or sent something that was not an answer."""


class Child:
    """One process, to hold a submission. Its clock starts when it is ready, which importing torch may delay by a
    minute."""

    def __init__(self, limits: Limits) -> None:
        """Starts the process. Raises TaskError if processes cannot be confined here."""
        if limits.confined and not confinable():
            raise TaskError(
                "submissions are untrusted code, confined by seccomp (Linux on x86-64 or ARM), which is not available "
                "here; unconfined=true runs one that you trust"
            )
        from lab.smallest_adder.trace.worker import serve

        context = multiprocessing.get_context("forkserver")
        # Importing torch takes seconds: done once, in the process that all children are forked from.
        context.set_forkserver_preload(["lab.smallest_adder.trace.worker"])
        self._seconds, self._end = limits.seconds, time.monotonic() + STARTING
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, limits[:2], limits.confined), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self.confinement: list[str] = self._receive(None)[0]
        except Misbehaved as error:
            self.close()
            raise TaskError(f"no process could be started and confined for a submission: {error}") from error
        self._end = time.monotonic() + limits.seconds

    @property
    def seconds_left(self) -> float:
        """The seconds that are left for the trial. Raises Misbehaved if there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise Misbehaved(f"no verdict within {self._seconds} seconds")
        return left

    def ask(self, question: str, **details: Any) -> Any:
        """The submission's answer to a question. Raises Misbehaved if there is none."""
        return self._receive({"question": question, **details})[0]

    def trace(self, ids: Sequence[int], vocabulary: int) -> tuple[Any, list[bytes]]:
        """The model's pass over one sequence (trace/tape.py), and the numbers that it takes from outside."""
        return self._receive({"question": "trace", "ids": list(ids), "vocabulary": vocabulary})

    def _receive(self, request: dict[str, Any] | None) -> tuple[Any, list[bytes]]:
        """The answer to a request; without one, what the process sends by itself. Raises Misbehaved."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        watch = threading.Timer(self.seconds_left, end)
        watch.daemon = True
        watch.start()
        try:
            stamp = secrets.token_hex(8) if request is not None else None
            if request is not None:
                self._connection.send_bytes(json.dumps({"stamp": stamp, **request}).encode())
            reply = json.loads(self._connection.recv_bytes(LONGEST_TEXT))
            if reply["stamp"] != stamp:
                raise ValueError("not from the worker, who alone knows the question's stamp")
            if "error" in reply:
                raise Misbehaved(plain(reply["error"]))
            sizes = integers(reply.get("bytes", []))
            if sum(sizes) > LONGEST_NUMBERS:
                raise Misbehaved(f"{sum(sizes):,} bytes of numbers; at most {LONGEST_NUMBERS:,}")
            return reply["value"], [self._connection.recv_bytes(size) for size in sizes]
        except Misbehaved:
            raise
        except (OSError, EOFError) as error:
            self.close()
            if late.is_set():
                raise Misbehaved(f"no answer within {self._seconds} seconds") from error
            if "bad message length" in str(error):
                raise Misbehaved("sent more than any answer can be") from error
            raise Misbehaved(death(self._process.exitcode)) from error
        except Exception as error:  # whatever reading it may raise
            self.close()
            raise Misbehaved("wrote into the channel that the harness listens to") from error
        finally:
            watch.cancel()

    def close(self) -> None:
        self._connection.close()
        if self._process.is_alive():
            self._process.kill()
        self._process.join(10)


def death(code: int | None) -> str:
    """How a process ended, from its exit code."""
    if code == -signal.SIGXCPU or code == -signal.SIGKILL:
        return "its process was ended: too much processor time, or memory"
    if code is not None and code < 0:
        return f"its process died of {signal.Signals(-code).name}"
    return "its process ended itself"


def integers(values: Any) -> Sequence[int]:
    """The list of ints that a process should have sent. Raises Misbehaved if it sent anything else."""
    if type(values) is not list or any(type(value) is not int for value in values):
        raise Misbehaved("sent no list of integers")
    return values
