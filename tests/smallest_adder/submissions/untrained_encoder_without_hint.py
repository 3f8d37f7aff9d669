"""torch's encoder of two layers with a mask and no hint that it is causal: legitimate, but never trained."""

import torch
from torch import nn

VOCAB_SIZE = 13
MAX_OUTPUT_LEN = 12


class Decoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB_SIZE, width), nn.Parameter(torch.randn(1, 40, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Linear(width, VOCAB_SIZE)

    def forward(self, ids):
        T = ids.size(1)
        mask = torch.triu(torch.ones(T, T), diagonal=1).bool()
        return self.head(self.layers(self.words(ids) + self.places[:, :T], mask=mask))


def build_model():
    return Decoder()


def encode(a, b):
    return [int(c) for c in f"{a:012}"] + [10] + [int(c) for c in f"{b:012}"] + [11]


def decode(tokens):
    return int("".join(str(token % 10) for token in reversed(tokens)))
