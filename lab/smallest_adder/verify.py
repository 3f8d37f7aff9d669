"""Tries a submission on every layer of validation, and returns the verdicts, the score and the size."""

import secrets
from collections.abc import Callable

from lab.errors import LabError
from lab.smallest_adder.contract import problems
from lab.smallest_adder.layers import attention, codecs, computation
from lab.smallest_adder.trace.child import Limits, Misbehaved
from lab.smallest_adder.trial import Objection, Trial, Unusable
from lab.smallest_adder.verdict import Verdict, Verification, plain

LAYERS: tuple[tuple[str, Callable[[Trial], str]], ...] = (
    ("interface", codecs.interface),
    ("encode bounds", codecs.encode_bounds),
    ("encode copies", codecs.encode_copies),
    ("graph", computation.graph),
    ("numbers in the code", computation.numbers_in_the_code),
    ("arithmetic", computation.arithmetic),
    ("generation", codecs.generation),
    ("decode honesty", codecs.decode_honesty),
    ("causality", attention.causality),
    ("self-attention", attention.self_attention),
    ("attention alone", attention.attention_alone),
    ("size around attention", computation.size_around_attention),
    ("parameters matter", computation.parameters_matter),
    ("precision", computation.precision),
    ("accuracy", codecs.accuracy),
)
"""The layers in the order in which they are tried: each comes after those that it builds upon.

They include exact versions of the challenge's own seven (interface, self-attention, causality, encode bounds,
determinism, decode honesty, source). The source is judged by what it computes.
"""


def verify(
    source: str, seed: int | None = None, count: int = 10_000, limits: Limits | None = None, plain_loop: bool = False
) -> Verification:
    """Tries the source of a submission on the 10 edge cases and `count` random pairs.

    Args:
        source: the text of the submission.
        seed: the seed of the random pairs; drawn at random if not given, so that nobody knows it before.
        count: how many random pairs.
        limits: what the submission may use.
        plain_loop: compute every problem token by token, without drafts.

    Raises TaskError if this system cannot confine untrusted code.
    """
    seed = secrets.randbits(63) if seed is None else seed
    trial = Trial(source, problems(seed, count), seed, limits or Limits(), plain_loop)
    verdicts: list[Verdict] = []
    ended = False
    try:
        for name, layer in LAYERS:
            verdict, ended = (Verdict(name, None, "not reached"), True) if ended else judged(name, layer, trial)
            verdicts.append(verdict)
    finally:
        trial.child.close()
    speed = len(trial.pairs) / trial.seconds if trial.seconds else 0.0
    return Verification(
        verdicts, trial.right, len(trial.pairs), seed, trial.counts, trial.content, speed, trial.child.confinement
    )


def judged(name: str, layer: Callable[[Trial], str], trial: Trial) -> tuple[Verdict, bool]:
    """What a layer says, and whether the trial ends with it."""
    try:
        return Verdict(name, True, layer(trial)), False
    except Objection as error:
        return Verdict(name, False, plain(error)), isinstance(error, Unusable)
    except Misbehaved as error:
        return Verdict(name, False, str(error)), True
    except LabError:
        raise
    except Exception as error:  # the submission's process may have sent anything
        return Verdict(name, False, plain(f"sent nonsense ({type(error).__name__}: {error})")), True
