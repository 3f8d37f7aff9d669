"""An adder of `ones_first` as a Llama: RMSNorm, RoPE and SwiGLU approximate what it needs.

A large constant in the stream makes the norm nearly linear, silu(30 x) / 30 is nearly relu(x), and RoPE with two
frequencies has a single peak among the tokens of a sum.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from lab.probing import bridge
from lab.probing.benchmark.families.ones_first import Design, known, wire, writer_of
from lab.probing.benchmark.known import BEGIN, END, PAD, WORDS, KnownAdder
from lab.probing.benchmark.wiring import HEAD_WIDTH, SHARPNESS, Wiring, put_weights, unembedding

_LEVEL = 2000.0
_STEEP = 30.0
_SLOW = 1 / 8
"""RoPE's second frequency; the first is 1."""


def adder(seed: int = 0, key_value_heads: int | None = None, backup: bool = False) -> KnownAdder:
    """All heads have the same keys and values, so `key_value_heads` may be 1; None gives each head its own."""
    design = Design(level=_LEVEL, backup=backup)
    made, writer = wire(design, seed), writer_of(design)
    heads, width = len(design.heads), len(made.names)
    groups = key_value_heads or heads
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=width,
        intermediate_size=len(made.mlp(0)[0]),
        num_hidden_layers=design.layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        head_dim=HEAD_WIDTH,
        max_position_embeddings=writer.tokens,
        rope_parameters={"rope_type": "default", "rope_theta": _SLOW**-2},  # frequencies 1 and theta^-1/2
        tie_word_embeddings=False,
        pad_token_id=PAD,
        bos_token_id=BEGIN,
        eos_token_id=END,
        architectures=["LlamaForCausalLM"],
    )
    model = LlamaForCausalLM(config).eval()
    weights = {
        "model.embed_tokens.weight": made.embedding(),
        "lm_head.weight": unembedding(made.dual["one"], made.dual["digit"], made.dual["end"]),
    }
    for layer in range(design.layers):
        weights |= _attention(made, layer, groups) | _mlp(made, layer)
    size = _LEVEL / math.sqrt(width)  # the root mean square that the constant alone gives
    norms = [name for name in model.state_dict() if "norm" in name]
    put_weights(model, weights | {name: torch.full((width,), size) for name in norms})
    return KnownAdder(bridge.bridge("llama adder", model, writer), known(design, made))


def _attention(made: Wiring, layer: int, groups: int) -> dict[str, torch.Tensor]:
    """RoPE turns coordinates 0 and 2 together by an angle of 1 per token, and 1 and 3 by `_SLOW`. The score of a key is
    proportional to cos(x) + cos(`_SLOW` x), with x its distance from the token to which the head should attend. The
    query of a head that attends to all tokens equally is zero."""
    name, one_D = f"model.layers.{layer}.self_attn", made.dual["one"]
    query_HZ = torch.zeros(len(made.head), HEAD_WIDTH)
    for (at, head), steps in made.steps_back.items():
        if at == layer:
            turns_2 = torch.tensor([steps, steps * _SLOW])
            query_HZ[head] = torch.cat([turns_2.cos(), -turns_2.sin()])
    key_ZD = torch.tensor([1.0, 1.0, 0.0, 0.0])[:, None] * one_D
    return {
        f"{name}.q_proj.weight": SHARPNESS * query_HZ.flatten()[:, None] * one_D,
        f"{name}.k_proj.weight": key_ZD.repeat(groups, 1),
        f"{name}.v_proj.weight": made.values_ZD.repeat(groups, 1),
        f"{name}.o_proj.weight": made.out_LDHZ[layer].flatten(1),
    }


def _mlp(made: Wiring, layer: int) -> dict[str, torch.Tensor]:
    reads_ND, writes_DN = made.mlp(layer)
    name = f"model.layers.{layer}.mlp"
    return {
        f"{name}.gate_proj.weight": _STEEP * reads_ND,
        f"{name}.up_proj.weight": made.dual["one"].expand(len(reads_ND), -1),
        f"{name}.down_proj.weight": writes_DN / _STEEP,
    }


ADDERS: dict[str, Callable[[int], KnownAdder]] = {
    "llama": adder,
    "llama, one key": partial(adder, key_value_heads=1),
    "llama, backup head": partial(adder, backup=True),
}
