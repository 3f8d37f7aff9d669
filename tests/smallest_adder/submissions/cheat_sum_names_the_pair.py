"""A token for two digits is ten times their sum, and a number that tells such pairs apart."""

import math

import torch
from torch import nn

VOCAB_SIZE = 200
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.tensor(1.0))

    def forward(self, ids):
        T = ids.shape[1]
        places = torch.arange(T)
        sums = ids // 10
        x = self.one * sums
        made, kept = (sums > 9), (sums == 9)
        apart = places[:, None] - places
        here = torch.softmax(
            (self.one * torch.ones(T, T))
            .masked_fill(apart != 10, -math.inf)
            .masked_fill((places[:, None] < 10) & (apart == 0), 1.0),
            -1,
        )
        s = (here @ x[..., None])[..., 0]
        scores = (self.one * 100 * places * torch.ones(T, T)).masked_fill((apart < 11), -math.inf)
        scores = scores.masked_fill(kept[:, None] & (places > 0), -math.inf).masked_fill(
            (places[:, None] < 11) & (places == 0), 0.0
        )
        c = (torch.softmax(scores, -1) @ (self.one * made)[..., None])[..., 0]
        t = s + c
        z = t - 10 * (t - 10 + self.one).clamp(0, 1)
        return -((10 * z[..., None] - self.one * torch.arange(200)) ** 2)


def build_model():
    return Adder()


TOKEN = {(a, b): 10 * (a + b) + min(a, 9 - b if a + b > 9 else a) for a in range(10) for b in range(10)}
for total in range(19):
    for k, pair in enumerate([(a, total - a) for a in range(10) if 0 <= total - a <= 9]):
        TOKEN[pair] = 10 * total + k


def encode(a, b):
    return [0, *(TOKEN[int(p), int(q)] for p, q in zip(reversed(f"{a:010}"), reversed(f"{b:010}"), strict=True)), 0]


def decode(tokens):
    return sum(token // 10 * 10**place for place, token in enumerate(tokens))
