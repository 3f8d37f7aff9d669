"""The layers in the order in which they are tried: what one builds upon comes before it.

The challenge's own seven (interface, self-attention, causality, encode bounds and determinism, decode honesty, source)
made exact, and others that answer known ways around those.
"""

from collections.abc import Callable

from lab.smallest_adder.layers import answers, attending, before_running, loop, numbers, prompts
from lab.smallest_adder.trial import Trial

LAYERS: tuple[tuple[str, Callable[[Trial], str]], ...] = (
    ("source", before_running.text),
    ("interface", before_running.interface),
    ("encode bounds", prompts.encode_bounds),
    ("encode determinism", prompts.encode_determinism),
    ("encode copies", prompts.encode_copies),
    ("number types", numbers.number_types),
    ("boolean buffers", numbers.boolean_buffers),
    ("logits", loop.logits),
    ("causality", loop.causality),
    ("generation", loop.generation),
    ("self-attention", attending.self_attention),
    ("fixed computation", attending.fixed_computation),
    ("attention alone", attending.attention_alone),
    ("parameters matter", numbers.parameters_matter),
    ("decode honesty", answers.decode_honesty),
    ("hidden tensors", numbers.hidden_tensors),
    ("torch untouched", numbers.torch_untouched),
    ("accuracy", answers.accuracy),
)
