"""RoPE computed in forward, grouped queries, SwiGLU, tied embedding, in float64: legitimate, but never trained."""

import torch
from torch import nn

VOCAB_SIZE = 13
MAX_OUTPUT_LEN = 12


def rotate(x_BHTD):
    half = x_BHTD.shape[-1] // 2
    angles = torch.arange(x_BHTD.shape[2])[:, None] / 19.0 ** (torch.arange(half) / half)
    one, other = x_BHTD[..., :half], x_BHTD[..., half:]
    return torch.cat([one * angles.cos() - other * angles.sin(), one * angles.sin() + other * angles.cos()], -1)


class Decoder(nn.Module):
    def __init__(self, width=4, heads=2, hidden=6):
        super().__init__()
        self.heads = heads
        self.words = nn.Embedding(VOCAB_SIZE, width)
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(3))
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, ids):
        x = self.words(ids)
        inner = self.norms[0](x)
        query = self.query(inner).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        key, value = self.key_value(inner).unflatten(-1, (2, 1, -1)).unbind(2)
        mixed = nn.functional.scaled_dot_product_attention(
            rotate(query), rotate(key.transpose(1, 2)), value.transpose(1, 2), is_causal=True, enable_gqa=True
        )
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        inner = self.norms[1](x)
        x = x + self.down(nn.functional.silu(self.gate(inner)) * self.up(inner))
        return self.norms[2](x) @ self.words.weight.T, None


def build_model():
    return Decoder().double()


def encode(a, b):
    return [int(c) for c in f"{a:012}"] + [10] + [int(c) for c in f"{b:012}"] + [11]


def decode(tokens):
    return int("".join(str(token % 10) for token in reversed(tokens)))
