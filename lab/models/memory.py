"""How much memory a model needs, in bytes."""

from transformers import PreTrainedModel


def weight_bytes(model: PreTrainedModel) -> int:
    """Bytes of the parameters and buffers as they are stored, quantized or not; tied weights count once."""
    return model.get_memory_footprint()


def token_bytes(model: PreTrainedModel) -> int:
    """Bytes of the key-value cache for each token: layers x key-value heads x head width x 2 x bytes of a number.

    Exact if every layer keeps all keys and values in the model's dtype, as in Llama.
    """
    config = model.config.get_text_config()
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    key_value_heads = getattr(config, "num_key_value_heads", None) or heads
    return config.num_hidden_layers * key_value_heads * width * 2 * model.dtype.itemsize
