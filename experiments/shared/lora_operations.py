"""The operations of a training step of adapters, for calculations without a model's weights."""


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
