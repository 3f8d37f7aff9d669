"""Hook points for the lab's own Llamas: models from scratch, and pretrained ones with parts.

TransformerLens computes attention itself, and knows no relative keys, no stick-breaking and no walking heads. So these
models keep their own forward pass, and get hook points with TransformerLens' names and shapes, under which instruments
find them as they find those of any bridge:

    blocks.N.hook_resid_pre, hook_resid_mid (the input of the MLP alone, as in TransformerLens), hook_resid_post
    blocks.N.hook_attn_out, hook_mlp_out, mlp.hook_post (the neurons)
    blocks.N.attn.hook_q, hook_k, hook_v, hook_pattern, hook_z
    blocks.N.attn.hook_walk   what the walking heads of a part add to their usual weights (B, H, Q, K)
    unembed.hook_in

Shapes: B rows, T tokens, H heads, G key-value heads, Z width of a head, D width of the model, V words.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from lab.parts.watching import WATCH
from lab.probing.live_patterns import WATCHED
from lab.trees.paths import attends_along_paths


class Point:
    """A place in a run where an activation can be read and changed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changes: list[Callable[..., Any]] = []

    def __call__(self, activation: torch.Tensor) -> torch.Tensor:
        for change in self.changes:
            changed = change(activation, hook=self)
            activation = activation if changed is None else changed
        return activation


