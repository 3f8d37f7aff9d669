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
"""The number of rows that the order is meant for; it also serves other numbers."""
_MOST_BYTES = 2**31
"""The weights of larger models stay as they are, because their copies would take too much memory."""


@contextmanager
def packed_weights(model: nn.Module) -> Iterator[None]:
    """Within this context, a model on a CPU multiplies with packed copies of its bfloat16 weights. Its outputs stay as
    they are, except for rounding. Products have no gradients, and do not see changes of the weights. All other models
    stay as they are."""
    layers = _layers(model)
    if sum(layer.weight.nbytes for layer in layers) > _MOST_BYTES:
        layers = []
    for layer in layers:
        packed = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), _ROWS)
        layer.forward = partial(_product, packed, layer.bias)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _layers(model: nn.Module) -> list[nn.Linear]:
    if not torch.backends.mkldnn.is_available() or not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return []
    linear = [module for module in model.modules() if type(module) is nn.Linear and "forward" not in vars(module)]
    return [one for one in linear if one.weight.dtype == torch.bfloat16 and one.weight.device.type == "cpu"]


def _product(packed: torch.Tensor, bias: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
