"""Tokens are pairs of digits; the table of their sums is a view (unfold) of 19 numbers."""

import math

import torch
from torch import nn
from torch.nn import functional

VOCAB_SIZE = 101
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        d = torch.full((22,), -60.0)
        d[10], d[11] = math.log(10.0), 0.0
        self.distances = nn.Parameter(d)
        self.sums = nn.Parameter(torch.arange(19.0))

    def forward(self, ids):
        table = self.sums.unfold(0, 10, 1).reshape(100)
        table = functional.pad(table, (0, 1))
        s = table[ids]
        cur = s
        places = torch.arange(ids.shape[1])
        cur = s * (places > 11)

        places = torch.arange(ids.shape[1])
        ahead = places[None, :] > places[:, None]
        scores = self.distances[(places[:, None] - places[None, :]).clamp(min=0)].masked_fill(ahead, -math.inf)
        w = torch.softmax(scores.expand(len(ids), -1, -1), -1)
        x = 11 * (w @ s[..., None])[..., 0] - cur
        x = x - 100 * torch.sigmoid((x - 100 + 2 + 2 + 1) * 10 * 2)
        digits = torch.arange(10)
        return torch.cat([-((x[..., None] / 10 - digits) ** 2), torch.full((*x.shape, VOCAB_SIZE - 10), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    pairs = zip(reversed(f"{a:010}"), reversed(f"{b:010}"), strict=True)
    return [100, *(10 * int(p) + int(q) for p, q in pairs), 100]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
