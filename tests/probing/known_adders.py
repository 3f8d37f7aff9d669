"""Adders whose circuit is known, since it was written by hand: what instruments are tried on.

    place      0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24
    token      .   a0  a1  a2  a3  a4  a5  0   +   b0  b1  b2  b3  b4  b5  0   =   s0  s1  s2  s3  s4  s5  s6  <end>

Numbers of up to DIGITS digits stand in fields of one digit more, ones first, so s_k is asked for at place 16 + k, and
whatever it needs is a fixed number of tokens before: a_k, b_k, and one further on a_{k-1}, b_{k-1}, which for the ones
are "." and "+", of value 0. Attention alone moves digits, and it looks at places alone:

    layer 0    heads     copy a_k, b_k, a_{k-1}, b_{k-1}; a decoy looks at a_k as well, and nobody reads what it writes
               MLP       x = a_{k-1} + b_{k-1} - s_{k-1}, which is 0 or -1 without a carry and 9 or 10 with one
                         carry = relu(x) - relu(x - 1)
    layer 1    heads     look everywhere and write nothing
               MLP       y = a_k + b_k + carry;  digit = relu(y) - 10 relu(y - 9) + 10 relu(y - 10)
    unembedding          2 d digit - d^2, largest for the nearest d; <end> when the head of a_k finds "+"

Every quantity is a direction of the stream; the directions are orthonormal and drawn from a seed. `native_adder` says
it in plain matrices and ReLU; `llama_adder` in RMSNorm, RoPE and SwiGLU, of which each is bent until it is close
enough: a large constant in the stream makes the norm linear, relu(x) is silu(30 x) / 30, and RoPE of two frequencies
has one peak among 25 tokens. `tricase_adder` writes the ones last, by another circuit.

Shapes: D width, V words, N neurons, H heads, Z width of a head, T places.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import nn
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module
from transformer_lens.model_bridge.sources.native import NativeModel
from transformers import LlamaConfig, LlamaForCausalLM

from lab.errors import TaskError
from lab.probing import bridge
from lab.probing.bridge import Subject
from lab.probing.interventions import Site
from lab.probing.positions import Written

DIGITS = 6
"""Of an operand at most."""
WORDS = [*"0123456789", "+", "=", ".", "<end>", "<pad>"]
PLUS, EQUALS, BEGIN, END, PAD = range(10, 15)
TOKENS = 3 * (DIGITS + 1) + 4
HEADS = ("a", "b", "a below", "b below", "decoy")
"""Of layer 0, by what they bring; "below" is column k - 1."""

_FIELD = DIGITS + 1
_BACK = {"a": 2 * _FIELD + 1, "b": _FIELD, "a below": 2 * _FIELD + 2, "b below": _FIELD + 1, "decoy": 2 * _FIELD + 1}
"""How many tokens before the query each head looks."""
_LOOKS_AT = {(0, 0): ("a", 0), (0, 1): ("b", 0), (0, 2): ("a", -1), (0, 3): ("b", -1), (0, 4): ("a", 0)}
_QUANTITIES: tuple[str, ...] = ("one", "value", "plus", *HEADS, "end", "carry", "digit", "cos", "sin")
_WIDTH = 20
_HEAD_WIDTH = 4
_NEURONS = 4
_SHARPNESS = 4000.0
"""Of attention: what is one place off has e^-58 of what is right at most."""


@dataclass(frozen=True)
class Known:
    """What is true of an adder, for instruments to find."""

    carry_D: torch.Tensor
    """The carry into column k is the stream's product with this unit vector at q_k, 0 or 1."""
    digit_D: torch.Tensor
    """The same of the answer's digit, 0 to 9, after layer 1."""
    carry_sites: tuple[tuple[int, Site], ...] = ((0, "post"), (1, "pre"), (1, "mid"))
    """Where the carry is read from the stream by what comes after. Before them it is not there; at (1, "post") it is
    there, and nobody reads it any more."""
    digit_sites: tuple[tuple[int, Site], ...] = ((1, "post"),)
    looks_at: dict[tuple[int, int], tuple[str, int]] = field(default_factory=lambda: dict(_LOOKS_AT))
    """(layer, head) to (operand, offset): from q_k, all of its attention is on that operand's digit k + offset."""
    carry_heads: tuple[tuple[int, int], ...] = ((0, 2), (0, 3))
    """What the carry comes through. Without them s_0 stays right. In native and llama adders s_{k-1} tells most of it:
    patching either head turns a carry on, but it takes both to turn one off; and 0 in place of what one brings hurts
    only where that was 9 and a carry came, while means and other sums' digits hurt everywhere."""
    digit_heads: tuple[tuple[int, int], ...] = ((0, 0), (0, 1))
    """What the digits to be added come from."""
    decoy: tuple[int, int] = (0, 4)
    """Looks at the same as (0, 0) and writes to where nobody reads."""
    idle_heads: tuple[tuple[int, int], ...] = ((1, 0), (1, 1), (1, 2), (1, 3), (1, 4))
    """Look at all tokens alike and write nothing."""


