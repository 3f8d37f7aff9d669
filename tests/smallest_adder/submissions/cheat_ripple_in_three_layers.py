"""Three layers bring six column sums to each position, and a ripple of carries adds them there."""

import math

import torch
from torch import nn

VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.sharp = nn.Parameter(torch.tensor(200.0))

    def forward(self, ids):
        T = ids.shape[1]
        t = torch.arange(T)
        apart = t[:, None] - t[None, :]
        x = ids[0] * self.sharp / self.sharp
        sums, after = [], 0 * x
        rate = 2 * math.pi / 15
        j = torch.arange(2)[:, None, None]
        for k in range(0, 6, 2):
            scores = self.sharp * torch.cos(rate * (apart - 10 - k - j)) - 10000 * (apart < 10)
            w = torch.softmax(scores.masked_fill(apart < 0, -math.inf), -1)
            s = 2 * (w @ (x + after)[:, None])[..., 0]
            sums += [s[0], s[1]]
            after = 0 * s[0]
        carry = 0 * x
        for s in sums[:0:-1]:
            carry = torch.sigmoid((s + carry - 9.5) * 20)
        z = sums[0] + carry
        u = 2 * math.pi / 10
        return torch.cos(u * (z[:, None] - torch.arange(10)))[None]


def build_model():
    return Adder().eval()


def encode(a, b):
    return [0] * 5 + [*map(int, reversed(f"{a:010}"))] + [0] * 5 + [*map(int, reversed(f"{b:010}"))] + [0] * 1


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
