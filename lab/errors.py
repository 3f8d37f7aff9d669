"""The errors that a user can put right, and how a command reports them."""

import errno
import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from lab import processes

P = ParamSpec("P")
T = TypeVar("T")


class LabError(Exception):
    """Something the user can put right. Its text is one line, or one line a problem."""


class ConfigError(LabError):
    """A config that cannot be read, or that says what its schema does not allow."""


class RunError(LabError):
    """A run directory that is in use, unreadable, or not one at all."""


class ModelError(LabError):
    """Weights that cannot be had, or are not the ones expected."""


class TaskError(LabError):
    """A task that does not exist, or a length at which it is not defined."""


class RuleError(LabError):
    """A rule that is not there, cannot be read, or does what a rule may not."""


class DivergedError(LabError):
    """A training whose loss is no longer a number."""


def exit_cleanly(main: Callable[P, T]) -> Callable[P, T]:
    """Decorate a command's ``main`` so that the user's mistakes end it without a traceback.

    A `LabError` is written to stderr, each of its lines after ``error: ``, and the process exits with status 2; so is
    a disk that is full or read-only, and memory that does not suffice. An interrupt from the keyboard exits with 130,
    as a shell expects, with the notes that the interrupt has gathered. Any other exception is a bug and keeps its
    traceback.

    Of several processes the main one speaks for all, but for what may happen to one alone: a `ModelError`, when a
    machine lacks what the others have, and a `DivergedError`.
    """

    @functools.wraps(main)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with processes.one_voice():
                return main(*args, **kwargs)
        except LabError as error:
            if processes.is_main() or isinstance(error, ModelError | DivergedError):
                for line in str(error).splitlines() or [type(error).__name__]:
                    print(f"error: {line}", file=sys.stderr)
            raise SystemExit(2) from error
        except KeyboardInterrupt as interrupt:
            print("; ".join(["interrupted", *getattr(interrupt, "__notes__", [])]), file=sys.stderr)
            raise SystemExit(130) from interrupt
        except Exception as error:
            if not (short_of := _short_of(error)):
                raise
            print(f"error: {short_of}", file=sys.stderr)
            raise SystemExit(2) from error

    return run


_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


def _short_of(error: Exception) -> str:
    """What the machine lacks, in one line; empty when `error` says something else."""
    if isinstance(error, OSError) and error.errno in _DISK:
        return f"{error.filename or 'a file'} cannot be written: {error.strerror}"
    text = " ".join(str(error).split())
    # torch's OutOfMemoryError is no MemoryError, and its CPU allocator raises a RuntimeError
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "not enough memory" in text:
        return f"there is not enough memory; smaller batches or a smaller model need less ({text[:160] or error!r})"
    return ""
