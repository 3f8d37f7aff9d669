"""A submission tried by every layer: the verdicts, the score, the size."""

import secrets
import time
from typing import NamedTuple

from lab.smallest_adder.counting import Counts
from lab.smallest_adder.harness import problems
from lab.smallest_adder.layers.table import LAYERS
from lab.smallest_adder.sandbox import Limits, Misbehaved, plain
from lab.smallest_adder.trial import Objection, Trial, Unusable

VERSION = 2
"""Of the verifier; raised when it could judge a submission otherwise than before."""


class Verdict(NamedTuple):
    layer: str
    passed: bool | None
    """None where the trial ended before it."""
    reason: str


class Verification(NamedTuple):
    verdicts: list[Verdict]
    right: int
    problems: int
    seed: int
    counts: Counts | None
    additions_per_second: float
    confinement: list[str]
    """What kept the submission from harm."""

    @property
    def qualified(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)


def verify(
    source: str, seed: int | None = None, count: int = 10_000, limits: Limits | None = None, plain_loop: bool = False
) -> Verification:
    """Try the source of a submission on the 10 edge cases and `count` random pairs.

    The pairs are of a seed that nobody knows before, unless one is given; with `plain_loop` each is worked out
    token by token. Raises TaskError where this system cannot
    confine untrusted code.
    """
    seed = secrets.randbits(63) if seed is None else seed
    trial = Trial(source, problems(seed, count), seed, limits or Limits(), plain_loop)
    verdicts: list[Verdict] = []
    speed = 0.0
    ended = False
    try:
        for name, layer in LAYERS:
            if ended:
                verdicts.append(Verdict(name, None, "not reached"))
                continue
            start = time.perf_counter()
            try:
                verdicts.append(Verdict(name, True, layer(trial)))
            except Objection as error:
                verdicts.append(Verdict(name, False, plain(error)))
                ended = isinstance(error, Unusable)
            except Misbehaved as error:
                verdicts.append(Verdict(name, False, str(error)))
                ended = True
            except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
                # Its process sent what no process of an honest submission sends.
                verdicts.append(Verdict(name, False, plain(f"sent nonsense ({error})")))
                ended = True
            if name == "generation":
                speed = len(trial.pairs) / (time.perf_counter() - start)
    finally:
        trial.close()
    return Verification(verdicts, trial.right, len(trial.pairs), seed, trial.counts, speed, trial.confinement)
