"""The adders that the tests of instruments share: those of the benchmark, and a model drawn at random."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from lab.probing import bridge
from lab.probing.benchmark.families import attention_carry, llama, ones_first
from lab.probing.benchmark.known import END, PAD, WORDS, FieldSums, KnownAdder
from lab.probing.bridge import Subject
from lab.probing.pairs import Pairs

TOKENS = FieldSums().tokens
llama_adder = llama.adder


def native_adder(seed: int = 0) -> KnownAdder:
    return ones_first.adder("native adder", ones_first.Design(), seed)


def tricase_adder(seed: int = 0) -> KnownAdder:
    return attention_carry.adder("tricase adder", False, seed)


ADDERS = {"native": native_adder, "llama": llama_adder, "grouped": lambda: llama_adder(key_value_heads=1)}
BY_HAND = Pairs([(14, 13)], [(19, 18)], 1)
"""27 and 37. The carry is on if a_0 + b_0 - s_0 is at least 1. With one of the two ones digits from the other sum, this
is 9 + 3 - 7 or 4 + 8 - 7: a carry, whichever sum is the source."""
EQUAL = {"atol": 2e-2, "rtol": 0}
"""The tolerance for what RMSNorm, RoPE and SwiGLU compute only approximately."""


def random_model(key_value_heads: int = 2) -> Subject:
    """Three layers of four heads that have learned nothing."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=key_value_heads,
        initializer_range=0.4,
        tie_word_embeddings=False,
        pad_token_id=PAD,
        eos_token_id=END,
        attn_implementation="eager",  # type: ignore[call-arg]
        architectures=["LlamaForCausalLM"],
    )
    return bridge.bridge("random", LlamaForCausalLM(config).eval(), FieldSums())
