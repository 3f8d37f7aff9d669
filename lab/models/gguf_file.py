"""Writes a Llama model as one GGUF file, the format of llama.cpp, with the `gguf` package's writer.

The format stores the rows of query and key weights interleaved, because RoPE in llama.cpp rotates neighbouring numbers
of a head as pairs, while Hugging Face pairs the numbers of its two halves.
"""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf.quants import quantize
from transformers import PreTrainedModel
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.errors import ModelError

_TYPES = {
    torch.float32: (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    torch.float16: (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    torch.bfloat16: (gguf.GGMLQuantizationType.BF16, gguf.LlamaFileType.MOSTLY_BF16),
}


def write(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, file: Path) -> None:
    """Writes the model and its tokenizer.

    Args:
        model: of type llama, in float32, float16 or bfloat16. Norms are written in float32, as llama.cpp wants them.
        tokenizer: byte-level BPE, as in GPT-2, SmolLM2 and Llama 3.
        file: the file to write.

    Raises ModelError for other models and tokenizers.
    """
    config: Any = model.config
    if config.model_type != "llama":
        raise ModelError(f"a GGUF file is only written for models of type llama, not {config.model_type}")
    words = _words(tokenizer)
    kind, file_type = _TYPES[model.dtype]
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name(file.stem)
    writer.add_file_type(file_type)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(_head_width(config))
    _add_rope(writer, config)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    _add_words(writer, tokenizer, words, config.vocab_size)
    _add_weights(writer, model, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _head_width(config: Any) -> int:
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def _add_rope(writer: gguf.GGUFWriter, config: Any) -> None:
    """The frequencies of RoPE; if they are scaled, also the factors by which llama.cpp divides the usual ones."""
    rope, width = config.rope_parameters, _head_width(config)
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "default":
        return
    if rope["rope_type"] not in ("llama3", "linear"):
        raise ModelError(f"a GGUF file is not written for RoPE of the kind {rope['rope_type']}")
    usual = rope["rope_theta"] ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
    factors = usual / LlamaRotaryEmbedding(config).inv_freq.float()  # of a new module: a model's own are rounded
    writer.add_tensor("rope_freqs.weight", factors.numpy(), raw_dtype=gguf.GGMLQuantizationType.F32)


def _add_weights(writer: gguf.GGUFWriter, model: PreTrainedModel, kind: gguf.GGMLQuantizationType) -> None:
    config: Any = model.config
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    tied = "lm_head.weight" if config.tie_word_embeddings else ""
    for name, tensor in model.state_dict().items():
        if name == tied:
            continue
        weight = tensor.float().numpy()
        if name.endswith(("q_proj.weight", "k_proj.weight", "q_proj.bias", "k_proj.bias")):
            weight = _interleaved(weight, _head_width(config))
        written = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if written is None:
            raise ModelError(f"the GGUF format of llama models has no place for {name}")
        stored = gguf.GGMLQuantizationType.F32 if weight.ndim == 1 else kind
        writer.add_tensor(written, quantize(weight, stored), raw_dtype=stored)


def _interleaved(weight: np.ndarray, head_width: int) -> np.ndarray:
    """The rows of each head, of width w, in the order 0, w/2, 1, w/2 + 1, ..."""
    shape = (len(weight) // head_width, 2, head_width // 2, *weight.shape[1:])
    return weight.reshape(shape).swapaxes(1, 2).reshape(weight.shape)


def _words(tokenizer: Any) -> dict[str, Any]:
    """The contents of tokenizer.json. Raises ModelError if the tokenizer is not BPE."""
    said = json.loads(tokenizer.backend_tokenizer.to_str())
    if said["model"]["type"] != "BPE":
        raise ModelError(f"a GGUF file is only written with a BPE tokenizer, not {said['model']['type']}")
    return said


def _cuts(pre_tokenizer: dict[str, Any]) -> str:
    """llama.cpp's name for how a tokenizer cuts text before it merges bytes. Raises ModelError if it has none."""
    steps = pre_tokenizer.get("pretokenizers", [pre_tokenizer])
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"]:
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and steps[0]["individual_digits"]:
        return "smollm"
    if kinds == ["Split", "ByteLevel"] and r"\p{N}{1,3}" in str(steps[0]["pattern"]):
        return "llama-bpe"
    raise ModelError(f"llama.cpp has no name for a tokenizer that cuts text by {' and '.join(kinds)}")


def _add_words(writer: gguf.GGUFWriter, tokenizer: Any, said: dict[str, Any], size: int) -> None:
    added = {entry["id"]: entry for entry in said["added_tokens"]}
    written, kinds = [], []
    by_id = {index: word for word, index in tokenizer.get_vocab().items()}
    for index in range(size):
        written.append(by_id.get(index, f"[PAD{index}]"))
        if index not in by_id:
            kinds.append(gguf.TokenType.UNUSED)
        elif index in added:
            kinds.append(gguf.TokenType.CONTROL if added[index]["special"] else gguf.TokenType.USER_DEFINED)
        else:
            kinds.append(gguf.TokenType.NORMAL)
    pairs = [pair if isinstance(pair, str) else " ".join(pair) for pair in said["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_cuts(said["pre_tokenizer"]))
    writer.add_token_list(written)
    writer.add_token_types(kinds)
    if pairs:  # the format cannot store an empty list, which has no type
        writer.add_token_merges(pairs)
    writer.add_add_bos_token(bool(tokenizer.encode("")))
    for add, index in (
        (writer.add_bos_token_id, tokenizer.bos_token_id),
        (writer.add_eos_token_id, tokenizer.eos_token_id),
        (writer.add_unk_token_id, tokenizer.unk_token_id),
        (writer.add_pad_token_id, tokenizer.pad_token_id),
    ):
        if index is not None:
            add(index)
    if tokenizer.chat_template:
        writer.add_chat_template(tokenizer.chat_template)
