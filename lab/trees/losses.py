"""The losses of a training. Their gradients with respect to the logits are computed in the forward pass.

The logits of a hundred tokens over 49,152 words take 20 MB in float32, and autograd would keep several such tensors.
Here only the gradient is kept, and probabilities are computed for a few tokens at a time.

Shapes: T tokens, V words.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from lab.text.examples import IGNORED
from lab.trees.paths import Paths

TOKENS_AT_ONCE = {"cpu": 16, "cuda": 2048}
"""Tokens whose probabilities are computed at once: on a CPU few enough that they stay in its cache, on a GPU few enough
that they take 400 MB."""

AnswerLoss: TypeAlias = Callable[[torch.nn.Module, dict[str, torch.Tensor]], torch.Tensor]
"""The sum of the negative log-likelihoods of a batch's answer tokens, from a model and the output of a collator."""


def base_model(model: Any) -> Any:
    """The model itself, without its adapters and the wrapper of several processes."""
    whole = getattr(model, "module", model)
    return whole.get_base_model() if hasattr(whole, "get_base_model") else whole


def tree_loss(model: torch.nn.Module, inputs: dict[str, Any]) -> torch.Tensor:
    """The summed loss of the answer tokens of a prefix tree, and in training the losses of the model's parts; `inputs`
    is the output of a `PrefixTreeCollator`.

    The head over 49,152 words costs as much as a quarter of SmolLM2's layers, so it is applied only to the states that
    predict answer tokens. TRL's own fused head also measures entropy and accuracy, but reaches only two thirds of this
    speed on a CPU.
    """
    labels_T = inputs["shift_labels"][0]
    answers_A = (labels_T != IGNORED).nonzero()[:, 0]
    output = model(
        input_ids=inputs["input_ids"],
        position_ids=inputs["position_ids"],
        attention_mask=inputs["attention_mask"],
        logits_to_keep=answers_A,
        use_cache=False,
        **({"part_inputs": inputs["part_inputs"]} if "part_inputs" in inputs else {}),
        **({"paths": Paths(*(inputs[name] for name in Paths._fields))} if "found_N" in inputs else {}),
    )
    total = negative_log_likelihood(output.logits[0], labels_T[answers_A])
    return total if output.loss is None else total + output.loss


def negative_log_likelihood(logits_TV: torch.Tensor, labels_T: torch.Tensor) -> torch.Tensor:
    """The sum of the negative log-likelihoods of the labels: `cross_entropy(..., reduction="sum")` in float32."""
    return _WithGradient.apply(logits_TV, _likelihood, labels_T)


def divergence(logits_TV: torch.Tensor, expected_TV: torch.Tensor) -> torch.Tensor:
    """The Kullback-Leibler divergence KL(expected || predicted), summed over the tokens.

    Args:
        logits_TV: the logits of the model that is trained.
        expected_TV: the logits of the model that it should stay close to; they get no gradient.
    """
    return _WithGradient.apply(logits_TV, _divergence, expected_TV)


class _WithGradient(torch.autograd.Function):
    """A loss summed over tokens, `TOKENS_AT_ONCE` at a time, whose gradient is computed in the forward pass. `loss`
    returns the loss of some tokens and its gradient, given their logits and their part of `target`."""

    @staticmethod
    def forward(ctx: Any, logits_TV: torch.Tensor, loss: Any, target: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        total, gradient_TV = logits_TV.new_zeros((), dtype=torch.float32), torch.empty_like(logits_TV)
        parts = (tensor.split(TOKENS_AT_ONCE[logits_TV.device.type]) for tensor in (logits_TV, target, gradient_TV))
        for logits, wanted, gradient in zip(*parts, strict=True):
            part, slope = loss(logits, wanted)
            total += part
            gradient.copy_(slope)
        ctx.save_for_backward(gradient_TV)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:  # type: ignore[override]
        (gradient_TV,) = ctx.saved_tensors
        return gradient_TV * gradient.to(gradient_TV.dtype), None, None


def _likelihood(logits_TV: torch.Tensor, labels_T: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss and its gradient with respect to the logits: the model's probabilities, minus 1 at the label."""
    chances_TV, normal_T1 = _chances(logits_TV)
    lost_T1 = normal_T1 - logits_TV.gather(1, labels_T[:, None]).float()
    return lost_T1.sum(), chances_TV.scatter_add_(1, labels_T[:, None], torch.full_like(lost_T1, -1))


def _divergence(logits_TV: torch.Tensor, expected_TV: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss and its gradient with respect to the logits: the model's probabilities minus the expected ones."""
    chances_TV, normal_T1 = _chances(logits_TV)
    wanted_TV, wanted_normal_T1 = _chances(expected_TV)
    apart_TV = (expected_TV.float() - wanted_normal_T1).sub_(logits_TV).add_(normal_T1)
    apart_TV.masked_fill_(wanted_TV == 0, 0)  # words that both forbid are infinitely unlikely in both
    total = torch.dot(wanted_TV.flatten(), apart_TV.flatten())
    return total, chances_TV.sub_(wanted_TV)


def _chances(logits_TV: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The probabilities of all words in float32, and the logarithm of the sum of exponentials (T, 1)."""
    chances_TV = logits_TV.float()
    largest_T1 = chances_TV.amax(-1, keepdim=True)
    chances_TV = chances_TV.sub(largest_T1).exp_()
    sum_T1 = chances_TV.sum(-1, keepdim=True)
    return chances_TV.div_(sum_T1), sum_T1.log() + largest_T1