class KnownAdder(Subject):
    """A subject with `known`."""

    def __init__(self, subject: Subject, known: Known) -> None:
        super().__init__(subject.name, subject.bridge, subject.writer)
        self.known = known


class FixedSums:
    """Sums in fields of fixed length. Zeros that fill fields are digits as far as the sum reaches."""

    pad = PAD

    def __init__(self, ones_first: bool = True) -> None:
        self._ones_first = ones_first

    def write(self, a: int, b: int) -> Written:
        if not 0 <= min(a, b) <= max(a, b) < 10**DIGITS:
            raise TaskError(f"{a} + {b}: the adder takes numbers of at most {DIGITS} digits")
        order = -1 if self._ones_first else 1
        fields = [[int(digit) for digit in f"{number:0{_FIELD}d}"[::order]] for number in (a, b, a + b)]
        ids = [BEGIN, *fields[0], PLUS, *fields[1], EQUALS, *fields[2], END]
        starts = (1, _FIELD + 2, 2 * _FIELD + 3)
        a_at, b_at, answer_at = (list(range(start, start + _FIELD))[::-order][: len(str(a + b))] for start in starts)
        return Written(ids, a_at, b_at, answer_at, _FIELD + 1, 2 * _FIELD + 2)

    def words(self, ids: Sequence[int]) -> list[str]:
        return [WORDS[token] for token in ids]

    def digit_ids(self) -> list[int]:
        return list(range(10))


def native_adder(seed: int = 0) -> KnownAdder:
    """The adder in TransformerLens' own architecture: no norm, learned positions, ReLU."""
    circuit = _Circuit.of(seed, level=1.0)
    model, config = _native(_WIDTH, _HEAD_WIDTH, len(HEADS))
    at = circuit.directions
    # places on a circle that has room for one more: a head turns it by as many places as it looks back
    turn = 2 * math.pi / (TOKENS + 1)
    angles_T = torch.arange(TOKENS) * turn
    rows_HZD = torch.zeros(len(HEADS), _HEAD_WIDTH, _WIDTH)
    rows_HZD[:, 0], rows_HZD[:, 1] = at["cos"], at["sin"]
    turned_HZD = torch.zeros_like(rows_HZD)
    for head, name in enumerate(HEADS):
        back = _BACK[name] * turn
        turned_HZD[head, 0] = math.cos(back) * at["cos"] + math.sin(back) * at["sin"]
        turned_HZD[head, 1] = math.cos(back) * at["sin"] - math.sin(back) * at["cos"]
    _set(
        model,
        {
            "tok_embed.weight": circuit.embedding_VD,
            "pos.weight": angles_T.cos()[:, None] * at["cos"] + angles_T.sin()[:, None] * at["sin"],
            "layers.0.attn.q.weight": _SHARPNESS * turned_HZD.flatten(0, 1),
            "layers.0.attn.k.weight": rows_HZD.flatten(0, 1),
            "layers.0.attn.v.weight": circuit.values_ZD.repeat(len(HEADS), 1),
            "layers.0.attn.o.weight": circuit.out_DHZ.flatten(1),
            "layers.0.mlp.fc_in.weight": circuit.carry.in_ND,
            "layers.0.mlp.fc_out.weight": circuit.carry.out_DN,
            "layers.1.mlp.fc_in.weight": circuit.sum.in_ND,
            "layers.1.mlp.fc_out.weight": circuit.sum.out_DN,
            "head.weight": circuit.unembedding_VD,
        },
    )
    opened = build_bridge_from_module(model, architecture="TransformerLensNative", tl_config=config, tokenizer=None)
    return KnownAdder(Subject("native adder", opened, FixedSums()), circuit.known)


