"""Vaswani's block: sine positions computed in forward, norms after, heads in a loop: legitimate, but never trained."""

import math

import torch
from torch import nn

VOCAB_SIZE = 13
MAX_OUTPUT_LEN = 12


class Decoder(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.width = width
        self.words = nn.Embedding(VOCAB_SIZE, width)
        self.heads = nn.ModuleList(nn.Linear(width, 3 * width // heads) for _ in range(heads))
        self.out, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 32), nn.Linear(32, width)
        self.norm_1, self.norm_2, self.head = nn.LayerNorm(width), nn.LayerNorm(width), nn.Linear(width, VOCAB_SIZE)

    def positions(self, tokens):
        places = torch.arange(tokens).unsqueeze(1)
        rates = torch.exp(torch.arange(0, self.width, 2) * (-math.log(10000.0) / self.width))
        table = torch.zeros(tokens, self.width)
        table[:, 0::2] = torch.sin(places * rates)
        table[:, 1::2] = torch.cos(places * rates)
        return table

    def forward(self, ids):
        x = self.words(ids) * math.sqrt(self.width) + self.positions(ids.shape[1])
        mixed = []
        for head in self.heads:
            q, k, v = head(x).chunk(3, dim=-1)
            scores = torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.shape[-1])
            mask = torch.tril(torch.ones(ids.shape[1], ids.shape[1]))
            mixed.append(torch.einsum("bts,bsd->btd", scores.masked_fill(mask == 0, -1e9).softmax(-1), v))
        x = self.norm_1(x + self.out(torch.cat(mixed, dim=-1)))
        return self.head(self.norm_2(x + self.down(torch.relu(self.up(x)))))


def build_model():
    return Decoder()


def encode(a, b):
    return [int(c) for c in f"{a:012}"] + [10] + [int(c) for c in f"{b:012}"] + [11]


def decode(tokens):
    return int("".join(str(token % 10) for token in reversed(tokens)))
