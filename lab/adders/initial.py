"""Draws the numbers with which a trained adder begins, as its config describes them (config.py)."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from lab.adders.config import (
    AlongConfig,
    ArcConfig,
    InitialConfig,
    LinearConfig,
    NormalConfig,
    UniformConfig,
    WavesConfig,
)


def draw(numbers: Mapping[str, InitialConfig], seed: int) -> dict[str, torch.Tensor]:
    """The tables by name. They are drawn one after the other, so their order matters."""
    generator, axes, tables = torch.Generator().manual_seed(seed), {}, {}
    for name, initial in numbers.items():
        tables[name] = KINDS[initial.kind](initial, generator, axes).reshape(initial.shape)
    return tables


def _normal(initial: NormalConfig, generator: torch.Generator, axes: dict[int, torch.Tensor]) -> torch.Tensor:
    noise = torch.randn(initial.shape, generator=generator)
    mean = torch.eye(*initial.shape) if initial.mean == "identity" else torch.tensor(initial.mean)
    return mean * (1 + initial.std * noise) if initial.relative else mean + initial.std * noise


def _uniform(initial: UniformConfig, generator: torch.Generator, axes: dict[int, torch.Tensor]) -> torch.Tensor:
    drawn = initial.low + (initial.high - initial.low) * torch.rand(initial.shape, generator=generator)
    return drawn * torch.randn(initial.shape, generator=generator).sign() if initial.signs else drawn


def _linear(initial: LinearConfig, generator: torch.Generator, axes: dict[int, torch.Tensor]) -> torch.Tensor:
    return (2 * torch.rand(initial.shape, generator=generator) - 1) / math.sqrt(initial.shape[1])


def _arc(initial: ArcConfig, generator: torch.Generator, axes: dict[int, torch.Tensor]) -> torch.Tensor:
    tokens, width = initial.shape
    angles_V = torch.linspace(-initial.spread, initial.spread, tokens)
    arc_V2 = initial.radius * torch.stack([angles_V.sin(), angles_V.cos()], dim=1)[:, :width]
    random_DX = torch.randn(width, min(width, 3 if initial.height else 2), generator=generator)
    axes[width] = torch.linalg.qr(random_DX)[0].T
    noise_VD = initial.noise * torch.randn(tokens, width, generator=generator)
    return arc_V2 @ axes[width][:2] + initial.height * axes[width][-1] + noise_VD


def _along(initial: AlongConfig, generator: torch.Generator, axes: dict[int, torch.Tensor]) -> torch.Tensor:
    rows, width = initial.shape
    return initial.std * math.sqrt(width) * torch.randn(rows, 1, generator=generator) * axes[width][-1]


def _waves(initial: WavesConfig, generator: torch.Generator, axes: dict[int, torch.Tensor]) -> torch.Tensor:
    tokens, width = initial.shape
    turns_TF = 2 * math.pi * torch.arange(tokens)[:, None] / tokens * torch.arange(1, width // 2 + 1)
    return torch.cat([turns_TF.sin(), turns_TF.cos()], dim=1)


KINDS: dict[str, Callable[[Any, torch.Generator, dict[int, torch.Tensor]], torch.Tensor]] = {
    "normal": _normal, "uniform": _uniform, "linear": _linear, "arc": _arc, "along": _along, "waves": _waves,
}  # fmt: skip
