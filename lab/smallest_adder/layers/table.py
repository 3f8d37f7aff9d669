"""The layers in the order in which they are tried: each comes after those that it builds upon.

They include exact versions of the challenge's own seven (interface, self-attention, causality, encode bounds,
determinism, decode honesty, source). The source is judged by what it computes.
"""

from collections.abc import Callable

from lab.smallest_adder.layers import attention, codecs, computation, numbers, scoring
from lab.smallest_adder.trial import Trial

LAYERS: tuple[tuple[str, Callable[[Trial], str]], ...] = (
    ("interface", codecs.interface),
    ("encode bounds", codecs.encode_bounds),
    ("encode copies", codecs.encode_copies),
    ("graph", computation.graph),
    ("numbers in the code", numbers.numbers_in_the_code),
    ("arithmetic", computation.arithmetic),
    ("generation", scoring.generation),
    ("decode honesty", codecs.decode_honesty),
    ("causality", attention.causality),
    ("self-attention", attention.self_attention),
    ("attention alone", attention.attention_alone),
    ("size around attention", computation.size_around_attention),
    ("parameters matter", numbers.parameters_matter),
    ("precision", numbers.precision),
    ("accuracy", scoring.accuracy),
)
