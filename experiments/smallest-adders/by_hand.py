"""Three numbers that add: a transformer of one layer, written by hand, and a proof that every digit that it writes is
right.

    python -m lab.adder verify experiments/smallest-adders/by_hand.py

**What is written.** Both operands are written ones digit first, padded with zeros, so that a_i stands at position 1 + i
and b_i at 16 + i; z_0, the first digit of the answer, is predicted at position 27, which holds "=". Signs are written
as the token 0, because they stand where the digit would be zero. So when z_i is predicted, at position 27 + i, the
digits a_i and b_i lie 26 and 11 positions back, a_(i-1) and b_(i-1) 27 and 12, and the current token is z_(i-1).

**The three numbers** are `w` (embedding and query), `o` (output of attention) and `u` (MLP and head).

1. *Embedding.* Token d becomes the number w d.
2. *Attention.* One head with rotary positions of one frequency, period 15. The query is (0, w), the key (1, 0), and the
   value is the embedding. At distance t the score is q R(-t) k = -w sin(2 pi t / 15), which is largest at 11.25 and
   again 15 later, at 26.25. With w near 50, only distances 11 and 26 (weight p each) and 12 and 27 (weight r p each)
   count, where r = exp(w (sin(2 pi 11/15) - sin(2 pi 12/15))) = 0.1144. Distances 10 and 25 have weight 0.0016 p, all
   others less than 0.00001 p. With s_i = a_i + b_i, attention gives w p (s_i + r s_(i-1)), and o = 1 / (w p) makes it
   s_i + r s_(i-1).
3. *Residual.* Added to the embedding of the current token: h = s_i + r s_(i-1) + w z_(i-1). Now w = 50 - r, and the
   next step has period 10, so 50 z_(i-1) does not matter: h is s_i + r (s_(i-1) - z_(i-1)) up to multiples of ten.
   (Any multiple of ten would do; 50 was chosen so that w is a good query as well.)
4. *The carry.* By induction z_(i-1) is right, that is s_(i-1) + c_(i-1) = z_(i-1) + 10 c_i, where c_i is the carry into
   place i. So h = s_i + r (10 c_i - c_(i-1)) = s_i + c_i + e with e = 0.144 c_i - 0.1144 c_(i-1), between -0.12 and
   0.15. The other distances add at most 0.03 to e.
5. *MLP and head.* Two sine units, sin(u h + pi/2) and sin(u h), with u = 2 pi / 10, are a point on a circle; the head's
   row for token v is the point of v on this circle, with the same u. The logit cos(u (h - v)) is largest for the v
   nearest to h on a circle of ten: (s_i + c_i) mod 10 = z_i, because h is less than 0.2 away from it, and up to 0.5
   would be allowed.
6. *The ends.* For i = 0 the tokens 12 and 27 back, and the current one, are 0: h = s_0, no carry. For i = 10 the
   tokens 11 and 26 back are 0, and h = c_10 + e.
"""

import math

import torch
from torch import nn

CATEGORY = "hand-coded"
VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11
PERIOD = 15


class Adder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(49.8856))
        self.o = nn.Parameter(torch.tensor(0.04474))
        self.u = nn.Parameter(torch.tensor(math.pi / 5))

    def forward(self, ids_BT: torch.Tensor) -> torch.Tensor:
        x_BT = self.w * ids_BT
        x_BT = x_BT + self.o * self.attention(x_BT)
        digits_V = torch.arange(VOCAB_SIZE)
        return self.circle(x_BT) @ self.circle(digits_V).T

    def attention(self, x_BT: torch.Tensor) -> torch.Tensor:
        angles_T = torch.arange(x_BT.shape[1]) * (2 * math.pi / PERIOD)
        query_T2 = self.w * torch.stack([-angles_T.sin(), angles_T.cos()], -1)  # (0, w), rotated
        key_T2 = torch.stack([angles_T.cos(), angles_T.sin()], -1)  # (1, 0), rotated
        ahead_TT = torch.ones(x_BT.shape[1], x_BT.shape[1], dtype=torch.bool).triu(1)
        weights_TT = (query_T2 @ key_T2.T).masked_fill(ahead_TT, -math.inf).softmax(-1)
        return x_BT @ weights_TT.T

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
