"""The errors that a user can correct, and how a command reports them."""

import errno
import functools
import os
import select
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from lab import distributed

if TYPE_CHECKING:
    from pydantic import ValidationError

P = ParamSpec("P")
T = TypeVar("T")


class LabError(Exception):
    """An error that the user can correct. Its text has one line for each problem."""


class ConfigError(LabError):
    """A config that cannot be read, or that its schema does not allow."""


class RunError(LabError):
    """A run directory that is in use or unreadable, or a path that is not a run directory."""


class ModelError(LabError):
    """A model that is not available, cannot be loaded, or does not fit what it is asked to do."""


class TaskError(LabError):
    """A task that does not exist, or a length at which it is not defined."""


class RuleError(LabError):
    """A rule that does not exist, cannot be read, or does something that a rule may not do."""


class LabWarning(UserWarning):
    """A warning of the lab itself. It is shown even though warnings of libraries are turned off (lab/progress.py)."""


class DivergedError(LabError):
    """A training whose loss or gradient is no longer finite."""


def in_one_line(error: BaseException) -> str:
    """The message of a library's error, in one line; a long one is cut."""
    return " ".join(str(error).split())[:160]


def mistakes(error: "ValidationError") -> list[str]:
    """What pydantic found wrong: a line for each field, with its dotted name."""
    found = [(".".join(map(str, part["loc"])), part["msg"]) for part in error.errors(include_url=False)]
    return [f"{name}: {message}" if name else message for name, message in found]


def exit_cleanly(main: Callable[P, T]) -> Callable[P, T]:
    """Decorates a command's ``main`` so that errors that the user can correct end it without a traceback.

    After a `LabError`, the process prints each line of its text to stderr after ``error: ``, and exits with status 2.
    It does the same if the disk is full or read-only, or if there is not enough memory. After a keyboard interrupt, it
    prints the notes that were added to the exception and exits with 130, as a shell expects. If the program that reads
    the output has ended, it exits with 141. Any other exception is a bug and keeps its traceback.

    If there are several processes, only the main one prints a `LabError`. The others print only a `ModelError` or a
    `DivergedError`, because these may occur in a single process: for example, on a machine that lacks the model.
    """

    @functools.wraps(main)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with distributed.one_voice():
                return main(*args, **kwargs)
        except LabError as error:
            if distributed.is_main() or isinstance(error, ModelError | DivergedError):
                for line in str(error).splitlines() or [type(error).__name__]:
                    print(f"error: {line}", file=sys.stderr)
            raise SystemExit(2) from error
        except KeyboardInterrupt as interrupt:
            print("; ".join(["interrupted", *getattr(interrupt, "__notes__", [])]), file=sys.stderr)
            raise SystemExit(130) from interrupt
        except BrokenPipeError as error:
            if not _nobody_reads():
                raise
            raise SystemExit(141) from error  # as a shell reports the signal
        except Exception as error:
            if not (short_of := _short_of(error)):
                raise
            print(f"error: {short_of}", file=sys.stderr)
            raise SystemExit(2) from error

    return run


def _nobody_reads() -> bool:
    """Whether the program that reads standard output has closed the pipe, as `head` does. If so, later output is
    discarded."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    gone = any(event & select.POLLERR for _, event in poll.poll(0))
    if gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return gone


_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


def _short_of(error: Exception) -> str:
    """One line that says which resource the machine lacks; empty if `error` is about something else."""
    if isinstance(error, OSError) and error.errno in _DISK:
        return f"{error.filename or 'a file'} cannot be written: {error.strerror}"
    text = " ".join(str(error).split())
    # torch's OutOfMemoryError is not a MemoryError, and its CPU allocator raises a RuntimeError
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "not enough memory" in text:
        return f"there is not enough memory; smaller batches or a smaller model need less ({text[:160] or error!r})"
    return ""


def check_one_of(what: str, value: object, allowed: Iterable[object]) -> None:
    """Raises TaskError unless the value is allowed. `what`: the name of the argument."""
    if value not in (known := list(allowed)):
        raise TaskError(f"{what} {value!r}: should be one of {', '.join(map(str, known))}")