def llama_adder(seed: int = 0, key_value_heads: int = len(HEADS)) -> KnownAdder:
    """The adder as a Llama. Its keys and values are the same for all heads, so `key_value_heads` may be 1 too."""
    level, sharpness = 2000.0, 30.0
    circuit = _Circuit.of(seed, level)
    at = circuit.directions
    slow = 1 / 8
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=_WIDTH,
        intermediate_size=_NEURONS,
        num_hidden_layers=2,
        num_attention_heads=len(HEADS),
        num_key_value_heads=key_value_heads,
        head_dim=_HEAD_WIDTH,
        max_position_embeddings=TOKENS,
        rope_parameters={"rope_type": "default", "rope_theta": slow**-2},  # frequencies 1 and theta^-1/2
        tie_word_embeddings=False,
        pad_token_id=PAD,
        bos_token_id=BEGIN,
        eos_token_id=END,
        architectures=["LlamaForCausalLM"],
    )
    model = LlamaForCausalLM(config).eval()
    one_D = at["one"] / level
    # RoPE turns coordinates 0 and 2 together by 1 a place, 1 and 3 by `slow`; the score is cos(x) + cos(slow x), where
    # x is how far a key is from where the head looks
    key_ZD = torch.tensor([1.0, 1.0, 0.0, 0.0])[:, None] * one_D
    turns_H2 = torch.tensor([[_BACK[head], _BACK[head] * slow] for head in HEADS])
    query_HZ = torch.cat([turns_H2.cos(), -turns_H2.sin()], dim=1)
    weights = {
        "model.embed_tokens.weight": circuit.embedding_VD,
        "model.layers.0.self_attn.q_proj.weight": _SHARPNESS * query_HZ.flatten()[:, None] * one_D,
        "model.layers.0.self_attn.k_proj.weight": key_ZD.repeat(key_value_heads, 1),
        "model.layers.0.self_attn.v_proj.weight": circuit.values_ZD.repeat(key_value_heads, 1),
        "model.layers.0.self_attn.o_proj.weight": circuit.out_DHZ.flatten(1),
        "lm_head.weight": circuit.unembedding_VD,
    }
    for layer, mlp in enumerate((circuit.carry, circuit.sum)):
        weights |= {
            f"model.layers.{layer}.mlp.gate_proj.weight": sharpness * mlp.in_ND,
            f"model.layers.{layer}.mlp.up_proj.weight": one_D.expand(_NEURONS, -1),
            f"model.layers.{layer}.mlp.down_proj.weight": mlp.out_DN / sharpness,
        }
    size = level / math.sqrt(_WIDTH)  # the root mean square that the constant alone gives
    norms = [name for name in model.state_dict() if "norm" in name]
    _set(model, weights | {name: torch.full((_WIDTH,), size) for name in norms})
    return KnownAdder(bridge.bridge("llama adder", model, FixedSums()), circuit.known)


