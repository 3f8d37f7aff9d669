"""Declares models that were made elsewhere: a folder of Hugging Face (Llama or GPT-2), or torch's own encoder.

Weights are read as safetensors; nothing of the folder is run. A prompt and an answer, which such models do not have,
are given as templates (spec.py). Tables that the original ties are one table here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lab.adders.spec import check
from lab.errors import ModelError, in_one_line
from lab.models.weight_files import check_whole

PROMPT: Sequence[str | int] = (0, "a0..9", 0, 0, "b0..9", 0)
ANSWER: Sequence[str | int] = ("s0..10",)
MOST_NUMBERS = 500_000
ACTS = {"silu": "silu", "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu",
        "relu2": "relu2", "tanh": "tanh", "sigmoid": "sigmoid"}  # fmt: skip


def from_folder(folder: Path, **templates: Any) -> dict[str, Any]:
    """The declared adder of a folder with config.json and model.safetensors, as plain values.

    `templates`: prompt, answer and digits, if they are not those of the lab's own adders.
    Raises ModelError if it is not a Llama or a GPT-2, or has a part that a declared adder has not.
    """
    from safetensors.torch import load_file

    check_whole(folder)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights = {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}
        kinds = {"llama": _llama, "gpt2": _gpt2}
        if config.get("model_type") not in kinds:
            raise ModelError(
                f"{folder}: a {config.get('model_type')!r:.40}; only {' and '.join(kinds)} can be imported"
            )
        if (count := sum(tensor.numel() for tensor in weights.values())) > MOST_NUMBERS:
            raise ModelError(f"{folder}: {count:,} numbers; an adder's file holds at most {MOST_NUMBERS:,}")
        tables = _Tables(weights)
        model = kinds[config["model_type"]](config, tables)
    except KeyError as error:
        raise ModelError(f"{folder}: {error} is missing") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}: {in_one_line(error)}") from None
    return declared(tables, model, str(folder), **templates)


def from_encoder(
    embedding: nn.Embedding,
    encoder: nn.TransformerEncoder,
    head: nn.Linear,
    positions: torch.Tensor | None = None,
    **templates: Any,
) -> dict[str, Any]:
    """The declared adder of an `nn.TransformerEncoder` that is called with a causal mask, as plain values.

    Args:
        embedding: the tokens' embedding; tied, if `head` has the same weight.
        encoder: the layers.
        head: gives the logits.
        positions: what is added to the embedding (positions, width).
        templates: as in `from_folder`.

    Raises ModelError for an activation that a declared adder does not have.
    """
    weights = {
        f"{name}.{key}": tensor
        for name, part in (("encoder", encoder), ("head", head))
        for key, tensor in part.state_dict().items()
    }
    tables = _Tables(
        weights | {"embedding": embedding.weight} | ({} if positions is None else {"positions": positions})
    )
    layers = [_encoder_layer(layer, f"encoder.layers.{number}.", tables) for number, layer in enumerate(encoder.layers)]
    model = {"embedding": tables("embedding"), "layers": layers}
    if positions is not None:
        model["positions"] = tables("positions")
    if encoder.norm is not None:
        model["norm"] = _norm("layer", "encoder.norm", tables, float(getattr(encoder.norm, "eps", 1e-5)))
    tied = head.weight.data_ptr() == embedding.weight.data_ptr()
    model["head"] = {"w": tables("embedding")} if tied else {"w": tables("head.weight")}
    if head.bias is not None:
        model["head"]["b"] = tables("head.bias")
    return declared(tables, model, "an nn.TransformerEncoder", **templates)


def declared(tables: "_Tables", model: Mapping[str, Any], origin: str, **templates: Any) -> dict[str, Any]:
    value = {"numbers": tables.used, "model": model, "prompt": list(PROMPT), "answer": list(ANSWER)}
    value |= {"about": f"Imported from {origin}."[:4000]} | templates
    try:
        check(value)
    except ValueError as error:
        raise ModelError(f"{origin}: {in_one_line(error)}") from None
    return value


class _Tables:
    """Weights that are named as tables when they are first used."""

    def __init__(self, weights: Mapping[str, torch.Tensor]) -> None:
        self.weights, self.used = weights, {}

    def __call__(
        self, name: str, change: Callable[[torch.Tensor], torch.Tensor] = lambda x: x, suffix: str = ""
    ) -> str:
        own = (name.removeprefix("model.").removeprefix("transformer.").replace(".", "_") + suffix).removesuffix(
            "_weight"
        )
        self.used[own] = change(self.weights[name].detach()).tolist()
        return own

    def map(self, name: str, change: Callable[[torch.Tensor], torch.Tensor] = lambda x: x, suffix: str = "") -> Any:
        """A linear map, with its bias if it has one."""
        w = self(f"{name}.weight", change, suffix)
        return {"w": w, "b": self(f"{name}.bias", change, suffix)} if f"{name}.bias" in self.weights else w

    def parts(self, name: str, weight: str, bias: str, transposed: bool) -> dict[str, Any]:
        """Queries, keys and values that are stored as one map."""
        found = {}
        for index, part in enumerate("qkv"):

            def third(x: torch.Tensor, index: int = index) -> torch.Tensor:
                return (_turned(x) if transposed else x).chunk(3)[index]

            w = self(f"{name}{weight}", third, f"_{part}")
            has_bias = f"{name}{bias}" in self.weights
            found[part] = {"w": w, "b": self(f"{name}{bias}", third, f"_{part}")} if has_bias else w
        return found


def _norm(kind: str, name: str, tables: _Tables, eps: float) -> dict[str, Any]:
    norm: dict[str, Any] = {"kind": kind}
    for key, suffix in (("gain", "weight"), ("bias", "bias")):
        if f"{name}.{suffix}" in tables.weights:
            norm[key] = tables(f"{name}.{suffix}", suffix="_gain" if key == "gain" else "")
    return norm if eps == {"rms": 1e-6, "layer": 1e-5}[kind] else norm | {"eps": eps}


def _act(name: str) -> str:
    if name not in ACTS:
        raise ValueError(f"no activation {name!r}; one of {', '.join(ACTS)}")
    return ACTS[name]


def _llama(config: Mapping[str, Any], tables: _Tables) -> dict[str, Any]:
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        raise ValueError(f"rope of type {rope.get('rope_type', rope.get('type'))!r}; only the default is known")
    layers, eps, heads = [], config.get("rms_norm_eps", 1e-6), config["num_attention_heads"]
    for number in range(config["num_hidden_layers"]):
        name = f"model.layers.{number}."
        norms = [_norm("rms", f"{name}{each}_layernorm", tables, eps) for each in ("input", "post_attention")]
        maps = {each[0]: tables.map(f"{name}self_attn.{each}") for each in ("q_proj", "k_proj", "v_proj", "o_proj")}
        attention = {"norm": norms[0], "heads": heads, "kv_heads": config.get("num_key_value_heads") or heads, **maps}
        maps = {each: tables.map(f"{name}mlp.{each}_proj") for each in ("up", "gate", "down")}
        layers.append(
            {"attention": attention, "ffn": {"norm": norms[1], "act": _act(config.get("hidden_act", "silu")), **maps}}
        )
    tied = config.get("tie_word_embeddings", False) or "lm_head.weight" not in tables.weights
    embedding = tables("model.embed_tokens.weight")
    theta = rope.get("rope_theta", config.get("rope_theta", 10000.0))
    return {
        "embedding": embedding,
        "rope": {"theta": theta},
        "layers": layers,
        "norm": _norm("rms", "model.norm", tables, eps),
        "head": embedding if tied else tables("lm_head.weight"),
    }


def _turned(x: torch.Tensor) -> torch.Tensor:
    """GPT-2 stores its maps transposed."""
    return x.T if x.ndim == 2 else x


def _gpt2(config: Mapping[str, Any], tables: _Tables) -> dict[str, Any]:
    layers, eps = [], config.get("layer_norm_epsilon", 1e-5)
    if config.get("scale_attn_by_inverse_layer_idx") or not config.get("scale_attn_weights", True):
        raise ValueError("attention scores are scaled in an unusual way")
    for number in range(config["n_layer"]):
        name = f"transformer.h.{number}."
        norms = [_norm("layer", f"{name}ln_{each}", tables, eps) for each in (1, 2)]
        parts = tables.parts(f"{name}attn.c_attn", ".weight", ".bias", transposed=True)
        attention = {
            "norm": norms[0],
            "heads": config["n_head"],
            **parts,
            "o": tables.map(f"{name}attn.c_proj", _turned),
        }
        maps = {own: tables.map(f"{name}mlp.{each}", _turned) for own, each in (("up", "c_fc"), ("down", "c_proj"))}
        act = _act(config.get("activation_function", "gelu_new"))
        layers.append({"attention": attention, "ffn": {"norm": norms[1], "act": act, **maps}})
    tied = config.get("tie_word_embeddings", True) or "lm_head.weight" not in tables.weights
    embedding = tables("transformer.wte.weight")
    return {
        "embedding": embedding,
        "positions": tables("transformer.wpe.weight"),
        "layers": layers,
        "norm": _norm("layer", "transformer.ln_f", tables, eps),
        "head": embedding if tied else tables("lm_head.weight"),
    }


def _encoder_layer(layer: Any, name: str, tables: _Tables) -> dict[str, Any]:
    acts = {nn.functional.relu: "relu", nn.functional.gelu: "gelu", nn.functional.silu: "silu"}
    known = [
        own
        for function, own in acts.items()
        if layer.activation is function
        or isinstance(layer.activation, getattr(nn, {"relu": "ReLU", "gelu": "GELU", "silu": "SiLU"}[own]))
    ]
    if not known:
        raise ModelError(f"an nn.TransformerEncoderLayer with another activation than {', '.join(acts.values())}")
    norms = [_norm("layer", f"{name}norm{number}", tables, getattr(layer, f"norm{number}").eps) for number in (1, 2)]
    parts = tables.parts(f"{name}self_attn.", "in_proj_weight", "in_proj_bias", transposed=False)
    attention = {"heads": layer.self_attn.num_heads, **parts, "o": tables.map(f"{name}self_attn.out_proj")}
    ffn = {"act": known[0], "up": tables.map(f"{name}linear1"), "down": tables.map(f"{name}linear2")}
    post = {} if layer.norm_first else {"post": True}
    return {"attention": attention | {"norm": norms[0]} | post, "ffn": ffn | {"norm": norms[1]} | post}
