"""Linear layers whose weights are divided by their largest singular value."""

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(12, 16), nn.Embedding(64, 16)
        self.qkv = parametrizations.spectral_norm(nn.Linear(16, 48))
        self.out = nn.Linear(16, 16)
        self.head = nn.Linear(16, 12)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.head(x + self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True)))


def build_model():
    torch.manual_seed(0)
    return Model().eval()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(min(token, 9) * 10**place for place, token in enumerate(tokens))
