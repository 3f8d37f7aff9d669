"""The hand-coded adder on tokens that hold a digit of each operand."""

import math

import torch
from torch import nn

VOCAB_SIZE = 121
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    """Attention by distance: 10/22 on each digit of this place, 1/22 on each of the place before.

    With z, the digit written last, that makes 10 (s + carry) - (carry before); 100 is subtracted from 95 on. The digit
    nearest to a tenth of this is written.
    """

    def __init__(self):
        super().__init__()
        distances = torch.full((40,), -60.0)
        distances[10] = math.log(10.0)
        distances[11] = 0.0
        self.distances = nn.Parameter(distances)
        self.values = nn.Parameter(torch.tensor([*map(float, range(10)), 0.0]))
        self.scale = nn.Parameter(torch.tensor([11.0, 100.0, 95.0, 0.1]))

    def forward(self, ids):
        written = self.values[(ids - 110).clamp(0, 10)]
        pair = ids.clamp(max=100)
        value = self.values[pair // 10] + self.values[pair % 10]
        value = torch.where(ids < 100, value, 0)
        places = torch.arange(ids.shape[1])
        ahead = places[None, :] > places[:, None]
        scores = self.distances[(places[:, None] - places[None, :]).clamp(min=0)].masked_fill(ahead, -math.inf)
        weights = torch.softmax(scores.expand(len(ids), -1, -1), -1)
        whole, hundred, step, tenth = self.scale
        x = whole * (weights @ value[..., None])[..., 0] - written * (ids >= 110)
        x = x - hundred * torch.sigmoid((x - step) * 20)
        logits = -((tenth * x[..., None] - self.values[:10]) ** 2)
        rest = torch.full((*x.shape, 110), -1e9)
        return torch.cat([rest, logits, rest[..., :1]], -1)


def build_model():
    return Adder()


def encode(a, b):
    pairs = zip(f"{a:010}", f"{b:010}", strict=True)
    return [100, *reversed([10 * int(one) + int(other) for one, other in pairs]), 100]


def decode(tokens):
    return sum((token - 110) * 10**place for place, token in enumerate(tokens))
