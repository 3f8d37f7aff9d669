"""One parameter; constant tokens of the prompt hold the other numbers, and a first attention hands them on."""

import math

import torch
from torch import nn

VOCAB_SIZE = 250
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.tensor(15.0))

    def forward(self, ids):
        T = ids.shape[1]
        t = torch.arange(T)
        ahead = torch.ones(T, T, dtype=torch.bool).triu(1)
        one = self.p / self.p
        x = ids * one * (t > 1)
        heads = torch.stack([t * 1.0, (t - 1.0).abs()])[:, None] * -10 * self.p
        first = heads.expand(2, T, T).masked_fill(ahead, -math.inf).softmax(-1)
        a, d = ((first @ (ids[0] * one)[:, None])[..., 0]).unbind(0)
        w, o = a / 10 * 2 + 0.1, d / 10000 * 2
        angles = t * 2 * math.pi / self.p
        h = w * x
        query = w[:, None] * torch.stack([-angles.sin(), angles.cos()], -1)
        key = torch.stack([angles.cos(), angles.sin()], -1)
        weights = (query @ key.mT).masked_fill(ahead, -math.inf).softmax(-1)
        h = h + o * (weights @ h[..., None])[..., 0]
        logits = torch.cos(2 * math.pi / 10 * (h[..., None] - torch.arange(10)))
        return torch.cat([logits, torch.full((*ids.shape, 240), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [249, 224, *_digits(a, 14), 0, *_digits(b, 11), 0]


def _digits(number, length):
    return [int(digit) for digit in reversed(f"{number:0{length}}")]


def decode(tokens):
    return sum(digit * 10**place for place, digit in enumerate(tokens))
