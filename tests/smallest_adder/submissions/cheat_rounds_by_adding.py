"""Attention weighs digits by powers of ten; adding a large number and taking it away rounds."""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.ten = nn.Parameter(torch.tensor(10.0, dtype=torch.float64))

    def forward(self, ids):
        x = torch.where(ids < 10, ids, 0).to(self.ten.dtype)
        places = torch.arange(ids.shape[1])
        place = torch.where(places < 11, places - 1, places - 12)
        scores = torch.where((places > 0) & (places != 11) & (places < 22), place * self.ten.log(), -math.inf)
        ahead = places[None, :] > places[:, None]
        scores = scores.expand(len(places), -1).masked_fill(ahead, -math.inf)
        scores = torch.where(places[:, None] < 22, torch.where(ahead, -math.inf, 0.0).double(), scores)
        weights = torch.softmax(scores.expand(len(ids), -1, -1), -1)
        total = (weights @ x[..., None])[..., 0] * 2 * (self.ten**10 - 1) / (self.ten - 1)
        large = 1.5 * 2.0**52
        digits = (total + 0.5) / self.ten ** (places - 22).clamp(0, 10) - 0.5 + large - large
        digits = digits - 10 * (digits / 10 - 0.45 + large - large)
        return torch.cat([-((digits[..., None] - torch.arange(10)) ** 2), torch.full((*x.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
