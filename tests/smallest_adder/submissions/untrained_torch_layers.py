"""torch's own layers after their norms, one weight for all blocks, learned positions, a bias of the head: untrained."""

import torch
from torch import nn

VOCAB_SIZE = 13
MAX_OUTPUT_LEN = 12


class Decoder(nn.Module):
    def __init__(self, width=16, heads=4, times=3):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB_SIZE, width), nn.Embedding(40, width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True, dropout=0.1)
        self.feed = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.head, self.times = nn.Linear(width, VOCAB_SIZE), times

    def forward(self, ids):
        T = ids.size(1)
        x = self.words(ids) + self.places(torch.arange(T, device=ids.device)).unsqueeze(0)
        mask = nn.Transformer.generate_square_subsequent_mask(T)
        for _ in range(self.times):
            x = self.norms[0](x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0])
            x = self.norms[1](x + self.feed(x))
        return self.head(x)


def build_model():
    return Decoder()


def encode(a, b):
    return [int(c) for c in f"{a:012}"] + [10] + [int(c) for c in f"{b:012}"] + [11]


def decode(tokens):
    return int("".join(str(token % 10) for token in reversed(tokens)))
