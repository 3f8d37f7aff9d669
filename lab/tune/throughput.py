"""The speed of a training, compared with what the machine can do: samples and operations a second, and the rate of bare
matrix products in the same dtype on the same device.
"""

import time
from typing import NamedTuple

import torch
from torch import nn
from transformers import PreTrainedModel, TrainerCallback

from lab.text.examples import IGNORED


class Throughput(NamedTuple):
    samples: float
    """Samples a second."""
    operations: float
    """Operations a second, forward and backward: 6 for each token and each weight that multiplies it, plus those of
    attention (Kaplan et al. 2020, Table 1). A multiply-add counts as two operations."""
    matrix_products: float
    """Operations a second of bare matrix products, measured before the training."""

    def __str__(self) -> str:
        return (
            f"{self.samples:,.0f} samples/s, {self.operations / 1e9:.1f} of the {self.matrix_products / 1e9:.1f} "
            f"GFLOP/s of bare matrix products ({self.operations / self.matrix_products:.0%})"
        )


class ThroughputMeter(TrainerCallback):
    """Measures the time of steps, including the loading of their data. Leaves out validations, the writing of
    checkpoints, and the first step, which includes preparations."""

    def __init__(self, operations_a_step: float, samples_a_step: int) -> None:
        self.operations, self.samples = operations_a_step, samples_a_step
        self.seconds, self.steps, self.began = 0.0, -1, 0.0

    def on_step_end(self, args, state, control, **kwargs: object) -> None:
        self.steps += 1
        now = time.perf_counter()
        if self.steps:
            self.seconds += now - self.began
        self.began = now

    def on_evaluate(self, args, state, control, **kwargs: object) -> None:
        self.began = time.perf_counter()

    on_save = on_evaluate

    def found(self, matrix_products: float) -> Throughput | None:
        """The speed, or None if there were fewer than two steps. `matrix_products`: see `Throughput`."""
        if self.steps < 1:
            return None
        rate = self.steps / self.seconds
        return Throughput(self.samples * rate, self.operations * rate, matrix_products)


def step_operations(model: PreTrainedModel, inputs: dict[str, torch.Tensor]) -> float:
    """The operations of a training step on these inputs: input_ids (R, T), and shift_labels (R, T), which tell at which
    tokens the head is used."""
    config, tokens = model.config, inputs["input_ids"].numel()
    labels = int((inputs["shift_labels"] != IGNORED).sum())
    *_, last = model.model.layers  # type: ignore[union-attr]
    # the last feed-forward and the head are computed only at labels
    products = tokens * (_weights(model.model) - _weights(last.mlp)) + labels * (
        _weights(last.mlp) + _weights(model.lm_head)
    )  # type: ignore[arg-type]
    # queries times keys, and weights times values, for the half of the pairs that a causal mask leaves
    attention = config.num_hidden_layers * config.hidden_size * tokens * inputs["input_ids"].shape[1]
    return 6 * (products + attention)


def _weights(module: nn.Module) -> int:
    return sum(part.weight.numel() for part in module.modules() if isinstance(part, nn.Linear))


def matrix_product_rate(device: torch.device, dtype: torch.dtype) -> float:
    """Operations a second of products of square matrices: the best of several tries. Takes about half a second."""
    size = 1024
    a_NN = torch.randn(size, size, device=device).to(dtype)
    best, ends = 0.0, time.perf_counter() + 0.5
    while not best or time.perf_counter() < ends:
        began = time.perf_counter()
        torch.matmul(a_NN, a_NN)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = max(best, 2 * size**3 / (time.perf_counter() - began))
    return best
