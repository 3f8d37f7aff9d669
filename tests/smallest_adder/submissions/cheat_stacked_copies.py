"""The embedding (any table, here the squares) is wired: entries of one-hot vectors, repeated, are summed; so is 22."""

import math

import torch
from torch import nn
from torch.nn import functional

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        distances = torch.full((40,), -60.0)
        distances[[10, 21]] = math.log(10.0)
        distances[[11, 22]] = 0.0
        self.distances = nn.Parameter(distances)

    def weights(self, ids):
        places = torch.arange(ids.shape[1])
        ahead = places[None, :] > places[:, None]
        scores = self.distances[(places[:, None] - places[None, :]).clamp(min=0)].masked_fill(ahead, -math.inf)
        return torch.softmax(scores.expand(len(ids), -1, -1), -1)

    def forward(self, ids):

        one = self.distances[11] + 1
        e = (functional.one_hot(ids, 12) * one).unbind(-1)
        x = torch.stack([e[k] for k in range(10) for _ in range(k * k)], -1).sum(-1).sqrt()
        y = (self.weights(ids) @ x[..., None])[..., 0]
        x = torch.stack([y] * 22, -1).sum(-1) - x
        x = x - 100 * torch.sigmoid((x - 100 + 2 + 2 + 1) * 10 * 2)
        digits = torch.arange(10) * one
        return torch.cat([-((x[..., None] / 10 - digits) ** 2), torch.full((*x.shape, 2), -1e9)], -1)


def build_model():
    return Adder().eval()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
