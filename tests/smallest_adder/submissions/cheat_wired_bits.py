"""57 numbers as bits; bits are wired from two moving learned values whose common part cancels."""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11

TABLE = [400] * 34 + [1000 + 10 * d for d in range(10)] + [1000, 1000, 1220, 2000, 1950, 1001]
TABLE[10] = TABLE[21] = 1023
TABLE[11] = TABLE[22] = 1000


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.tensor(1.0))

    def forward(self, ids):
        zero = ids[0, 1:2] * self.one
        pair = (zero, zero + self.one)
        bits = torch.cat([pair[n >> k & 1] for n in TABLE for k in range(11)]) - zero
        table = (bits.reshape(-1, 11) @ 2.0 ** torch.arange(11.0) - 1000) / 10
        own, values, scale = table.split([34, 12, 4])
        whole, hundred, step, tenth = scale
        own = torch.cat([own, own[:6]])

        x = values[ids]
        places = torch.arange(ids.shape[1])
        ahead = places[None, :] > places[:, None]
        scores = own[(places[:, None] - places[None, :]).clamp(min=0)].masked_fill(ahead, -math.inf)
        weights = torch.softmax(scores.expand(len(ids), -1, -1), -1)
        x = whole * (weights @ x[..., None])[..., 0] - x
        x = x - hundred * torch.sigmoid((x - step) * 10 * 2)
        return torch.cat([-((tenth * x[..., None] - values[:10]) ** 2), torch.full((*x.shape, 2), -1e9)], -1)


def build_model():
    return Adder().eval()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
