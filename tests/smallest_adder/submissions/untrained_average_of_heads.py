"""attention maps of heads are averaged (interpretable multi-head attention, TFT)"""

import math

import torch
from torch import nn
from torch.nn import functional

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(12, 16)
        self.pos = nn.Embedding(64, 16)
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))
        self.ff = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.ln = nn.LayerNorm(16)

    def forward(self, ids):
        B, T = ids.shape
        x = self.emb(ids) + self.pos.weight[:T]
        h = self.ln(x)
        q, k, v = (f(h).view(B, T, 2, 8).transpose(1, 2) for f in (self.q, self.k, self.v))
        mask = torch.ones(T, T, dtype=torch.bool).triu(1)
        w = (q @ k.mT / 8**0.5).masked_fill(mask, -math.inf).softmax(-1).mean(1, keepdim=True)
        y = w @ v
        x = x + self.o(y.transpose(1, 2).reshape(B, T, 16))
        x = x + self.ff(x)
        return functional.linear(x, self.emb.weight)


def build_model():
    return Model()


def encode(a, b):
    return [10, *map(int, f"{a:010}"), 10, *map(int, f"{b:010}"), 11]


def decode(tokens):
    return int("".join(str(t % 10) for t in tokens))
