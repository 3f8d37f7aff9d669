"""torch's own encoder with a causal mask, two layers, tens before ones: legitimate, but never trained."""

import torch
from torch import nn

VOCAB_SIZE = 13
MAX_OUTPUT_LEN = 12


class Decoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB_SIZE, width), nn.Embedding(40, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCAB_SIZE)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.head(self.layers(x, mask=mask, is_causal=True))


def build_model():
    return Decoder(), {"name": "two layers"}


def encode(a, b):
    return [12] + [int(c) for c in f"{a:012}"] + [10] + [int(c) for c in f"{b:012}"] + [11]


def decode(tokens):
    return int("".join(str(token % 10) for token in tokens))
