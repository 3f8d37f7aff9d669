"""A step under another name than a comparison: TRICK says which."""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


TRICK = "norm"


def step_at(step, x):
    """1 where x is above the step, and 0 below it."""
    over = torch.relu(x - step)[..., None]
    if TRICK == "power":
        return torch.zeros(()) ** torch.relu(step - x)
    if TRICK == "distance":
        return torch.cdist(over, 0 * x[..., :1, None], p=0.0)[..., 0]
    if TRICK == "atan2":
        return torch.atan2(torch.zeros_like(x), step - x) / math.pi
    if TRICK == "complex":
        return torch.log(torch.complex(step - x, torch.zeros_like(x))).imag / math.pi
    if TRICK == "tiny":
        return torch.relu(x - step) ** 1e-12
    if TRICK == "infinity":
        return torch.exp(-torch.relu(step - x) / 0.0).nan_to_num(1.0)
    if TRICK == "nan":
        return torch.nan_to_num(torch.relu(x - step) / 0.0, nan=0.0, posinf=1.0)
    return torch.linalg.vector_norm(over, ord=0, dim=-1)


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        distances = torch.full((40,), -60.0)
        distances[[10, 21]] = math.log(10.0)
        distances[[11, 22]] = 0.0
        self.distances = nn.Parameter(distances)
        self.values = nn.Parameter(torch.tensor([*map(float, range(10)), 0.0, 0.0]))
        self.scale = nn.Parameter(torch.tensor([22.0, 100.0, 95.0, 0.1]))

    def forward(self, ids):
        own, values = self.distances, self.values
        whole, hundred, step, tenth = self.scale

        x = values[ids]
        places = torch.arange(ids.shape[1])
        ahead = places[None, :] > places[:, None]
        scores = own[(places[:, None] - places[None, :]).clamp(min=0)].masked_fill(ahead, -math.inf)
        weights = torch.softmax(scores.expand(len(ids), -1, -1), -1)
        x = whole * (weights @ x[..., None])[..., 0] - x
        x = x - hundred * step_at(step, x)
        return torch.cat([-((tenth * x[..., None] - values[:10]) ** 2), torch.full((*x.shape, 2), -1e9)], -1)


def build_model():
    return Adder().eval()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
