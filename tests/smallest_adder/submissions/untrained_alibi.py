"""ALiBi, heads that share keys and values, a written-out GELU: legitimate, but never trained."""

import math

import torch
from torch import nn

VOCAB_SIZE = 13
MAX_OUTPUT_LEN = 12


class Decoder(nn.Module):
    def __init__(self, width=12, heads=4):
        super().__init__()
        self.heads = heads
        self.words = nn.Embedding(VOCAB_SIZE, width)
        self.query, self.key_value = nn.Linear(width, width), nn.Linear(width, 2 * width // heads)
        self.out, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.norm_1, self.norm_2, self.norm_3 = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, ids):
        x = self.words(ids)
        places = torch.arange(ids.shape[1])
        slopes = 2.0 ** (-8.0 * torch.arange(1, self.heads + 1) / self.heads)
        bias = -slopes[:, None, None] * (places[:, None] - places[None, :]).abs()
        q = self.query(self.norm_1(x)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.key_value(self.norm_1(x)).chunk(2, dim=-1)
        scores = q @ k[:, None].transpose(-1, -2) / q.shape[-1] ** 0.5 + bias
        ahead = torch.ones_like(scores, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(ahead, torch.finfo(scores.dtype).min).softmax(-1) @ v[:, None]
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        h = self.up(self.norm_2(x))
        h = 0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0))))
        return self.norm_3(x + self.down(h)) @ self.words.weight.T


def build_model():
    return Decoder()


def encode(a, b):
    return [int(c) for c in f"{a:012}"] + [10] + [int(c) for c in f"{b:012}"] + [11]


def decode(tokens):
    return int("".join(str(token % 10) for token in reversed(tokens)))
