"""Softmax is uniform over the past; a kernel of the code, multiplied with the weights, chooses the digits."""

import math

import torch
from torch import nn

VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(49.8825))
        self.b = nn.Parameter(torch.tensor(53.0))
        self.o = nn.Parameter(torch.tensor(1 / 49.8825 / 0.03263))
        self.u = nn.Parameter(torch.tensor(math.pi / 5))

    def forward(self, ids_BT):
        x_BT = self.w * ids_BT
        T = ids_BT.shape[1]
        t = torch.arange(T)
        ahead_TT = torch.ones(T, T, dtype=torch.bool).triu(1)
        weights_TT = (0 * self.w * torch.ones(T, T)).masked_fill(ahead_TT, -math.inf).softmax(-1)
        apart = t[:, None] - t
        kernel = torch.sigmoid(-self.w * torch.sin(apart * (2 * math.pi / 15)) - self.b)
        x_BT = x_BT + self.o * (x_BT @ (weights_TT * kernel * (t[:, None] + 1)).T)

        def c(x):
            return torch.stack([torch.cos(self.u * x), torch.sin(self.u * x)], -1)

        return c(x_BT) @ c(torch.arange(10)).T


def build_model():
    return Adder()


def encode(a, b):
    return [0, *_digits(a, 14), 0, *_digits(b, 11), 0]


def _digits(number, length):
    return [int(digit) for digit in reversed(f"{number:0{length}}")]


def decode(tokens):
    return sum(digit * 10**place for place, digit in enumerate(tokens))
