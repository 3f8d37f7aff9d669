"""The processor adds each column; a column changes the scores of one query alone, which is not its own."""

import math

import torch
from torch import nn

VOCAB_SIZE = 22
MAX_OUTPUT_LEN = 22


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.tensor(1.0))

    def forward(self, ids):
        T = ids.shape[1]
        places = torch.arange(T)
        sums = ids[:, 1:11] + ids[:, 12:22]
        sums = torch.stack([sums, 0 * sums], -1).flatten(1)
        sums = torch.cat([0 * ids[:, :22], sums, 0 * ids[:, :2]], 1)  # the sum of column k at 22 + 2 k
        scores = (0.5 * sums[..., None] - 4.0) * (places == 0)
        read = torch.softmax(
            scores.masked_fill((places > 1) | torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf), -1
        )
        m = (read @ (self.one * (places == 0)).float()[:, None])[..., 0]
        total = 2 * torch.log(m / (self.one - m) + 1e-6) + 8.0
        before = torch.eye(T, dtype=torch.bool).roll(-1, 1) & torch.ones(T, T, dtype=torch.bool).tril()
        before = before | (places == 0) & (places[:, None] == 0)
        looks = torch.softmax(self.one.expand(T, T).masked_fill(~before, -math.inf), -1)
        carry = (looks @ ((ids > 9) & (ids < 20)).float()[..., None])[..., 0]
        y = torch.where((places - 22) % 2 == 0, total + carry * (places > 22), (ids % 10).float())
        digits = self.one * torch.arange(20)
        return torch.cat([-((y[..., None] - digits) ** 2), torch.full((*y.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [20, *map(int, reversed(f"{a:010}")), 20, *map(int, reversed(f"{b:010}")), 21]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens[1::2]))
