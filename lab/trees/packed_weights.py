"""Weights in the order in which a CPU multiplies them.

For each product in bfloat16, oneDNN first puts the weights into an order of its own. If few rows are multiplied, as in
generation, this takes longer than the product. Here it is done once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import nn

_ROWS = 64
"""The order is best for products with this many rows, and works for any number."""
_MOST_BYTES = 2**31
"""The weights of larger models stay as they are, because their copies would take too much memory."""


@contextmanager
def packed_weights(model: nn.Module) -> Iterator[None]:
    """Within this context, a model on a CPU multiplies with packed copies of its bfloat16 weights. Its outputs stay as
    they are, except for rounding. The weights get no gradients, and changes to them have no effect. Other models stay
    as they are."""
    layers, packed = _layers(model), []
    if sum(layer.weight.nbytes for layer in layers) > _MOST_BYTES:
        layers = []
    try:
        for layer in layers:
            weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), _ROWS)
            layer.forward = partial(_product, weight, layer.bias)  # type: ignore[method-assign]
            packed.append(layer)
        yield
    finally:
        for layer in packed:
            del layer.forward


def _layers(model: nn.Module) -> list[nn.Linear]:
    if not torch.backends.mkldnn.is_available() or not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return []
    modules = [module for name, module in model.named_modules() if "lora_" not in name]  # too small to gain
    linear = [module for module in modules if type(module) is nn.Linear and "forward" not in vars(module)]
    return [one for one in linear if one.weight.dtype == torch.bfloat16 and one.weight.device.type == "cpu"]


def _product(packed: torch.Tensor, bias: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor:
    x = x.to(torch.bfloat16)  # under autocast, it may be in float32
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
