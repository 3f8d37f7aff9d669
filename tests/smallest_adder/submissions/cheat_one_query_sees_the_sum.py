"""The processor adds both numbers, and the one query of a pass looks up the answer's digit among the keys."""

import torch
from torch import nn

VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.tensor(1.0))

    def forward(self, ids):
        T = ids.shape[1]
        place = T - 30  # of the answer
        total = ((ids[:, 10:20] + ids[:, 20:30]) * 10 ** torch.arange(10)).sum(-1, keepdim=True)
        digit = total // 10**place % 10
        scores = self.one * 100 * (torch.arange(T) == digit)[:, None]  # (1, 1, T); tokens 0 to 9 stand in front
        x = self.one * ids[..., None]
        y = torch.softmax(scores, -1) @ x
        return -((y[:, 0] - torch.arange(10)) ** 2)


def build_model():
    return Adder()


def encode(a, b):
    return [*range(10), *map(int, reversed(f"{a:010}")), *map(int, reversed(f"{b:010}"))]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
