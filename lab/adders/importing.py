"""Declares models that were made elsewhere: a folder of Hugging Face (Llama or GPT-2), or torch's own encoder.

Their weights get the names that a declared adder has for them, and from then on all of them are one kind of model.
Weights are read as safetensors; nothing of the folder is run. A prompt and an answer, which such models do not have,
are given as templates (spec.py). Tables that the original ties are one table here.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from lab.adders.model import EPS
from lab.adders.spec import check
from lab.errors import ModelError, in_one_line
from lab.models.weight_files import check_whole

TEMPLATES: dict[str, Any] = {"prompt": [0, "a0..9", 0, 0, "b0..9", 0], "answer": ["s0..10"]}
MOST_NUMBERS = 500_000
ACTS = {"silu": "silu", "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu",
        "relu2": "relu2", "tanh": "tanh", "sigmoid": "sigmoid"}  # fmt: skip
NAMES = {
    "llama": {
        "model.embed_tokens": "embedding", "model.layers": "layers", "model.norm": "norm", "lm_head": "head",
        "input_layernorm": "norm_1", "post_attention_layernorm": "norm_2", "self_attn.": "", "mlp.": "", "_proj": "",
    },
    "gpt2": {
        "transformer.": "", "wte": "embedding", "wpe": "positions", "h.": "layers.", "ln_f": "norm", "lm_head": "head",
        "ln_": "norm_", "attn.c_attn": "qkv", "attn.c_proj": "o", "mlp.c_fc": "up", "mlp.c_proj": "down",
    },
    "encoder": {
        "norm1": "norm_1", "norm2": "norm_2", "self_attn.in_proj_": "qkv.", "self_attn.out_proj": "o", "linear1": "up",
        "linear2": "down",
    },
}  # fmt: skip
"""What the names of weights are made of, for each family, and what that is called here."""


class Family(NamedTuple):
    """What a model's weights do not say."""

    norm: str
    eps: float
    act: str
    heads: int
    kv_heads: int | None = None
    post: bool = False
    theta: float | None = None


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
        kind = config.get("model_type")
        if kind not in FAMILIES:
            raise ModelError(f"{folder}: a {kind!r:.40}; only {' and '.join(FAMILIES)} can be imported")
        if (count := sum(tensor.numel() for tensor in weights.values())) > MOST_NUMBERS:
            raise ModelError(f"{folder}: {count:,} numbers; an adder's file holds at most {MOST_NUMBERS:,}")
        family = FAMILIES[kind](config)
        if config.get("tie_word_embeddings", kind == "gpt2"):
            weights.pop("lm_head.weight", None)
        return declared(dict(named(weights, kind)), family, str(folder), **templates)
    except KeyError as error:
        raise ModelError(f"{folder}: {error} is missing") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}: {in_one_line(error)}") from None


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
    first: Any = encoder.layers[0]
    acts = {nn.functional.relu: "relu", nn.functional.gelu: "gelu", nn.functional.silu: "silu"}
    acts |= {nn.ReLU: "relu", nn.GELU: "gelu", nn.SiLU: "silu"}
    act = acts.get(first.activation) or acts.get(type(first.activation))
    if act is None:
        raise ModelError(f"an nn.TransformerEncoderLayer with another activation than {', '.join({*acts.values()})}")
    family = Family("layer", first.norm1.eps, act, first.self_attn.num_heads, post=not first.norm_first)
    weights = dict(named(encoder.state_dict(), "encoder")) | {"embedding.weight": embedding.weight}
    if positions is not None:
        weights["positions.weight"] = positions
    own = {f"head.{name}": weight for name, weight in head.state_dict().items()}
    if head.weight.data_ptr() == embedding.weight.data_ptr():
        del own["head.weight"]
    return declared(weights | own, family, "an nn.TransformerEncoder", **templates)