class OwnBridge:
    """What instruments use of a `TransformerBridge`, for a Llama of the lab."""

    def __init__(self, model: Any, tokenizer: Any = None) -> None:
        """Changes the model: do not use it itself afterwards."""
        self.model, self.tokenizer, config = model, tokenizer, model.config
        self.cfg = SimpleNamespace(
            n_layers=config.num_hidden_layers, n_heads=config.num_attention_heads, d_model=config.hidden_size,
            n_key_value_heads=config.num_key_value_heads, d_mlp=config.intermediate_size, d_head=config.head_dim,
            n_ctx=config.max_position_embeddings, positional_embedding_type="rotary", device=model.device,
            eps=config.rms_norm_eps, normalization_type="RMS", model_name=model.config.model_type,
        )  # fmt: skip
        self.hook_dict: dict[str, Point] = {}
        self.blocks: list[Any] = list(model.model.layers)
        for number, layer in enumerate(self.blocks):
            self._open(number, layer)
        _before(model.lm_head, self._point("unembed.hook_in"))
        self.ln_final = model.model.norm
        vars(self.ln_final).update(uses_rms_norm=True, uses_weight_offset=False)
        self._watch_walks()
        if not attends_along_paths(model):
            model.set_attn_implementation(WATCHED)

    def parameters(self) -> Any:
        return self.model.parameters()

    def eval(self) -> "OwnBridge":
        self.model.eval()
        return self

    def __call__(self, tokens_BT: torch.Tensor, **others: Any) -> torch.Tensor:
        """The logits (B, T, V). `others`: arguments of the model, such as attention_mask."""
        return self.model(tokens_BT, use_cache=False, **others).logits

    def unembed(self, stream: torch.Tensor) -> torch.Tensor:
        """The logits of a normed stream (..., D)."""
        return nn.functional.linear(stream, self.model.lm_head.weight, self.model.lm_head.bias)

    @property
    def W_U(self) -> torch.Tensor:
        """The unembedding, (D, V)."""
        return self.model.lm_head.weight.T

    @property
    def W_out(self) -> list[torch.Tensor]:
        """What each neuron writes per unit, (N, D), for each layer."""
        return [layer.mlp.down_proj.weight.T for layer in self.blocks]

    def run_with_hooks(self, tokens_BT: torch.Tensor, fwd_hooks: Sequence[tuple[str, Callable[..., Any]]]) -> Any:
        """The logits (B, T, V) of a run with hooks, which are removed afterwards."""
        added = [(self.hook_dict[name], change) for name, change in fwd_hooks]
        for point, change in added:
            point.changes.append(change)
        try:
            return self(tokens_BT)
        finally:
            for point, change in added:
                point.changes.remove(change)

    def run_with_cache(self, tokens_BT: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The logits, and the activations of all hook points."""
        kept: dict[str, torch.Tensor] = {}

        def keep(activation: torch.Tensor, hook: Point) -> None:
            kept[hook.name] = activation

        return self.run_with_hooks(tokens_BT, [(name, keep) for name in self.hook_dict]), kept

    def _point(self, name: str) -> Point:
        return self.hook_dict.setdefault(name, Point(name))

    def _open(self, number: int, layer: Any) -> None:
        point, attention, width = partial(_named, self._point, f"blocks.{number}."), layer.self_attn, self.cfg.d_head
        _before(layer, point("hook_resid_pre"))
        _after(layer, point("hook_resid_post"))
        mid = point("hook_resid_mid")
        self.hook_dict[f"blocks.{number}.ln2.hook_in"] = mid
        _before(layer.post_attention_layernorm, mid)
        _after(attention, point("hook_attn_out"))
        for name in "qkv":
            _after(getattr(attention, f"{name}_proj"), point(f"attn.hook_{name}"), width)
        _before(attention.o_proj, point("attn.hook_z"), width)
        vars(attention)[WATCH] = point("attn.hook_pattern")
        _before(layer.mlp.down_proj, point("mlp.hook_post"))
        _after(layer.mlp, point("hook_mlp_out"))
        # kept out of the modules' own registers, so that the model and its weights stay as they are
        vars(layer).update(attn=_Weights(attention, width, self.cfg), ln1=layer.input_layernorm)

    def _watch_walks(self) -> None:
        """Gives a hook point to the walking heads of a model with parts."""
        parts: Mapping[str, Any] = getattr(self.model, "parts", {})
        if "walk" not in parts:  # a ModuleDict has no get
            return
        walk = parts["walk"]
        points = {layer: self._point(f"blocks.{layer}.attn.hook_walk") for layer in walk.layers}
        walk.watch(lambda layer, weights: points[layer](weights))


class _Weights:
    """The weights of an attention layer by TransformerLens' names: (heads, D, Z), and (heads, Z, D) for W_O."""

    def __init__(self, attention: Any, width: int, cfg: Any) -> None:
        self._attention, self._width = attention, width
        self.original_component = attention

    @property
    def W_Q(self) -> torch.Tensor:
        return self._of("q_proj")

    @property
    def W_K(self) -> torch.Tensor:
        return self._of("k_proj")

    @property
    def W_V(self) -> torch.Tensor:
        return self._of("v_proj")

    @property
    def W_O(self) -> torch.Tensor:
        return self._attention.o_proj.weight.T.unflatten(0, (-1, self._width))

    @property
    def b_O(self) -> torch.Tensor | None:
        return self._attention.o_proj.bias

    def _of(self, name: str) -> torch.Tensor:
        return getattr(self._attention, name).weight.unflatten(0, (-1, self._width)).transpose(1, 2)


def _named(point: Callable[[str], Point], start: str, end: str) -> Point:
    return point(start + end)


def _shaped(point: Point, activation: torch.Tensor, width: int) -> torch.Tensor:
    """An activation after a point, which sees the numbers of each head apart if there is a `width`."""
    if not point.changes:
        return activation
    return point(activation.unflatten(-1, (-1, width))).flatten(-2) if width else point(activation)


def _before(module: nn.Module, point: Point, width: int = 0) -> None:
    """Lets a point see and change the first argument of a module."""

    def change(_: nn.Module, given: Any, named: Any) -> Any:
        if given:
            return (_shaped(point, given[0], width), *given[1:]), named
        return given, {**named, "hidden_states": _shaped(point, named["hidden_states"], width)}

    module.register_forward_pre_hook(change, with_kwargs=True)


def _after(module: nn.Module, point: Point, width: int = 0) -> None:
    """Lets a point see and change what a module returns, or the first part of it."""

    def change(_: nn.Module, given: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (_shaped(point, output[0], width), *output[1:])
        return _shaped(point, output, width)

    module.register_forward_hook(change)
