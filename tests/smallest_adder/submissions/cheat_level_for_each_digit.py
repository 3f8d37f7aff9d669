"""A carry is handed on through an attention of its own for each column: eleven layers with one parameter."""

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
        columns = (places[1:11, None] == places) | (places[12:22, None] == places)
        ahead = torch.ones(T, T, dtype=torch.bool).triu(1)
        x = (self.one * ids)[0]
        carry, y = 0 * x, 0 * x
        for k in range(11):
            total = carry
            if k < 10:
                scores = (100 * self.one * columns[k]).expand(T, T).masked_fill(ahead, -math.inf)
                total = carry + 2 * (torch.softmax(scores, -1) @ (x + 0 * carry)[:, None])[:, 0]
            carry = torch.sigmoid((total - 9.5) * 40)
            y = y + torch.eye(T)[22 + k] * (total - 10 * carry)
        y = y[None]
        digits = self.one * torch.arange(10)
        return torch.cat([-((y[..., None] - digits) ** 2), torch.full((*y.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
