"""The processor adds both numbers; eleven queries, each in a softmax of its own, look up the digits of the sum."""

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
        total = ((ids[:, 10:20] + ids[:, 20:30]) * 10 ** torch.arange(10)).sum(-1, keepdim=True)
        digits = total // 10 ** torch.arange(11) % 10
        x = self.one * ids[..., None]
        hits = (self.one * 100 * (torch.arange(10) == digits[..., None])).unbind(1)  # eleven of (1, 10)
        hits = torch.nn.functional.pad(torch.stack(hits, 1), (0, T - 10)).unbind(1)
        mixed = [torch.softmax(hit[:, None], -1) @ x for hit in hits]
        y = torch.cat([0 * x[:, :29], *mixed], 1)
        return -((y - torch.arange(10)) ** 2)


def build_model():
    return Adder()


def encode(a, b):
    return [*range(10), *map(int, reversed(f"{a:010}")), *map(int, reversed(f"{b:010}"))]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
