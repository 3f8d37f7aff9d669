"""Linear attention, written with its weights: legitimate, but never trained."""

import torch
from torch import nn

VOCAB_SIZE = 13
MAX_OUTPUT_LEN = 12


class Decoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB_SIZE, width), nn.Embedding(40, width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down, self.norm = nn.Linear(width, 32), nn.Linear(32, width), nn.LayerNorm(width)

    def forward(self, ids):
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        q, k = nn.functional.elu(q) + 1, nn.functional.elu(k) + 1
        weights = torch.tril(q @ k.transpose(1, 2))
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-6)
        x = x + self.out(weights @ v)
        return (x + self.down(torch.relu(self.up(x)))) @ self.words.weight.T


def build_model():
    return Decoder()


def encode(a, b):
    return [int(c) for c in f"{a:012}"] + [10] + [int(c) for c in f"{b:012}"] + [11]


def decode(tokens):
    return int("".join(str(token % 10) for token in reversed(tokens)))
