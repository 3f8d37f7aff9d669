"""Attention by position (experiments/adder_by_hand.py) whose weights change with the tokens without any effect.

values    values undo what the key's token does to the weights, and a second sum undoes what it does to their sum
head      a head attends to equal tokens, and the own token is subtracted from what it gives
"""

import math

import torch
from torch import nn

VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11
PERIOD = 15

TRICK = "values"


class Adder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(49.8856))
        self.o = nn.Parameter(torch.tensor(0.04474))
        self.u = nn.Parameter(torch.tensor(math.pi / 5))

    def forward(self, ids_BT: torch.Tensor) -> torch.Tensor:
        x_BT = self.w * ids_BT
        x_BT = x_BT + self.o * self.attention(x_BT)
        if TRICK == "head":
            x_BT = x_BT + self.nothing(x_BT)
        digits_V = torch.arange(VOCAB_SIZE)
        return self.circle(x_BT) @ self.circle(digits_V).T

    def attention(self, x_BT: torch.Tensor) -> torch.Tensor:
        angles_T = torch.arange(x_BT.shape[1]) * (2 * math.pi / PERIOD)
        query_T2 = self.w * torch.stack([-angles_T.sin(), angles_T.cos()], -1)  # (0, w), rotated
        key_T2 = torch.stack([angles_T.cos(), angles_T.sin()], -1)  # (1, 0), rotated
        ahead_TT = torch.ones(x_BT.shape[1], x_BT.shape[1], dtype=torch.bool).triu(1)
        scores_TT = (query_T2 @ key_T2.T).masked_fill(ahead_TT, -math.inf)
        if TRICK == "head":
            return x_BT @ scores_TT.softmax(-1).T
        noise_BT = torch.sin(x_BT)
        values_BT2 = torch.stack([x_BT, torch.ones_like(x_BT)], -1) * torch.exp(-noise_BT)[..., None]
        sums_BT2 = (scores_TT + noise_BT[:, None]).softmax(-1) @ values_BT2
        return sums_BT2[..., 0] / sums_BT2[..., 1]

    def nothing(self, x_BT: torch.Tensor) -> torch.Tensor:
        ahead_TT = torch.ones(x_BT.shape[1], x_BT.shape[1], dtype=torch.bool).triu(1)
        scores_BTT = -((x_BT[..., :, None] - x_BT[..., None, :]) ** 2)
        return (scores_BTT.masked_fill(ahead_TT, -math.inf).softmax(-1) @ x_BT[..., None])[..., 0] - x_BT

    def circle(self, x: torch.Tensor) -> torch.Tensor:
        """Two sine units, the first a quarter of a period ahead of the second."""
        return torch.stack([torch.cos(self.u * x), torch.sin(self.u * x)], -1)


def build_model() -> nn.Module:
    return Adder()


def encode(a: int, b: int) -> list[int]:
    return [0, *_digits(a, 14), 0, *_digits(b, 11), 0]


def _digits(number: int, length: int) -> list[int]:
    return [int(digit) for digit in reversed(f"{number:0{length}}")]


def decode(tokens: list[int]) -> int:
    return sum(digit * 10**place for place, digit in enumerate(tokens))
