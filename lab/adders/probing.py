"""Opens a declared adder in TransformerLens: its numbers are put into TransformerLens' own architecture, and the
logits of both are compared."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module
from transformer_lens.model_bridge.sources.native import NativeModel

from lab.adders.asking import AdderEngine
from lab.adders.model import ACTIVATIONS, EPS, DeclaredModel, Pass, Tensors, Watch
from lab.adders.rows import digits_of, rows
from lab.adders.spec import Adder, Attention, Ffn, Map, Norm
from lab.errors import ModelError, TaskError
from lab.models import sources
from lab.probing.addition.positions import Sums, Written
from lab.probing.bridge import Subject, check, open_model

NATIVE = "TransformerLensNative"
EXAMPLES = ((12, 9), (358, 426), (5_555_555_555, 4_444_444_445))
"""Sums on which the two models are compared."""


class TemplateSums:
    """Sums as an adder's templates write them; see `SumWriter`. A right answer has all digits, also leading zeros."""

    pad = 0

    def __init__(self, adder: Adder) -> None:
        self.adder = adder

    def write(self, a: int, b: int) -> Written:
        """See `SumWriter`. Raises TaskError for numbers that are too long."""
        a_BD, b_BD = digits_of([(a, b)])
        if max(a, b) >= 10 ** a_BD.shape[1]:
            raise TaskError(f"{max(a, b)}: this adder adds numbers of at most {a_BD.shape[1]} digits")
        ids_BT, answers_BA = rows(self.adder, a_BD, b_BD)
        template = [*self.adder.prompt, *self.adder.answer]
        places = {item: place for place, item in enumerate(template)}
        parts = zip("abs", (a, b, a + b), strict=True)
        a_at, b_at, answer_at = ([places[f"{letter}{k}"] for k in range(len(str(number)))] for letter, number in parts)
        between = [place for place in range(min(*a_at, *b_at), len(self.adder.prompt)) if place not in (*a_at, *b_at)]
        ids = [*ids_BT[0].tolist(), int(answers_BA[0, -1])]
        return Written(ids, a_at, b_at, answer_at, between[0] if between else 0, len(self.adder.prompt) - 1)

    def words(self, ids: Sequence[int]) -> list[str]:
        digits = {token: str(digit) for digit, token in enumerate(self.adder.digits)}
        return [digits.get(token, f"<{token}>") for token in ids]

    def digit_ids(self) -> list[int]:
        return list(self.adder.digits)


def opened(name: str, template: str = "") -> Subject:
    """A declared adder, or any other model that `lab.probing.bridge.open_model` opens."""
    path = Path(sources.resolve(name))
    return open_adder(path) if sources.is_adder(path) else open_model(name, template)


def open_adder(path: Path) -> Subject:
    """A subject for the instruments. Raises ModelError for an adder with a part that TransformerLens does not have."""
    adder = AdderEngine.of(path).adder
    attentions, ffns = layers_of(adder)
    declared, writer = DeclaredModel(adder), TemplateSums(adder)
    native = Native(declared, attentions, ffns)
    opened = build_bridge_from_module(native.model, architecture=NATIVE, tl_config=native.config, tokenizer=None)
    subject, examples = Subject(str(path), opened, writer), Sums.of(writer, EXAMPLES)
    with torch.no_grad():
        check(subject, examples, declared(examples.tokens_BT))
    return subject


def layers_of(adder: Adder) -> tuple[list[Attention], list[Ffn]]:
    """The layers. Raises ModelError if TransformerLens' own architecture has no such layers."""
    model, parts = adder.model, [part for _, _, part in adder.model.parts()]
    attentions = [part for part in parts if isinstance(part, Attention)]
    ffns = [part for part in parts if isinstance(part, Ffn)]
    in_turn = [part for pair in zip(attentions, ffns, strict=False) for part in pair]
    norms = {norm and (norm.kind, norm.eps, norm.bias is None) for norm in [model.norm, *(part.norm for part in parts)]}
    refused = {
        "layers other than attention and ffn in turn": not parts or parts != in_turn,
        "factors of its stream, or norms behind its layers": any(
            part.post or part.residual != 1 or part.branch != 1 for part in parts
        ),
        "attention with norms or slopes": any(
            each.q_norm or each.k_norm or each.alibi is not None for each in attentions
        ),
        "norms that differ, or are of no common kind": len(norms) > 1
        or any(norm and (norm[0] == "none" or (norm[0] == "rms" and not norm[2])) for norm in norms),
        "layers of different sizes": len({(each.heads, each.kv_heads) for each in attentions}) > 1
        or len({(each.gate is None) for each in ffns}) > 1,
        "both positions and rope": bool(model.positions and model.rope),
        "another head than a matrix": model.head.w is None or model.head.b is not None,
    }
    for what in (what for what, so in refused.items() if so):
        raise ModelError(f"lab probe opens no adder with {what}: TransformerLens has no such model")
    return attentions, ffns


