"""The adders that the tests of instruments share: those of the benchmark, and a model drawn at random."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from lab.probing import bridge
from lab.probing.addition.pairs import Pairs
from lab.probing.benchmark import wiring
from lab.probing.benchmark.families import attention_carry, llama, ones_first
from lab.probing.benchmark.known import END, FIELD, PAD, WORDS, FieldSums, KnownAdder
from lab.probing.bridge import Subject

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


def comparing_adder(steepness: float = 3.0) -> Subject:
    """An adder whose carry is found in attention: in layer 1, a head with the query a_{k-1} looks at b_{k-1} rather
    than at the plus sign, by as much as the sum of the two exceeds 9.5, and copies a one from there. The MLP of layer 1
    makes a switch of it, that of layer 2 adds. It reads no carry that comes from further below.

    `steepness`: how fast attention moves with the digits' sum.
    """
    writer, heads = FieldSums(), ("a", "b", "below")
    tokens = writer.tokens
    names = ("one", "value", "plus", *heads, "compared", "carry", "digit", "end")
    basis_DD = wiring.basis(len(names) + tokens + 2, 0)  # the heads divide the width
    at = dict(zip(names, basis_DD, strict=False))
    place_TD, width = basis_DD[len(names) : len(names) + tokens], len(basis_DD)
    head_width = tokens + 2
    sharp = 60 * head_width**0.5
    back = {"a": writer.back(0), "b": writer.back(1), "below": writer.back(0, 1)}
    key_HZD = torch.cat([place_TD, at["value"][None], at["plus"][None]]).expand(3, -1, -1)
    fixed_HZD, compare_HZD, nothing_HZD = torch.zeros(3, 3, head_width, width)
    values_ZD, ones_ZD = torch.zeros(2, head_width, width)
    values_ZD[0], values_ZD[1], ones_ZD[0] = at["value"], at["plus"], at["one"] - at["plus"]
    out_DHZ, carry_DHZ, none_DHZ = torch.zeros(3, width, 3, head_width)
    for index, name in enumerate(heads):
        for place in range(back[name], tokens):
            fixed_HZD[index, place - back[name]] += sharp * place_TD[place]
        out_DHZ[:, index, 0] = at[name]
    out_DHZ[:, 0, 1] = at["end"]
    scale = steepness * head_width**0.5
    for place in range(writer.back(1, 1), tokens):  # b_{k-1}, or the plus sign
        compare_HZD[0, place - writer.back(1, 1)] += sharp * place_TD[place]
        compare_HZD[0, FIELD + 1] += sharp * place_TD[place] * (place - writer.back(1, 1) != FIELD + 1)
    compare_HZD[0, tokens] = scale * at["one"]
    compare_HZD[0, tokens + 1] = scale * (9.5 * at["one"] - at["below"])
    carry_DHZ[:, 0, 0] = at["compared"]
    y, one, zero = at["a"] + at["b"] + at["carry"], at["one"], torch.zeros(width)
    switch = [4 * (at["compared"] - bound * one) for bound in (0.375, 0.625)]
    mlps = [
        ([zero] * 3, [zero] * 3),
        ([*switch, zero], [at["carry"], -at["carry"], zero]),
        ([y, y - 9 * one, y - 10 * one], [at["digit"], -10 * at["digit"], 10 * at["digit"]]),
    ]
    parts = [(torch.stack(reads), torch.stack(written, 1)) for reads, written in mlps]
    layers = [
        wiring.Layer(fixed_HZD, key_HZD, values_ZD, out_DHZ, *parts[0]),
        wiring.Layer(compare_HZD, key_HZD, ones_ZD, carry_DHZ, *parts[1]),
        wiring.Layer(nothing_HZD, key_HZD, ones_ZD, none_DHZ, *parts[2]),
    ]
    unembedding = wiring.unembedding(at["one"], at["digit"], at["end"])
    return wiring.native("comparing adder", writer, wiring.embedding(at), place_TD, unembedding, layers)
