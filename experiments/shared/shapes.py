"""The shapes of published models and the operations of a training step, for calculations without the models' weights.

All have the Llama architecture. The numbers are those in the config.json of each published model.
"""

from typing import NamedTuple


class Shape(NamedTuple):
    layers: int
    width: int
    feed_forward: int
    """Inner width of the feed-forward layer."""
    heads: int
    key_value_heads: int
    head_width: int
    vocabulary: int
    tied: bool
    """Whether the head shares its weights with the embeddings."""

    @property
    def products(self) -> list[tuple[int, int]]:
        """Inputs and outputs of the seven linear layers of a layer: q, k, v, o, gate, up, down."""
        queries, keys = self.heads * self.head_width, self.key_value_heads * self.head_width
        inward = [(self.width, queries), (self.width, keys), (self.width, keys), (queries, self.width)]
        return [
            *inward,
            (self.width, self.feed_forward),
            (self.width, self.feed_forward),
            (self.feed_forward, self.width),
        ]

    @property
    def weights(self) -> int:
        """The number of weights of all linear layers, without the head."""
        return self.layers * sum(inputs * outputs for inputs, outputs in self.products)

    @property
    def head(self) -> int:
        return self.width * self.vocabulary

    @property
    def attention_width(self) -> int:
        """The sum of the widths of all heads in all layers."""
        return self.layers * self.heads * self.head_width

    @property
    def parameters(self) -> int:
        norms = (2 * self.layers + 1) * self.width
        return self.weights + norms + (1 if self.tied else 2) * self.head

    def adapters(self, rank: int) -> int:
        """The number of parameters of LoRA on all linear layers."""
        return self.layers * sum(rank * (inputs + outputs) for inputs, outputs in self.products)


SHAPES = {
    "SmolLM2-135M": Shape(30, 576, 1536, 9, 3, 64, 49_152, tied=True),
    "SmolLM2-1.7B": Shape(24, 2048, 8192, 32, 32, 64, 49_152, tied=True),
    "Llama-3.1-8B": Shape(32, 4096, 14_336, 32, 8, 128, 128_256, tied=False),
    "Llama-3.1-70B": Shape(80, 8192, 28_672, 64, 8, 128, 128_256, tied=False),
}


def lora_operations(
    weights: int, adapters: int, head: int, attention_width: int, tokens: float, answers: float, pairs: float
) -> float:
    """The operations of a training step of adapters, forward and backward. A multiply-add counts as two operations.

    Args:
        weights: number of weights of the frozen linear layers.
        adapters: number of weights of the adapters.
        head: number of weights of the head.
        attention_width: sum of the widths of all heads in all layers.
        tokens: tokens that are computed.
        answers: tokens among them at which the head is applied.
        pairs: pairs of tokens that attention multiplies; for a tree with its own mask, all pairs.
    """
    # Frozen weights: forward, and the gradient of their input. Adapters: also their own gradient. Attention: two
    # products forward and five backward, one of which recomputes.
    return 4 * weights * tokens + 6 * adapters * tokens + 4 * head * answers + 14 * attention_width * pairs
