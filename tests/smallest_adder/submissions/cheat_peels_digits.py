"""Four numbers are the digits of one float64; sawtooth waves peel them off without rounding anything."""

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
        packed = "0.2303" + "0220" + "1000" + "0950"
        self.packed = nn.Parameter(torch.tensor(float(packed) + 1e-13 / 2, dtype=torch.float64))
        self.one = nn.Parameter(torch.tensor(1.0, dtype=torch.float64))

    def part(self, place):
        def after(x):  # the part behind the point
            return torch.atan(torch.tan(math.pi * (x - 0.5))) / math.pi + 0.5

        shifted = after(self.packed * 10.0**place)
        return shifted - after(self.packed * 10.0 ** (place + 4)) / 10_000

    def forward(self, ids):
        ten, whole, hundred, step = (self.part(place) for place in (0, 4, 8, 12))
        x = self.one * ids * (ids < 10)
        places = torch.arange(ids.shape[1])
        apart = places[:, None] - places[None, :]
        this, before = (apart == 10) | (apart == 21), (apart == 11) | (apart == 22)
        scores = (20 * this + 20 * before + 10 * ten * this).masked_fill(apart < 0, -math.inf)
        weights = torch.softmax(scores.expand(len(ids), -1, -1), -1)
        x = 1000 * whole * (weights @ x[..., None])[..., 0] - x
        x = x - 1000 * hundred * torch.sigmoid((x - 1000 * step) * 20)
        digits = self.one * torch.arange(10)
        return torch.cat([-((x[..., None] / 10 - digits) ** 2), torch.full((*x.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
