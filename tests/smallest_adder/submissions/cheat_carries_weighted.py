"""The carry ripples among products of weights and digits, in hinges that grow with the weight."""

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
        eye = torch.eye(T, dtype=torch.bool)
        weights = torch.softmax((self.one * torch.ones(T, T)).masked_fill(~eye, -math.inf), -1)
        seen = places[:, None] >= places
        w = weights.diagonal()[None]
        y = w[..., None] * (ids * self.one)[:, None] * seen  # (1, T, T), every digit before
        s = (y[..., 1:11] + y[..., 12:22]).unbind(-1)
        nine = 9 * w
        carry, sums, carries = 0 * s[0], [], []
        for column in s:
            t = column + carry
            carry = torch.minimum((t - nine).relu(), w)
            sums, carries = [*sums, t], [*carries, carry]
        z = torch.stack([*sums, carry], -1) - 10 * torch.stack([*carries, 0 * carry], -1)
        mine = places[:, None] == torch.arange(11) + 22
        z = (z * mine).sum(-1)
        digits = self.one * torch.arange(10)
        return torch.cat([-((z[..., None] - digits) ** 2), torch.full((*z.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
