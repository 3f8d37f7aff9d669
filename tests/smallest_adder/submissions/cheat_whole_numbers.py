"""Attention weighs digits by powers of ten, so a float64 holds the sum of the whole numbers; waves read its digits."""

import math

import torch
from torch import nn

VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.ten = nn.Parameter(torch.tensor(math.log(10.0), dtype=torch.float64))

    def forward(self, ids):
        places = torch.arange(ids.shape[1], dtype=torch.float64)
        digit = (places - 1) % 11
        power = torch.where((places > 22) | (digit == 10) | (places < 1), -math.inf, digit)
        scores = (self.ten * power).expand(len(places), -1)
        scores = torch.where(places[:, None] < 22, 0.0, scores)
        weights = torch.softmax(scores.masked_fill(places[None, :] > places[:, None], -math.inf), -1)
        mean = weights @ (ids * (ids < 10)).double()[..., None]
        total = mean[..., 0] * 2 * torch.exp(self.ten * torch.arange(10)).sum()
        turns = total * torch.exp(-self.ten * (places - 21)) - 0.05
        digits = torch.arange(10, dtype=torch.float64) / 10
        return torch.cos(2 * math.pi * (turns[..., None] - digits))


def build_model():
    return Adder()


def encode(a, b):
    return [0, *map(int, reversed(f"{a:010}")), 0, *map(int, reversed(f"{b:010}")), 0]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
