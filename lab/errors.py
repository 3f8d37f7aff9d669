"""The errors that a user can put right, and how a command reports them."""

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


def exit_cleanly(main: Callable[P, T]) -> Callable[P, T]:
    """Decorate a command's ``main`` so that the user's mistakes end it without a traceback.

    A `LabError` is written to stderr, each of its lines after ``error: ``, and the process exits with status 2. An
    interrupt from the keyboard exits with 130, as a shell expects. Any other exception is a bug and keeps its
    traceback.

    Of several processes the main one speaks for all, but for a `ModelError`: a machine may lack what the others have.
    """

    @functools.wraps(main)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with processes.one_voice():
                return main(*args, **kwargs)
        except LabError as error:
            if processes.is_main() or isinstance(error, ModelError):
                for line in str(error).splitlines() or [type(error).__name__]:
                    print(f"error: {line}", file=sys.stderr)
            raise SystemExit(2) from error
        except KeyboardInterrupt as interrupt:
            print("interrupted", file=sys.stderr)
            raise SystemExit(130) from interrupt

    return run
