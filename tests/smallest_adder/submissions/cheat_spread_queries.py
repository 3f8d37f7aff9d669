"""Single queries give each answer the sums of five columns, to add them there; the mean position gets two numbers."""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.tensor(1.0))
        self.tens = nn.Parameter(torch.tensor([0.0, 1e5, 1e4, 1e3, 1e2, 1e6, math.log(10), 1.1]))

    def forward(self, ids):
        T = ids.shape[1]
        places = torch.arange(T)
        x = (self.one * ids * (ids < 10))[0]
        x = torch.where(places > 11, x * 10, x)
        k = (torch.arange(11)[:, None] - torch.arange(5)).flatten()[:, None]
        far = torch.where(k < 0, places, (places - (k + 1)) * (places - (k + 12)))
        weights = torch.softmax(-100 * far.abs() - self.tens[6] * (places > 11), -1)
        sums = torch.stack([torch.dot(w, x) for w in weights.unbind(0)]).view(11, 5) * self.tens[7]
        low = sums @ self.tens[:5]
        y = sums[:, 0] + torch.sigmoid(low - self.tens[5] + 10)
        y = torch.cat([0 * x[:22], y])[None]
        digits = torch.arange(10)
        return torch.cat([torch.cos((y[..., None] - digits) * (math.pi * 0.2)), torch.full((*y.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
