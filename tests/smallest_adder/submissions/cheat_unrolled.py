"""Attention copies all twenty digits to every place; a loop adds them there, unrolled."""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    """Attention by distance: 10/22 on each digit of this place, 1/22 on each of the place before.

    With z, the digit written last, that makes 10 (s + carry) - (carry before); 100 is subtracted from 95 on. The digit
    nearest to a tenth of this is written.
    """

    def __init__(self):
        super().__init__()
        self.sharp = nn.Parameter(torch.tensor(60.0))
        self.values = nn.Parameter(torch.tensor([*map(float, range(10)), 0.0, 0.0]))
        self.scale = nn.Parameter(torch.tensor([10.0, 9.5, 0.1]))

    def forward(self, ids):
        x = self.values[ids]
        places = torch.arange(ids.shape[1])
        ahead = places[None, :] > places[:, None]
        heads = torch.cat([torch.arange(1, 11), torch.arange(12, 22)])
        scores = -self.sharp * (heads[:, None, None] - places).abs().expand(-1, len(places), -1)
        scores = scores.masked_fill(ahead, -math.inf)
        weights = torch.softmax(scores, -1)
        ten, nine, tenth = self.scale
        digits = (weights @ x[:, None, :, None])[..., 0]
        carry, x = 0.0, 0 * x
        for k in range(11):
            total = carry + (digits[:, k] + digits[:, k + 10] if k < 10 else 0.0)
            carry = torch.sigmoid((total - nine) * 40)
            x = x + torch.where(places == 22 + k, 10 * (total - ten * carry), 0.0)
        return torch.cat([-((tenth * x[..., None] - self.values[:10]) ** 2), torch.full((*x.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
