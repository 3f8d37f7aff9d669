"""A submission in a process of its own, seen from outside: questions go in, plain numbers and texts come out.

Nothing that comes back is trusted to be more than bytes: replies are JSON and arrays, never pickles; a reply that is
late, too long or not of that form ends the process, and so does its death by itself. Each of these is `Misbehaved`,
whose text says what the submission did.
"""

import json
import multiprocessing
import secrets
import signal
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lab.errors import TaskError
from lab.smallest_adder.confinement import confinable

LONGEST_ARRAY = 128 << 20
"""Bytes: a vocabulary of 256 at 65 positions of 512 sequences, in float64, is half of it."""

LONGEST_TEXT = 16 << 20
"""Bytes of JSON, which may take thirty times as much when it is read."""


class Limits(NamedTuple):
    """What one process of a submission may use; there are three."""

    memory: int = 4 << 30
    """Bytes of address space, of which Python and torch take about 0.7 GB."""
    seconds: int = 600
    """Of processor time, and of waiting for any one reply."""
    confined: bool = True
    """Without it a submission runs even where there is no seccomp: it can then do whatever its user can."""


class Misbehaved(Exception):  # noqa: N818
    """The submission raised, hung, died, or answered what nobody asked."""


class Child:
    """One process, to hold a submission. Close it, or use it as a context manager."""

    def __init__(self, limits: Limits) -> None:
        """Raises TaskError where processes cannot be confined."""
        if limits.confined and not confinable():
            raise TaskError(
                "submissions are untrusted code, confined by seccomp (Linux on x86-64 or ARM), which is not to be had "
                "here; --unconfined runs one that you trust"
            )
        from lab.smallest_adder.worker import serve

        context = multiprocessing.get_context("forkserver")
        # Importing torch takes seconds: done once, in the process that all children are forked from.
        context.set_forkserver_preload(["lab.smallest_adder.worker"])
        self.limits = limits
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, limits[:2], limits.confined), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self.confinement: list[str] = self._receive(None)[0]
        except Misbehaved as error:
            self.close()
            raise TaskError(f"no process could be started and confined for a submission: {error}") from error

    def load(self, source: str) -> None:
        """Raises Misbehaved when the submission cannot be loaded."""
        self.exports = self.ask("load", source=source)

    def ask(self, question: str, **details: Any) -> Any:
        """Raises Misbehaved when the answer is not had."""
        return self._receive({"question": question, **details})[0]

    def logits(self, question: str, ids_BT: np.ndarray) -> np.ndarray:
        """What the model makes of sequences of ids, as an array of float64. Raises Misbehaved."""
        details = {"question": question, "shape": list(ids_BT.shape)}
        return self._receive(details, np.ascontiguousarray(ids_BT, dtype=np.int64))[1]

    def _receive(self, request: dict[str, Any] | None, ids: np.ndarray | None = None) -> tuple[Any, np.ndarray]:
        """The answer to a request, or what comes unasked. Raises Misbehaved."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        watch = threading.Timer(self.limits.seconds, end)
        watch.daemon = True
        watch.start()
        try:
            stamp = secrets.token_hex(8) if request is not None else None
            if request is not None:
                self._connection.send_bytes(json.dumps({"stamp": stamp, **request}).encode())
            if ids is not None:
                self._connection.send_bytes(ids.tobytes())
            reply = json.loads(self._connection.recv_bytes(LONGEST_TEXT))
            if reply["stamp"] != stamp:
                raise ValueError("not from the worker, who alone knows the question's stamp")
            if "error" in reply:
                raise Misbehaved(plain(reply["error"]))
            array = np.empty(0)
            if "shape" in reply:
                array = np.frombuffer(self._connection.recv_bytes(LONGEST_ARRAY)).reshape(reply["shape"])
            return reply.get("value"), array
        except (OSError, EOFError) as error:
            self.close()
            if late.is_set():
                raise Misbehaved(f"no answer within {self.limits.seconds} seconds") from error
            if "bad message length" in str(error):
                raise Misbehaved("sent more than any answer can be") from error
            raise Misbehaved(death(self._process.exitcode)) from error
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError, OverflowError) as error:
            self.close()
            raise Misbehaved("wrote into the channel that the harness listens to") from error
        finally:
            watch.cancel()

    def close(self) -> None:
        self._connection.close()
        if self._process.is_alive():
            self._process.kill()
        self._process.join(10)

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def death(code: int | None) -> str:
    if code == -signal.SIGXCPU or code == -signal.SIGKILL:
        return "its process was ended: too much processor time, or memory"
    if code is not None and code < 0:
        return f"its process died of {signal.Signals(-code).name}"
    return "its process ended itself"


def plain(text: object, longest: int = 300) -> str:
    """A submission's text in one line that is safe in a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)[: 4 * longest]).split())
    return line if len(line) <= longest else line[: longest - 3] + "..."


def integers(values: Any) -> Sequence[int]:
    """What should be a list of ints, from a process that may send anything. Raises Misbehaved."""
    if type(values) is not list or any(type(value) is not int for value in values):
        raise Misbehaved("sent no list of integers")
    return values
