"""Tokens attend to themselves and to the one before; a matrix of the code then moves the digits, as if in a sum."""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


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
        x = self.values[ids]
        places = torch.arange(ids.shape[1])
        apart = places[:, None] - places[None, :]
        ahead = apart < 0
        _, hundred, step, tenth = self.scale
        scores = self.distances[10] * (apart == 0)
        weights = torch.softmax(scores.masked_fill((apart != 0) & (apart != 1), -math.inf), -1)
        wires = torch.exp(self.distances)[apart.clamp(min=0)] * ~ahead
        own = weights.diagonal() * x[0]
        x = 1.1 * (wires @ own)[None] - x
        x = x - hundred * torch.sigmoid((x - step) * 20)
        return torch.cat([-((tenth * x[..., None] - self.values[:10]) ** 2), torch.full((*x.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
