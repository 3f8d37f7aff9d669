"""What is written into a GGUF file; `tests/test_export.py` reads whole files back."""

import gguf
import numpy as np
import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from lab.errors import ModelError
from lab.models import gguf_file

LLAMA_3 = {
    "rope_type": "llama3", "rope_theta": 500_000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip


class Kept:
    """A writer that keeps what it is given."""

    def __init__(self):
        self.tensors, self.base = {}, None

    def add_rope_freq_base(self, base):
        self.base = base

    def add_tensor(self, name, tensor, raw_dtype):
        assert raw_dtype == gguf.GGMLQuantizationType.F32
        self.tensors[name] = tensor


def config(rope: dict) -> LlamaConfig:
    return LlamaConfig(hidden_size=256, num_attention_heads=2, max_position_embeddings=131_072, rope_parameters=rope)


def test_scaled_rope_is_written_as_the_factors_by_which_llama_cpp_divides_frequencies():
    """Llama 3.1: fast dimensions keep their frequency, slow ones are eight times as slow."""
    kept, scaled = Kept(), config(LLAMA_3)
    gguf_file._add_rope(kept, scaled)  # type: ignore[arg-type]
    factors = kept.tensors["rope_freqs.weight"]
    assert (factors[0], factors[-1]) == (1, pytest.approx(8))
    usual = 500_000.0 ** (-np.arange(0, 128, 2) / 128)
    assert usual / factors == pytest.approx(LlamaRotaryEmbedding(scaled).inv_freq.numpy(), rel=1e-5)


def test_usual_rope_has_no_factors_and_another_kind_is_refused():
    kept = Kept()
    gguf_file._add_rope(kept, config({"rope_type": "default", "rope_theta": 10_000.0}))  # type: ignore[arg-type]
    assert (kept.tensors, kept.base) == ({}, 10_000.0)
    with pytest.raises(ModelError, match="not written for RoPE of the kind yarn"):
        gguf_file._add_rope(kept, config({"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}))  # type: ignore[arg-type]


def test_biases_of_queries_are_interleaved_as_their_weights_are():
    weight = torch.arange(8.0)[:, None].numpy()
    assert gguf_file._interleaved(weight, 4)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert gguf_file._interleaved(weight[:, 0], 4).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
