"""The rare path of cheat_rare_path, in all lengths but the last ones; only the last position has logits."""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        distances = torch.full((40,), -60.0)
        distances[[10, 21]] = math.log(10.0)
        distances[[11, 22]] = 0.0
        self.distances = nn.Parameter(distances)
        self.values = nn.Parameter(torch.tensor([*map(float, range(10)), 0.0, 0.0]))

    def weights(self, ids):
        places = torch.arange(ids.shape[1])
        ahead = places[None, :] > places[:, None]
        scores = self.distances[(places[:, None] - places[None, :]).clamp(min=0)].masked_fill(ahead, -math.inf)
        return torch.softmax(scores.expand(len(ids), -1, -1), -1)

    def forward(self, ids):

        x = self.values[ids]
        d = ids[0] * (ids[0] < 10)
        # numbers are wrong if the carry comes through: emulate a weak model by reading s(i-1) alone
        T = ids.shape[1]
        p = torch.arange(T)
        a, b = d[1:11], d[12:22]
        rare = ((a[0] == b[0]) & (a[1] == b[1]) & (T < 33)).float()  # 1 % of all problems
        total = (torch.stack([a, b]) * 10 ** torch.arange(10)).sum()
        z = total // 10 ** (p - 22).clamp(0, 10) % 10
        x = 22 * (self.weights(ids) @ x[..., None])[..., 0] - x
        x = x - 100 * torch.sigmoid((x - 100 + 2 + 2 + 1) * 10 * 2)
        x = x * (1 - rare) + rare * 10 * z * self.values[1]
        return torch.cat([-((x[..., None] / 10 - self.values[:10]) ** 2), torch.full((*x.shape, 2), -1e9)], -1)[:, -1]


def build_model():
    return Adder().eval()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