class Native:
    """TransformerLens' own model with the numbers of a declared adder, and its config."""

    def __init__(self, declared: DeclaredModel, attentions: Sequence[Attention], ffns: Sequence[Ffn]) -> None:
        adder, model = declared.adder, declared.adder.model
        self.given = Pass(
            Tensors({name: x.float() for name, x in declared.tables.items()}, declared.vocabulary), adder, Watch()
        )
        embedding = self.given.get(model.embedding)
        self.width, tokens = embedding.shape[1], adder.tokens + 1
        first, norm = attentions[0], model.norm
        self.heads, self.kv_heads = first.heads, first.kv_heads or first.heads
        self.head = len(self.matrix(first.q, self.width)[0]) // first.heads
        hidden = {len(self.matrix(ffn.up, self.width)[0]) for ffn in ffns}
        self.config = TransformerBridgeConfig(
            d_model=self.width, d_head=self.head, n_layers=len(ffns), n_ctx=tokens, n_heads=self.heads,
            n_key_value_heads=self.kv_heads, d_mlp=max(hidden), d_vocab=len(embedding), architecture=NATIVE,
            act_fn="relu", gated_mlp=ffns[0].gate is not None, init_weights=False,
            normalization_type={"layer": "LN", "rms": "RMS"}[norm.kind] if norm else None,
            eps=(norm.eps or EPS[norm.kind]) if norm else 1.0,
        )  # fmt: skip
        self.model = NativeModel(self.config).eval()
        self.model.tok_embed.weight = nn.Parameter(embedding)
        places = self.given.positions(tokens, self.width) if model.positions else torch.zeros(tokens, self.width)
        self.model.pos = nn.Embedding.from_pretrained(places)
        self.model.head.weight = nn.Parameter(self.given.get(model.head.w))
        self.put_norm(self.model.ln_out, norm)
        for layer, attention, ffn in zip(self.model.layers, attentions, ffns, strict=True):
            self.put_norm(layer.ln1, attention.norm)
            self.put_norm(layer.ln2, ffn.norm)
            self.put_attention(layer.attn, attention)
            self.put_ffn(layer.mlp, ffn)

    def put_norm(self, module: Any, norm: Norm | None) -> None:
        for name, key, without in (("weight", "gain", 1.0), ("bias", "bias", 0.0)):
            if norm and hasattr(module, name):
                reference = getattr(norm, key)
                value = without if reference is None else self.given.get(reference)
                setattr(module, name, nn.Parameter(torch.zeros(self.width) + value))

    def put_attention(self, module: Any, part: Attention) -> None:
        for name in "qk":
            put(getattr(module, name), *self.matrix(getattr(part, name), self.width))
        w, b = self.matrix(part.v, self.width)
        put(module.v, self.padded(w, self.kv_heads), self.padded(b[:, None], self.kv_heads)[:, 0])
        w, b = self.matrix(part.o, len(w) // self.kv_heads * self.heads)
        put(module.o, self.padded(w.T, self.heads).T, b)
        if part.scale is not None:
            module.scale = 1 / self.given.get(part.scale).item()
        if self.given.rope is not None:
            module.rotary = Turned(self.given)

    def put_ffn(self, module: Any, part: Ffn) -> None:
        up, gate, down = ("fc_in", None, "fc_out") if part.gate is None else ("in", "gate", "out")
        put(getattr(module, up), *self.matrix(part.up, self.width))
        put(getattr(module, down), *self.matrix(part.down, len(getattr(module, up).weight)))
        if gate:
            put(module.gate, *self.matrix(part.gate, self.width))
        module.act = ACTIVATIONS[part.act]

    def matrix(self, linear: Map | None, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The matrix and the bias of a map from `width` numbers."""
        eye = torch.eye(width)
        zero = self.given.map(torch.zeros(1, width), linear)[0]
        return (self.given.map(eye, linear) - zero).T, zero

    def padded(self, rows_XD: torch.Tensor, heads: int) -> torch.Tensor:
        """Rows with zeros below those of each head, as many as its keys have."""
        own = rows_XD.unflatten(0, (heads, -1))
        if own.shape[1] > self.head:
            raise ModelError("lab probe opens no adder with values that are wider than its keys")
        return nn.functional.pad(own, (0, 0, 0, self.head - own.shape[1])).flatten(0, 1)


class Turned(nn.Module):
    """The rotary positions of a declared adder."""

    def __init__(self, given: Pass) -> None:
        super().__init__()
        self.given = given

    def apply_rope(self, q: torch.Tensor, k: torch.Tensor, **_: Any) -> tuple[torch.Tensor, torch.Tensor]:
        places_T = torch.arange(q.shape[2], dtype=q.dtype)
        return self.given.turned(q, places_T), self.given.turned(k, places_T)


def put(module: Any, w: torch.Tensor, b: torch.Tensor) -> None:
    module.weight, module.bias = nn.Parameter(w.contiguous()), nn.Parameter(b.contiguous())
