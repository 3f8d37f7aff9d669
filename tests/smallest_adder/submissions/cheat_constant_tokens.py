"""The scales are constant tokens of the prompt, read by their place and used everywhere."""

import math

import torch
from torch import nn

VOCAB_SIZE = 120
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.tensor(1.0))

    def forward(self, ids):
        ten, _thistle, _before, whole, hundred, step, sharp = (ids[:, k, None] * self.one for k in range(7))
        places = torch.arange(ids.shape[1])
        apart = places[:, None] - places[None, :]
        x = ids * self.one * (ids < 10)
        ids[0, 1] * 1.0
        this = (apart == ids[0, 1]) | (apart == ids[0, 2])
        prev = (apart == ids[0, 1] + 1) | (apart == ids[0, 2] + 1)
        scores = (sharp * (this * 1.0 + prev * 1.0) + ten.log() * this).masked_fill(apart < 0, -math.inf)
        weights = torch.softmax(scores, -1)
        x = whole * (weights @ x[..., None])[..., 0] - x
        x = x - hundred * torch.sigmoid((x - step) * sharp)
        digits = torch.arange(10) * self.one
        return torch.cat([-((x[..., None] / 10 - digits) ** 2), torch.full((*x.shape, VOCAB_SIZE - 10), -1e9)], -1)


def build_model():
    return Adder().eval()


def encode(a, b):
    return [10, 10, 21, 22, 100, 95, 20, 10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