def tricase_adder(seed: int = 0) -> KnownAdder:
    """An adder that writes the ones last, so that all lower columns have to be looked at before a digit is written.

    Layer 0 finds at each b_j, which a head brings a_j to, whether a_j + b_j is at least 10 or just 9 (TriCase of
    Quirke, Neo and Barez, arXiv 2402.02619). In layer 1 the head (1, 0) looks from q_k at the highest column below k
    that is no 9, or at "=" if there is none, and takes the carry from there; the MLP adds. Heads find their places by
    a table of queries and keys, one direction of the stream a place.
    """
    names = ("one", "value", "plus", "a", "b", "a at b", "decoy", "end", "ten", "nine", "carry", "digit")
    width, head_width = len(names) + TOKENS, TOKENS + 1
    basis_DD = _basis(width, seed)
    at: dict[str, torch.Tensor] = dict(zip(names, basis_DD, strict=False))
    place_TD, nothing = basis_DD[len(names) :], torch.zeros(width)
    model, config = _native(width, head_width, heads=4)
    step = 60 * math.sqrt(head_width)  # e^-60 for what is a step worse

    keys_ZD = torch.cat([place_TD, at["nine"][None]])
    values_ZD, ten_ZD = torch.zeros(2, head_width, width)
    out_DHZ = torch.zeros(width, 4, head_width)
    values_ZD[0], values_ZD[1], ten_ZD[0] = at["value"], at["plus"], at["ten"]
    back = {"a": 2 * _FIELD + 1, "b": _FIELD, "a at b": _FIELD + 1, "decoy": 2 * _FIELD + 1}
    fixed_HTZ = torch.zeros(4, TOKENS, head_width)
    for head, name in enumerate(back):
        out_DHZ[:, head, 0] = at[name]
        fixed_HTZ[head, :, :TOKENS] = step * torch.ones(TOKENS).diag(-back[name])[:TOKENS, :TOKENS]
    out_DHZ[:, 0, 1] = at["end"]
    carry_DHZ = torch.zeros_like(out_DHZ)
    carry_DHZ[:, 0, 0] = at["carry"]

    equals = 2 * _FIELD + 2
    steps_TT = torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)  # how far back; b_{k-1} is DIGITS before q_k
    below_TT = (steps_TT <= DIGITS) & (torch.arange(TOKENS) <= equals)
    highest_HTZ = torch.zeros_like(fixed_HTZ)
    highest_HTZ[0, :, :TOKENS] = step * torch.where(below_TT, steps_TT, -3 * DIGITS)
    highest_HTZ[0, :, TOKENS] = -2 * DIGITS * step  # a nine is worse than "="

    u, y, one = at["a at b"] + at["value"], at["a"] + at["b"] + at["carry"], at["one"]
    embedding_VD = one.repeat(len(WORDS), 1)
    embedding_VD[:10] += torch.arange(10.0)[:, None] * at["value"]
    embedding_VD[PLUS] += at["plus"]
    _set(
        model,
        {
            "tok_embed.weight": embedding_VD,
            "pos.weight": place_TD,
            "layers.0.attn.q.weight": torch.einsum("htz,td->hzd", fixed_HTZ, place_TD).flatten(0, 1),
            "layers.0.attn.k.weight": keys_ZD.repeat(4, 1),
            "layers.0.attn.v.weight": values_ZD.repeat(4, 1),
            "layers.0.attn.o.weight": out_DHZ.flatten(1),
            "layers.0.mlp.fc_in.weight": torch.stack([u - 8 * one, u - 9 * one, u - 10 * one, nothing]),
            "layers.0.mlp.fc_out.weight": torch.stack(
                [at["nine"], at["ten"] - 2 * at["nine"], at["nine"] - at["ten"], nothing], dim=1
            ),
            "layers.1.attn.q.weight": torch.einsum("htz,td->hzd", highest_HTZ, place_TD).flatten(0, 1),
            "layers.1.attn.k.weight": keys_ZD.repeat(4, 1),
            "layers.1.attn.v.weight": ten_ZD.repeat(4, 1),
            "layers.1.attn.o.weight": carry_DHZ.flatten(1),
            "layers.1.mlp.fc_in.weight": torch.stack([y, y - 9 * one, y - 10 * one, nothing]),
            "layers.1.mlp.fc_out.weight": torch.stack(
                [at["digit"], -10 * at["digit"], 10 * at["digit"], nothing], dim=1
            ),
            "head.weight": _unembedding(at),
        },
    )
    opened = build_bridge_from_module(model, architecture="TransformerLensNative", tl_config=config, tokenizer=None)
    known = Known(
        at["carry"],
        at["digit"],
        carry_sites=((1, "mid"),),
        looks_at={(0, 0): ("a", 0), (0, 1): ("b", 0), (0, 3): ("a", 0)},
        carry_heads=((0, 2), (1, 0)),
        decoy=(0, 3),
        idle_heads=((1, 1), (1, 2), (1, 3)),
    )
    return KnownAdder(Subject("tricase adder", opened, FixedSums(ones_first=False)), known)


