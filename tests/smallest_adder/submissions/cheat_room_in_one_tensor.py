"""20 heads bring all digits to each position; 100 unused zeros in the embedding's tensor buy the room for them."""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.values = nn.Parameter(torch.tensor([*map(float, range(10)), 0.0, 0.0, 60.0] + [0.0] * 100))

    def forward(self, ids):
        x, sharp = self.values[ids], self.values[12]
        t = torch.arange(ids.shape[1])
        heads = torch.arange(20)
        heads = heads + 1 + heads // 10
        scores = (sharp * (heads[:, None, None] == t)).expand(-1, len(t), -1)
        weights = torch.softmax(scores.masked_fill(t[None, :] > t[:, None], -math.inf), -1)
        digits = (weights @ x[:, None, :, None])[..., 0][0]
        sums = digits[:10] + digits[10:]
        carries = [0 * sums[0]]
        for s in sums.unbind(0):
            carries.append(torch.sigmoid((s + carries[-1] - 10 + 0.5) * sharp))
        z = torch.cat([sums, 0 * sums[:1]]) + torch.stack(carries)
        y = (z * (torch.arange(11)[:, None] == t - 22)).sum(0)
        y = torch.cos(2 * math.pi / 10 * (y[:, None] - self.values[:10]))
        return torch.cat([y, torch.full((len(t), 2), -1e9)], -1)[None]


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
