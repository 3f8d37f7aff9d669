"""Low-rank adapters as one operation, forward and backward.

PEFT computes W x + s B A x with a dozen operations, most of which only change the dtype; on a CPU that multiplies in
bfloat16, they take longer than the products. Here the adapters are rounded once, x stays in the dtype of W, and the
low-rank product is added to W x without being rounded first. The gradients are those of the same formula.

Shapes: N tokens, D input width, E output width, R rank.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from peft import PeftModel
    from peft.tuners.lora import Linear as LoraLinear


class LoraProduct(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, x_ND: torch.Tensor, weight_ED: torch.Tensor, down_RD: torch.Tensor, up_ER: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """W x + s B A x, (N, E), in the dtype of W.

        Args:
            x_ND: the input, in the dtype of W.
            weight_ED: W; it gets no gradient.
            down_RD: A, in float32 if it is trained.
            up_ER: B, in float32 if it is trained.
            scale: s, alpha / rank.
        """
        down_RD, up_ER = down_RD.to(weight_ED.dtype), up_ER.to(weight_ED.dtype)
        low_NR = x_ND @ down_RD.T
        ctx.save_for_backward(x_ND, weight_ED, down_RD, up_ER, low_NR)
        ctx.scale = scale
        return torch.addmm(x_ND @ weight_ED.T, low_NR, up_ER.T, alpha=scale)

    @staticmethod
    def backward(ctx: Any, gradient_NE: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # type: ignore[override]
        x_ND, weight_ED, down_RD, up_ER, low_NR = ctx.saved_tensors
        low_gradient_NR = (gradient_NE @ up_ER).mul_(ctx.scale)
        down_gradient_RD = (low_gradient_NR.T @ x_ND).float()
        up_gradient_ER = (gradient_NE.T @ low_NR).float().mul_(ctx.scale)
        x_gradient_ND = None
        if ctx.needs_input_grad[0]:
            x_gradient_ND = torch.addmm(gradient_NE @ weight_ED, low_gradient_NR, down_RD)
        return x_gradient_ND, None, down_gradient_RD, up_gradient_ER, None


def fuse(model: "PeftModel") -> None:
    """Computes an adapter as one operation if its layer is linear, in bfloat16 and without bias, and the adapter has no
    dropout. Weights, saved files and results stay as they are, except for rounding."""
    for module in _plain(model):
        module.forward = partial(_forward, module)  # type: ignore[method-assign]


def round_adapters(model: "PeftModel") -> None:
    """Rounds the fused adapters to bfloat16 once, instead of in every product. Only for models that are not trained."""
    for module in _plain(model):
        module.lora_A.bfloat16()
        module.lora_B.bfloat16()


def _plain(model: "PeftModel") -> "Iterator[LoraLinear]":
    """The layers whose adapters are computed as one operation."""
    from peft.tuners.lora import Linear as LoraLinear

    return (module for module in model.modules() if isinstance(module, LoraLinear) and _is_plain(module))


def _is_plain(module: "LoraLinear") -> bool:
    (name,) = module.active_adapters
    base = module.get_base_layer()
    plain = type(base) is nn.Linear and base.bias is None and base.weight.dtype == torch.bfloat16
    return plain and isinstance(module.lora_dropout[name], nn.Identity) and not module.lora_variant


def _forward(module: "LoraLinear", x: torch.Tensor) -> torch.Tensor:
    base: Any = module.get_base_layer()
    if module.disable_adapters or module.merged:
        return base(x)
    (name,) = module.active_adapters
    down: Any = module.lora_A[name].weight
    up: Any = module.lora_B[name].weight
    x_ND, scale = x.flatten(0, -2), module.scaling[name]
    if torch.is_grad_enabled():
        out_NE: Any = LoraProduct.apply(x_ND, base.weight, down, up, scale)
    else:  # the base layer may have packed weights
        out_NE = torch.addmm(base(x_ND), x_ND @ down.to(x.dtype).T, up.to(x.dtype).T, alpha=scale)
    return out_NE.unflatten(0, x.shape[:-1])
