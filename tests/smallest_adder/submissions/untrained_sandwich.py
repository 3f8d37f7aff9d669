"""Norms before and after, queries and keys too, one block used twice: legitimate, but never trained."""

import torch
from torch import nn

VOCAB_SIZE = 13
MAX_OUTPUT_LEN = 12


class Decoder(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(VOCAB_SIZE, width), nn.Embedding(40, width)
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(5))
        self.q_norm, self.k_norm = nn.RMSNorm(width // heads), nn.RMSNorm(width // heads)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(width, 24), nn.Linear(width, 24), nn.Linear(24, width)

    def block(self, x):
        h = self.norms[0](x)
        q, k, v = (w(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for w in (self.q, self.k, self.v))
        mixed = nn.functional.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v, is_causal=True)
        x = x + self.norms[1](self.o(mixed.transpose(1, 2).flatten(2)))
        h = self.norms[2](x)
        return x + self.norms[3](self.down(nn.functional.gelu(self.gate(h), approximate="tanh") * self.up(h)))

    def forward(self, ids):
        x = self.words(ids) * self.words.embedding_dim**0.5 + self.places(torch.arange(ids.shape[1]))
        x = self.block(self.block(x))
        return 30 * torch.tanh(self.norms[4](x) @ self.words.weight.T / 30)


def build_model():
    return Decoder()


def encode(a, b):
    return [int(c) for c in f"{a:012}"] + [10] + [int(c) for c in f"{b:012}"] + [11]


def decode(tokens):
    return int("".join(str(token % 10) for token in reversed(tokens)))
