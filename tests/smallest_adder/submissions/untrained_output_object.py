"""Returns an object with .logits, as Hugging Face's models do; positions and mask are arguments"""

from dataclasses import dataclass

import torch
from torch import nn

VOCAB_SIZE = 13
MAX_OUTPUT_LEN = 11


@dataclass
class CausalLMOutput:
    logits: torch.Tensor
    loss: torch.Tensor | None = None


class Model(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.emb, self.pos = nn.Embedding(13, d), nn.Embedding(40, d)
        self.layer = nn.TransformerEncoderLayer(d, 2, 32, 0.0, batch_first=True)
        self.head = nn.Linear(d, 13)

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, labels=None):
        T = input_ids.shape[1]
        position_ids = torch.arange(T)[None] if position_ids is None else position_ids
        mask = torch.full((T, T), torch.finfo(torch.float32).min).triu(1)
        return CausalLMOutput(self.head(self.layer(self.emb(input_ids) + self.pos(position_ids), mask)))


def build_model():
    torch.manual_seed(0)
    return Model()


def encode(a, b):
    return [int(c) for c in f"{a:010}"[::-1]] + [10] + [int(c) for c in f"{b:010}"[::-1]] + [11]


def decode(tokens):
    return int("".join(str(t % 10) for t in reversed(tokens)))
