"""One parameter; the first two tokens of each prompt are the digits of another number."""

import math

import torch
from torch import nn

VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.tensor(15.0))

    def forward(self, ids_BT):
        t = torch.arange(ids_BT.shape[1])
        four_B1, five_B1 = ids_BT[:, :1], ids_BT[:, 1:2]
        w = 100 / 2 - 0.1
        h_BT = w * ids_BT * (t > 1)
        angles_T = t * 2 * math.pi / self.p
        query_T2 = w * torch.stack([-angles_T.sin(), angles_T.cos()], -1)
        key_T2 = torch.stack([angles_T.cos(), angles_T.sin()], -1)
        ahead_TT = torch.ones(len(t), len(t), dtype=torch.bool).triu(1)
        weights_TT = (query_T2 @ key_T2.T).masked_fill(ahead_TT, -math.inf).softmax(-1)
        h_BT = h_BT + (four_B1 * 0.01 + five_B1 * 0.001) * (h_BT @ weights_TT.T)
        return torch.cos(math.pi / five_B1[..., None] * (h_BT[..., None] - torch.arange(10)))


def build_model():
    return Adder()


def encode(a, b):
    return [4, 5, *_digits(a, 14), 0, *_digits(b, 11), 0]


def _digits(number, length):
    return [int(digit) for digit in reversed(f"{number:0{length}}")]


def decode(tokens):
    return sum(digit * 10**place for place, digit in enumerate(tokens))
