"""Last position only; as many heads as tokens, one query: the width looks like one number; ripple afterwards."""

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.sharp = nn.Parameter(torch.tensor(60.0))
        self.register_buffer("unused", torch.zeros(40))

    def forward(self, ids):
        T = ids.shape[1]
        p = torch.arange(T)
        scores = -self.sharp * (p[:, None, None] - p[None, None, :]).abs()  # heads, 1 query, keys
        x = (torch.softmax(scores, -1) @ (ids * 1.0)[0][:, None])[:, 0, 0]  # a number a head
        s = x[1:11] + x[12:22]
        u = s * 10 - 95
        cs = [0 * x[0]]
        for t in u.unbind():
            cs.append(torch.add(t, cs[-1], alpha=10).clamp(0, 1))
        c = torch.stack(cs)
        z = torch.cat([s, 0 * x[:1]]) + c - 10 * torch.cat([c[1:], 0 * c[:1]])
        z = z[T - 23]
        return torch.cat([-((z - torch.arange(10)) ** 2), torch.full((2,), -1e9)], -1)[None]


def build_model():
    return Adder().eval()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