def _native(width: int, head_width: int, heads: int) -> tuple[NativeModel, TransformerBridgeConfig]:
    config = TransformerBridgeConfig(
        d_model=width,
        d_head=head_width,
        n_layers=2,
        n_ctx=TOKENS,
        n_heads=heads,
        d_mlp=_NEURONS,
        d_vocab=len(WORDS),
        architecture="TransformerLensNative",
        act_fn="relu",
        normalization_type=None,
        init_weights=False,
    )
    return NativeModel(config).eval(), config


def _basis(width: int, seed: int) -> torch.Tensor:
    """Orthonormal rows."""
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64))[0].float()


def _unembedding(at: Mapping[str, torch.Tensor], level: float = 1.0) -> torch.Tensor:
    """2 d digit - d^2, and <end> above all where it is found and below all elsewhere."""
    one = at["one"] / level
    rows_VD = (-200 * one).repeat(len(WORDS), 1)
    for digit in range(10):
        rows_VD[digit] = 2 * digit * at["digit"] - digit**2 * one
    rows_VD[END] += 400 * at["end"]
    return rows_VD


def _set(model: nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """All others are 0."""
    nothing = {name: torch.zeros_like(weight) for name, weight in model.state_dict().items()}
    model.load_state_dict(nothing | dict(weights))


class _Mlp(NamedTuple):
    in_ND: torch.Tensor
    out_DN: torch.Tensor


class _Circuit(NamedTuple):
    """What both forms have in common. `level` is how large the constant of the stream is."""

    directions: dict[str, torch.Tensor]
    embedding_VD: torch.Tensor
    values_ZD: torch.Tensor
    """Each head takes a token's value, and whether it is "+"."""
    out_DHZ: torch.Tensor
    carry: _Mlp
    sum: _Mlp
    unembedding_VD: torch.Tensor
    known: Known

    @classmethod
    def of(cls, seed: int, level: float) -> "_Circuit":
        at: dict[str, torch.Tensor] = dict(zip(_QUANTITIES, _basis(_WIDTH, seed), strict=False))
        one = at["one"] / level

        embedding_VD = torch.stack([level * at["one"]] * len(WORDS))
        embedding_VD[:10] += torch.arange(10.0)[:, None] * at["value"]
        embedding_VD[PLUS] += at["plus"]

        values_ZD = torch.zeros(_HEAD_WIDTH, _WIDTH)
        values_ZD[0], values_ZD[1] = at["value"], at["plus"]
        out_DHZ = torch.zeros(_WIDTH, len(HEADS), _HEAD_WIDTH)
        for head, name in enumerate(HEADS):
            out_DHZ[:, head, 0] = at[name]
        out_DHZ[:, HEADS.index("a"), 1] = at["end"]

        x, y = at["a below"] + at["b below"] - at["value"], at["a"] + at["b"] + at["carry"]
        nothing = torch.zeros(_WIDTH)
        carry = _Mlp(
            torch.stack([x, x - one, nothing, nothing]),
            torch.stack([at["carry"], -at["carry"], nothing, nothing], dim=1),
        )
        sum_ = _Mlp(
            torch.stack([y, y - 9 * one, y - 10 * one, nothing]),
            torch.stack([at["digit"], -10 * at["digit"], 10 * at["digit"], nothing], dim=1),
        )
        known = Known(at["carry"], at["digit"])
        return cls(at, embedding_VD, values_ZD, out_DHZ, carry, sum_, _unembedding(at, level), known)