def _llama(config: Mapping[str, Any]) -> Family:
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if (kind := rope.get("rope_type", rope.get("type", "default"))) != "default":
        raise ValueError(f"rope of type {kind!r}; only the default is known")
    theta, act = rope.get("rope_theta", config.get("rope_theta", 10000.0)), config.get("hidden_act", "silu")
    heads, kv_heads = config["num_attention_heads"], config.get("num_key_value_heads")
    return Family("rms", config.get("rms_norm_eps", 1e-6), _act(act), heads, kv_heads, theta=theta)


def _gpt2(config: Mapping[str, Any]) -> Family:
    if config.get("scale_attn_by_inverse_layer_idx") or not config.get("scale_attn_weights", True):
        raise ValueError("attention scores are scaled in an unusual way")
    act = _act(config.get("activation_function", "gelu_new"))
    return Family("layer", config.get("layer_norm_epsilon", 1e-5), act, config["n_head"])


FAMILIES = {"llama": _llama, "gpt2": _gpt2}


def _act(name: str) -> str:
    if name not in ACTS:
        raise ValueError(f"no activation {name!r}; one of {', '.join(ACTS)}")
    return ACTS[name]


def named(weights: Mapping[str, torch.Tensor], family: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Weights by the names that they have here; queries, keys and values apart."""
    for name, weight in weights.items():
        for old, new in NAMES[family].items():
            name = name.replace(old, new)
        if family == "gpt2" and name.startswith("layers.") and weight.ndim == 2:
            weight = weight.T  # GPT-2 stores its maps transposed
        if ".qkv." in name:
            yield from ((name.replace("qkv", each), part) for each, part in zip("qkv", weight.chunk(3), strict=True))
        else:
            yield name, weight


def declared(weights: Mapping[str, torch.Tensor], family: Family, origin: str, **templates: Any) -> dict[str, Any]:
    """The adder with these weights, as plain values. Raises ModelError if they do not fit together."""
    used: dict[str, Any] = {}

    def table(name: str) -> str:
        own = name.removesuffix(".weight").replace(".", "_")
        used[own] = weights[name].detach().tolist()
        return own

    def linear(name: str) -> Any:
        w, bias = table(f"{name}.weight"), f"{name}.bias"
        return {"w": w, "b": table(bias)} if bias in weights else w

    def norm(name: str) -> dict[str, Any]:
        keys = {key: f"{name}.{of}" for key, of in (("gain", "weight"), ("bias", "bias"))}
        own = {key: table(of) for key, of in keys.items() if of in weights}
        return {"kind": family.norm, **own} | ({} if family.eps == EPS[family.norm] else {"eps": family.eps})

    layers = []
    while any(name.startswith(f"layers.{len(layers)}.") for name in weights):
        at = f"layers.{len(layers)}."
        attention = {name: linear(f"{at}{name}") for name in "qkvo"}
        attention |= {"norm": norm(f"{at}norm_1"), "heads": family.heads, "kv_heads": family.kv_heads}
        maps = {name: linear(f"{at}{name}") for name in ("gate", "up", "down") if f"{at}{name}.weight" in weights}
        ffn = maps | {"norm": norm(f"{at}norm_2"), "act": family.act}
        layers.append({"attention": attention | {"post": family.post}, "ffn": ffn | {"post": family.post}})
    model: dict[str, Any] = {"embedding": table("embedding.weight"), "layers": layers}
    if family.theta is not None:
        model["rope"] = {"theta": family.theta}
    if "positions.weight" in weights:
        model["positions"] = table("positions.weight")
    if "norm.weight" in weights:
        model["norm"] = norm("norm")
    model["head"] = {"w": table("head.weight") if "head.weight" in weights else model["embedding"]}
    if "head.bias" in weights:
        model["head"]["b"] = table("head.bias")
    value = {"numbers": used, "model": model} | TEMPLATES | {"about": f"Imported from {origin}."[:4000]} | templates
    try:
        check(value)
    except ValueError as error:
        raise ModelError(f"{origin}: {in_one_line(error)}") from None
    return value
