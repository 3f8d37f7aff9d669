"""What a model takes of a device's memory, in bytes."""

from transformers import PreTrainedModel


def weight_bytes(model: PreTrainedModel) -> int:
    """Parameters and buffers as they are stored, quantized ones too; what is tied counts once."""
    return model.get_memory_footprint()


def token_bytes(model: PreTrainedModel) -> int:
    """Of the key-value cache, for each token of a request: layers x key-value heads x head width x 2 x bytes a number.

    Exact where every layer keeps all keys and values in the model's dtype, as Llama does.
    """
    config = model.config.get_text_config()
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    key_value_heads = getattr(config, "num_key_value_heads", None) or heads
    return config.num_hidden_layers * key_value_heads * width * 2 * model.dtype.itemsize
