"""Llama as published: freqs_cis, complex, a plain attribute of the module (heads of 16 numbers): never trained."""

import math

import torch
from torch import nn
from torch.nn import functional

VOCAB_SIZE = 13
MAX_OUTPUT_LEN = 12


def precompute(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    freqs = torch.outer(torch.arange(end), freqs).float()
    return torch.polar(torch.ones_like(freqs), freqs)


def rotated(x, turns):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(3)


class Decoder(nn.Module):
    def __init__(self, width=32, heads=2):
        super().__init__()
        self.heads = heads
        self.words = nn.Embedding(VOCAB_SIZE, width)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.freqs_cis = precompute(width // heads, 96)
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, VOCAB_SIZE, bias=False)

    def forward(self, ids):
        B, T = ids.shape
        turns = self.freqs_cis[:T][None, :, None]
        x = self.words(ids)
        q, k, v = (w(x).view(B, T, self.heads, -1) for w in (self.wq, self.wk, self.wv))
        q, k, v = rotated(q, turns).transpose(1, 2), rotated(k, turns).transpose(1, 2), v.transpose(1, 2)
        mask = torch.full((T, T), float("-inf")).triu(diagonal=1)
        weights = functional.softmax(q @ k.mT / math.sqrt(q.shape[-1]) + mask, dim=-1)
        return self.head(self.norm(x + self.wo((weights @ v).transpose(1, 2).reshape(B, T, -1))))


def build_model():
    torch.manual_seed(3)
    return Decoder()


def encode(a, b):
    return [int(c) for c in f"{a:012}"] + [10] + [int(c) for c in f"{b:012}"] + [11]


def decode(tokens):
    return int("".join(str(token % 10) for token in reversed(tokens)))
