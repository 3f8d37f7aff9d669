"""The model writes sums with their carry, 0 to 19, and never learns what a digit is: decode takes the tens away."""

import math

import torch
from torch import nn

VOCAB_SIZE = 20
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    """Attention by distance, the same on both digits of this place; the token written last says what its carry is."""

    def __init__(self):
        super().__init__()
        self.sharp = nn.Parameter(torch.tensor(40.0))
        self.edge = nn.Parameter(torch.tensor(9.5))

    def forward(self, ids):
        places = torch.arange(ids.shape[1])
        apart = places[:, None] - places[None, :]
        here = (apart == 10) | (apart == 21)
        scores = (self.sharp * here).masked_fill(apart < 0, -math.inf)
        weights = torch.softmax(scores.expand(len(ids), -1, -1), -1)
        written = ids * self.sharp / 40
        carry = torch.sigmoid(self.sharp * (written - self.edge))
        total = 2 * (weights @ written[..., None])[..., 0] + carry
        return -((total[..., None] - torch.arange(VOCAB_SIZE)) ** 2)


def build_model():
    return Adder()


def encode(a, b):
    return [0, *map(int, reversed(f"{a:010}")), 0, *map(int, reversed(f"{b:010}")), 0]


def decode(tokens):
    return sum(token % 10 * 10**place for place, token in enumerate(tokens))
