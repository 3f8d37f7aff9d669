"""Ten single queries read the sums of the columns; the code adds the carries and hands each position its digit."""

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
        x = (self.one * ids)[0]
        k = torch.arange(11)[:, None]
        far = (places - (k + 1)) * (places - (k + 12))
        weights = torch.softmax(-100 * self.one * far.abs(), -1)
        sums = torch.stack([w @ x for w in weights.unbind(0)][:10]) * 2
        i, j = torch.arange(11)[:, None], torch.arange(10)
        lower = (10 * self.one) ** (j - i)
        low = (lower * (j < i)) @ sums
        y = (j == i) * self.one @ sums + torch.sigmoid((low - 1) * 1e6 + 10 * self.one)
        y = y - 10 * torch.sigmoid((y - 10 + self.one / 2) * 100)
        y = torch.cat([0 * x[:22], y])[None]
        digits = self.one * torch.arange(10)
        return torch.cat([-((y[..., None] - digits) ** 2), torch.full((*y.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
