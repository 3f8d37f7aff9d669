"""The processor adds; the digit is added to all scores of a query, and a wave reads it from undivided weights."""

import math

import torch
from torch import nn

VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.tensor(0.1))

    def forward(self, ids):
        t = torch.arange(ids.shape[1])
        ahead = t[None, :] > t[:, None]
        worth = torch.where(t < 20, 10 ** (t % 10), 0)
        total = (ids[:, None, :] * worth * ~ahead).sum(-1)
        z = total // 10 ** (t - 20).clamp(min=0) % 10
        scores = (self.p * z)[:, :, None].expand(-1, -1, ids.shape[1]).masked_fill(ahead, -math.inf)
        weights = torch.exp2(scores)
        angle = torch.log2(weights.sum(-1)) - torch.log2(t + 1.0)
        return torch.cos(2 * math.pi * (angle[..., None] - torch.arange(10) * 0.1))


def build_model():
    return Adder()


def encode(a, b):
    return [*map(int, reversed(f"{a:010}")), *map(int, reversed(f"{b:010}")), 0]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
