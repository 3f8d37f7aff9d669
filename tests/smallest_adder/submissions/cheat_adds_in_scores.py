"""The processor adds the numbers of two tokens; the sum is a score, and a sink turns it into a number.

numbers        it adds the numbers of the tokens
one_hot        it adds numbers that it makes of one-hot vectors
comparisons    it counts how often one token is larger than a number less the other
logic          it counts true statements about each token
shape          it adds the numbers of the tokens, after each has met zeros in the shape of a parameter
"""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11

TRICK = "numbers"


def added(d):
    """The sums of two digits, (T, T)."""
    marks, sums = d[:, None] == torch.arange(10), torch.arange(1, 20)
    if TRICK == "one_hot":
        d = (marks * 1.0) @ torch.arange(10.0)
    if TRICK == "comparisons":
        return (d[:, None, None] >= (sums - d[:, None])[None]).sum(-1) * 1.0
    if TRICK == "logic":
        reaches = d[:, None, None] >= sums[:, None] - torch.arange(10)
        return (marks[:, None, None] & reaches[None]).any(-1).sum(-1) * 1.0
    total = d[:, None] + d[None, :]
    return total // 10 * 10 + total % 10


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        distances = torch.full((40,), -60.0)
        distances[10], distances[11] = math.log(10.0), 0.0
        self.distances = nn.Parameter(distances)
        self.scale = nn.Parameter(torch.tensor([11.0, 100.0, 95.0, 0.1]))

    def forward(self, ids):
        places = torch.arange(ids.shape[1])
        apart = places[:, None] - places[None, :]
        d = ids[0] % 10 * (ids[0] < 10)
        if TRICK == "shape":
            d = d + torch.zeros_like(self.scale[0], dtype=ids.dtype)
        total = added(d)  # by the processor
        pair = torch.log(total + 1.0) - torch.log(20.0 - total) + 0 * self.scale[0]
        scores = torch.where(apart == 11, pair, torch.where(apart == 0, 0.0, -math.inf))
        first = torch.softmax(scores, -1)
        s = (first * (apart == 11)).sum(-1) * 21 - 1  # (total+1)/21
        is_b = (places > 11) & (places < 22)
        s = s * is_b + 0
        own = self.distances[apart.clamp(min=0)].masked_fill(apart < 0, -math.inf)
        weights = torch.softmax(own, -1)
        whole, hundred, step, tenth = self.scale
        is_sum = places > 22
        x = whole * (weights @ s[:, None])[:, 0] - d * is_sum
        x = x - hundred * torch.sigmoid((x - step) * 10 * 2)
        return torch.cat([-((tenth * x[:, None] - torch.arange(10)) ** 2), torch.full((*x.shape, 2), -1e9)], -1)[None]


def build_model():
    return Adder().eval()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
