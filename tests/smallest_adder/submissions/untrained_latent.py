"""Keys and values from a few latent numbers, a rotated key for all heads (DeepSeek's MLA), two experts: untrained."""

import math

import torch
from torch import nn

VOCAB_SIZE = 13
MAX_OUTPUT_LEN = 12


def rotated(x):
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[1])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    angles = angles.view(x.shape[1], *[1] * (x.ndim - 3), half)
    one, other = x[..., :half], x[..., half:]
    return torch.cat([one * angles.cos() - other * angles.sin(), other * angles.cos() + one * angles.sin()], -1)


class Decoder(nn.Module):
    def __init__(self, width=16, heads=2, latent=4, turned=4):
        super().__init__()
        self.words, self.heads, self.turned = nn.Embedding(VOCAB_SIZE, width), heads, turned
        each = width // heads
        self.q, self.down_kv = nn.Linear(width, heads * (each + turned)), nn.Linear(width, latent + turned)
        self.norm, self.up_kv = nn.RMSNorm(latent), nn.Linear(latent, heads * 2 * each)
        self.o, self.before, self.between, self.last = nn.Linear(width, width), *(nn.RMSNorm(width) for _ in range(3))
        self.router = nn.Linear(width, 2)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 24), nn.SiLU(), nn.Linear(24, width)) for _ in range(2)
        )

    def forward(self, ids):
        B, T = ids.shape
        x = self.words(ids)
        h = self.before(x)
        q = self.q(h).view(B, T, self.heads, -1)
        small, shared = self.down_kv(h).split([self.down_kv.out_features - self.turned, self.turned], -1)
        k, v = self.up_kv(self.norm(small)).view(B, T, self.heads, -1).chunk(2, -1)
        still, turning = q[..., : -self.turned], rotated(q[..., -self.turned :])
        scores = torch.einsum("bthd,bshd->bhts", still, k) + torch.einsum("bthd,bsd->bhts", turning, rotated(shared))
        ahead = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
        weights = (scores / math.sqrt(q.shape[-1])).masked_fill(ahead, float("-inf")).softmax(-1)
        x = x + self.o(torch.einsum("bhts,bshd->bthd", weights, v).reshape(B, T, -1))
        h = self.between(x)
        shares = self.router(h).softmax(-1)
        x = x + sum(shares[..., place, None] * expert(h) for place, expert in enumerate(self.experts))
        return self.last(x) @ self.words.weight.T


def build_model():
    return Decoder()


def encode(a, b):
    return [int(c) for c in f"{a:012}"] + [10] + [int(c) for c in f"{b:012}"] + [11]


def decode(tokens):
    return int("".join(str(token % 10) for token in reversed(tokens)))
