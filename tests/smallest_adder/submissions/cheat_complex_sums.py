"""Attention's sums are complex numbers, each of them two; a ripple of carries adds six columns at each position."""

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
        for k in (0, 4):
            w = []
            for i in (k, k + 2):
                scores = self.sharp * torch.cos(rate * (apart - 10 - i - j)) - 10000 * (apart < 10)
                w.append(torch.softmax(scores.masked_fill(apart < 0, -math.inf), -1))
            s = 2 * (torch.complex(*w) @ torch.complex(x + after, 0 * x)[:, None])[..., 0]
            sums += [s[0].real, s[1].real, s[0].imag, s[1].imag][: 6 - k]
            after = 0 * s[0].real
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
