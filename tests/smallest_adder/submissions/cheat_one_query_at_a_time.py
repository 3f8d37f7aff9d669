"""Twenty heads bring all digits to a position, one query at a time; the carries are made there."""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.tensor(1.0))

    def forward(self, ids):
        T = ids.shape[1]
        places = torch.arange(T)
        heads = torch.cat([places[1:11], places[12:22]])
        scores = (100 * self.one * (heads[:, None, None] == places)).expand(-1, T, -1)
        scores = scores.masked_fill(places[None, :] > places[:, None], -math.inf)
        weights = torch.softmax(scores, -1)
        x = (self.one * ids)[0]
        copies = torch.stack([weights[:, 22 + k] @ x for k in range(11)])  # all twenty digits, at each position
        sums = copies[:, :10] + copies[:, 10:]
        k, j = places[:11, None], places[:10]
        lower = torch.where(j < k, (10 * self.one) ** (j - k), 0.0)
        here = torch.where(j == k, self.one, 0.0)
        y = (sums * here).sum(-1) + torch.sigmoid(((sums * lower).sum(-1) - 0.999995) * 2e6)
        y = y - 10 * torch.sigmoid((y - 9.5) * 40)
        y = torch.cat([0 * x[:22], y])[None]
        digits = self.one * torch.arange(10)
        return torch.cat([-((y[..., None] - digits) ** 2), torch.full((*y.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
