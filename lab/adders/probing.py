"""Opens a declared adder in TransformerLens, if it is what GPT-2 or Llama also computes: the same numbers are put into
such a model of Hugging Face, whose logits are compared with the adder's own."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from lab.adders.asking import AdderEngine, is_adder
from lab.adders.importing import ACTS
from lab.adders.model import EPS, DeclaredModel, Pass, Tensors, Watch
from lab.adders.rows import digits_of, rows
from lab.adders.spec import Adder, Attention, Ffn, Map, Norm
from lab.errors import ModelError, TaskError
from lab.models import sources
from lab.probing.addition.positions import Written
from lab.probing.bridge import Subject, bridge, open_model

EAGER: dict[str, Any] = {"attn_implementation": "eager"}
TOLERANCE = 1e-4
"""How far the logits of the two models may differ, as a share of the largest."""


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


def open_adder(path: Path) -> Subject:
    """A subject for the instruments. Raises ModelError if the adder is neither a GPT-2 nor a Llama."""
    adder = AdderEngine.of(path).adder
    declared = DeclaredModel(adder)
    model = _Equivalent(adder, declared).build().eval()
    writer = TemplateSums(adder)
    ids_BT = torch.tensor([writer.write(a, b).ids for a, b in ((12, 9), (358, 426), (5_555_555_555, 4_444_444_445))])
    with torch.no_grad():
        one, other = model(ids_BT[:, :-1]).logits, declared(ids_BT[:, :-1])
    if (one - other).abs().max() > TOLERANCE * other.abs().max():
        raise ModelError(f"{path}: the model that TransformerLens would open computes something else")
    return bridge(str(path), model, writer)


def opened(name: str, template: str = "") -> Subject:
    """A declared adder, or any other model that `lab.probing.bridge.open_model` opens."""
    path = Path(sources.resolve(name))
    return open_adder(path) if is_adder(path) else open_model(name, template)


def _no(what: str) -> ModelError:
    return ModelError(f"lab probe opens adders that GPT-2 or Llama could compute, and this one {what}")


class _Equivalent:
    def __init__(self, adder: Adder, model: DeclaredModel) -> None:
        self.adder, self.declared = adder, adder.model
        self.given = Pass(Tensors(model.tables, model.vocabulary), adder, Watch())
        self.embedding = self.given.get(self.declared.embedding)
        self.width = self.embedding.shape[1]
        parts = [part for _, _, part in self.declared.parts()]
        if len(parts) % 2 or not parts or not isinstance(parts[0], Attention):
            raise _no("has layers other than attention and ffn in turn")
        self.layers: list[tuple[Any, Any]] = list(zip(parts[::2], parts[1::2], strict=True))
        for attention, ffn in self.layers:
            if not isinstance(attention, Attention) or not isinstance(ffn, Ffn):
                raise _no("has layers other than attention and ffn in turn")
            for part in (attention, ffn):
                if part.post or part.residual != 1 or part.branch != 1:
                    raise _no("scales its stream or has norms behind its layers")
            if attention.q_norm or attention.k_norm or attention.alibi is not None or attention.scale is not None:
                raise _no("has attention with norms, slopes or a scale of its own")
        if self.declared.head.w is None or self.declared.head.b is not None:
            raise _no("has another head than a matrix")
        self.norms = [norm for layer in self.layers for norm in (layer[0].norm, layer[1].norm)] + [self.declared.norm]

    def build(self) -> PreTrainedModel:
        first, act = self.layers[0][0], self.layers[0][1].act
        names = {own: name for name, own in reversed(ACTS.items())}
        kinds, gated = {norm and norm.kind for norm in self.norms}, [ffn.gate is not None for _, ffn in self.layers]
        epsilons = {norm.eps or EPS[norm.kind] for norm in self.norms if norm}
        if act not in names or len(epsilons) != 1 or any(ffn.act != act for _, ffn in self.layers):
            raise _no("has activations or norms that differ")
        if kinds == {"layer"} and self.declared.positions and not self.declared.rope and not any(gated):
            return self.gpt2(first, names[act], epsilons.pop())
        if kinds == {"rms"} and self.declared.rope and not self.declared.positions and all(gated):
            return self.llama(first, names[act], epsilons.pop())
        raise _no("has neither learned positions, layer norms and no gate, nor rope, RMS norms and gates")

    def gpt2(self, first: Attention, act: str, eps: float) -> PreTrainedModel:
        positions = self.given.positions(self.adder.tokens + 1, self.width)
        hidden = self.matrix(self.layers[0][1].up, self.width)[0].shape[0]
        config = GPT2Config(
            vocab_size=len(self.embedding), n_embd=self.width, n_layer=len(self.layers), n_head=first.heads,
            n_positions=len(positions), n_inner=hidden, activation_function=act, layer_norm_epsilon=eps,
            tie_word_embeddings=False, bos_token_id=None, eos_token_id=None, **EAGER,
        )  # fmt: skip
        weights = {"transformer.wte.weight": self.embedding, "transformer.wpe.weight": positions}
        for number, (attention, ffn) in enumerate(self.layers):
            name = f"transformer.h.{number}."
            maps = [self.matrix(getattr(attention, part), self.width) for part in "qkv"]
            if any(w.shape != (self.width, self.width) for w, _ in maps) or attention.heads != (
                attention.kv_heads or attention.heads
            ):
                raise _no("has heads of another width than GPT-2")
            weights[f"{name}attn.c_attn.weight"] = torch.cat([w for w, _ in maps]).T
            weights[f"{name}attn.c_attn.bias"] = torch.cat([b for _, b in maps])
            for own, part, width in (
                (attention.o, "attn.c_proj", self.width),
                (ffn.up, "mlp.c_fc", self.width),
                (ffn.down, "mlp.c_proj", hidden),
            ):
                w, b = self.matrix(own, width)
                weights |= {f"{name}{part}.weight": w.T, f"{name}{part}.bias": b}
            weights |= self.norm(attention.norm, f"{name}ln_1", True) | self.norm(ffn.norm, f"{name}ln_2", True)
        return self.filled(GPT2LMHeadModel(config), weights | self.norm(self.declared.norm, "transformer.ln_f", True))

    def llama(self, first: Attention, act: str, eps: float) -> PreTrainedModel:
        rope, kv_heads = self.declared.rope, first.kv_heads or first.heads
        assert rope is not None
        head = self.matrix(first.q, self.width)[0].shape[0] // first.heads
        hidden = self.matrix(self.layers[0][1].up, self.width)[0].shape[0]
        turning: dict[str, Any] = {"rope_type": "default", "rope_theta": 10000.0}
        if rope.period is not None:
            if head != 2:
                raise _no("turns several pairs with one period")
            turning = {
                "rope_type": "linear",
                "rope_theta": 10000.0,
                "factor": self.given.get(rope.period).item() / (2 * math.pi),
            }
        else:
            turning["rope_theta"] = self.given.get(rope.theta).item()
        config = LlamaConfig(
            vocab_size=len(self.embedding), hidden_size=self.width, num_hidden_layers=len(self.layers),
            num_attention_heads=first.heads, num_key_value_heads=kv_heads, head_dim=head, intermediate_size=hidden,
            hidden_act=act, rms_norm_eps=eps, rope_parameters=turning, max_position_embeddings=128,
            attention_bias=True, mlp_bias=True, tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
            **EAGER,
        )  # fmt: skip
        weights = {"model.embed_tokens.weight": self.embedding}
        for number, (attention, ffn) in enumerate(self.layers):
            name = f"model.layers.{number}."
            maps = {f"self_attn.{part}_proj": self.matrix(getattr(attention, part), self.width) for part in "qk"}
            value, bias = self.matrix(attention.v, self.width)
            maps["self_attn.v_proj"] = _padded(value, kv_heads, head), _padded(bias[:, None], kv_heads, head)[:, 0]
            out, bias = self.matrix(attention.o, len(value) // kv_heads * attention.heads)
            maps["self_attn.o_proj"] = _padded(out.T, attention.heads, head).T, bias
            maps |= {f"mlp.{part}_proj": self.matrix(getattr(ffn, part), self.width) for part in ("up", "gate")}
            maps["mlp.down_proj"] = self.matrix(ffn.down, hidden)
            for part, (w, b) in maps.items():
                weights |= {f"{name}{part}.weight": w, f"{name}{part}.bias": b}
            weights |= self.norm(attention.norm, f"{name}input_layernorm") | self.norm(
                ffn.norm, f"{name}post_attention_layernorm"
            )
        return self.filled(LlamaForCausalLM(config), weights | self.norm(self.declared.norm, "model.norm"))

    def filled(self, model: Any, weights: dict[str, torch.Tensor]) -> PreTrainedModel:
        weights["lm_head.weight"] = self.given.get(self.declared.head.w)
        try:
            model.load_state_dict({name: weight.float().contiguous() for name, weight in weights.items()}, strict=False)
        except RuntimeError as error:
            raise _no(f"has another shape: {str(error).splitlines()[-1].strip()}") from None
        model.config.architectures = [type(model).__name__]
        return model

    def matrix(self, linear: Map | None, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The matrix and the bias of a map from `width` numbers."""
        if linear is None or (linear.w is None and linear.b is None):
            return torch.eye(width), torch.zeros(width)
        if linear.w is None:
            bias = self.given.get(linear.b)
            return torch.zeros(len(bias), width), bias
        w = self.given.get(linear.w)
        return w, torch.zeros(len(w)) if linear.b is None else self.given.get(linear.b)

    def norm(self, norm: Norm | None, name: str, biased: bool = False) -> dict[str, torch.Tensor]:
        assert norm is not None
        gain = torch.ones(self.width) * (1 if norm.gain is None else self.given.get(norm.gain))
        if norm.bias is not None and not biased:
            raise _no("has RMS norms with a bias")
        bias = {f"{name}.bias": torch.zeros(self.width) + (0 if norm.bias is None else self.given.get(norm.bias))}
        return {f"{name}.weight": gain} | (bias if biased else {})


def _padded(rows_XD: torch.Tensor, heads: int, width: int) -> torch.Tensor:
    """Rows with zeros below those of each head, up to `width` rows a head."""
    own = rows_XD.unflatten(0, (heads, -1))
    if own.shape[1] > width:
        raise _no("has values that are wider than its keys")
    return torch.nn.functional.pad(own, (0, 0, 0, width - own.shape[1])).flatten(0, 1)
