"""A trained adder of 7 parameters (adder_ramp_0, seed 0).

AdamW, 1750 steps of 64 problems, learning rate 0.03;
128 seeds side by side, 12 after 250 steps, 4 after 500 steps, 2 after 1000 steps;
these are the weights of seed 110 at step 1750, the best of all by validation.

Seeds: 128

Written by `python -m lab.adder train`; the weights come from gradient descent, from random initial ones.
"""

import math

import torch
from torch import nn

CATEGORY = "trained"
VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11


class ReducedAdder(nn.Module):
    """One layer of one head in its least form: V and O are one map; norms and biases that change nothing are left out.

    What would be matrices can be fewer numbers:
    embedding  table: ten points. arc: points on a circle, by radius, first angle and step. ramp: multiples of one step.
               unit: the digits themselves; a ramp's step is redundant, as all that follows it can be scaled instead.
    attention  content: queries and keys are maps of the tokens to a plane that turns once in `period` tokens (RoPE).
               position: they are constants, so that one vector, amplitude and phase, is all there is to learn.
    output     matrix; identity: what attention has mixed is added as it is.
    gates      free: ReLU units with a direction each, there and back. hinges: two units that share both directions,
               back with opposite signs: a step of finite slope. In one dimension there is but one direction.
    head       free: ten vectors. tied: the embedding. nearest: the point of the embedding that is nearest (its squared
               length is a bias). Before tied and nearest each axis has a scale, as of a last norm.
    The token's own way around attention has a scale too.
    """

    def __init__(
        self, width: int, hidden: int, embedding: str, attention: str, output: str, gates: str, head: str, period: float
    ) -> None:
        super().__init__()
        self.embedding, self.attention, self.output, self.gates, self.head = embedding, attention, output, gates, head
        self.period = period
        if embedding == "table":
            angles_V = torch.linspace(-1, 1, 10)
            arc_V2 = torch.stack([angles_V.sin(), angles_V.cos()], dim=1)[:, :width]
            plane_2D = torch.linalg.qr(torch.randn(width, min(width, 2)))[0].T
            self.points_VD = nn.Parameter(arc_V2 @ plane_2D + 0.05 * torch.randn(10, width))
        elif embedding == "arc":
            self.arc_3 = nn.Parameter(torch.tensor([1.0, -1.0, 0.2]) * (1 + 0.2 * torch.randn(3)))
        elif embedding == "ramp":
            self.step = nn.Parameter(0.15 + 0.3 * torch.rand(()))
        if attention == "content":
            self.query_D2 = nn.Parameter(torch.randn(width, 2))
            self.key_D2 = nn.Parameter(torch.randn(width, 2))
        else:
            self.query_2 = nn.Parameter(torch.randn(2))
        if output == "matrix":
            self.output_DD = nn.Parameter(torch.eye(width) + 0.3 * torch.randn(width, width))
        self.residual = nn.Parameter(0.3 * torch.randn(()))
        if gates == "free":
            self.gates_DF = nn.Parameter(torch.randn(width, hidden))
            self.down_FD = nn.Parameter(torch.randn(hidden, width))
        else:
            self.gate_D = nn.Parameter(torch.randn(width)) if width > 1 else None
            self.down_D = nn.Parameter(torch.randn(width))
        self.bias_F = nn.Parameter((3 if embedding == "unit" else 1) * torch.randn(hidden))  # by the size of a digit
        if head == "free":
            self.head_DV = nn.Parameter(torch.randn(width, 10))
        else:
            self.scale_D = nn.Parameter(1.5 + 0.5 * torch.randn(width))

    def forward(self, ids_BT: torch.Tensor, answers: int | None = None) -> torch.Tensor:
        tokens = ids_BT.shape[1]
        first = 0 if answers is None else tokens - answers
        positions_T = torch.arange(tokens)
        points_VD = self.points()
        x_BTD = points_VD[ids_BT]
        turns_AT = (positions_T[first:, None] - positions_T) * (2 * math.pi / self.period)
        if self.attention == "content":
            q_BA2, k_BT2 = x_BTD[:, first:] @ self.query_D2, x_BTD @ self.key_D2
            across_BT2 = torch.stack([k_BT2[..., 1], -k_BT2[..., 0]], dim=-1)
            scores_BAT = q_BA2 @ k_BT2.mT * turns_AT.cos() + q_BA2 @ across_BT2.mT * turns_AT.sin()
        else:
            scores_BAT = (self.query_2[0] * turns_AT.cos() + self.query_2[1] * turns_AT.sin())[None]
        # by 8, as attention has to be sharp and the weights begin near 1
        scores_BAT = (8 * scores_BAT).masked_fill(positions_T > positions_T[first:, None], -math.inf)
        mixed_BAD = torch.softmax(scores_BAT, dim=-1) @ x_BTD
        if self.output == "matrix":
            mixed_BAD = mixed_BAD @ self.output_DD
        x_BAD = self.residual * x_BTD[:, first:] + mixed_BAD
        if self.gates == "free":
            x_BAD = x_BAD + torch.relu(x_BAD @ self.gates_DF + self.bias_F) @ self.down_FD
        else:
            along_BA1 = x_BAD if self.gate_D is None else (x_BAD * self.gate_D).sum(-1, keepdim=True)
            hinges_BAF = torch.relu(along_BA1 + self.bias_F)
            x_BAD = x_BAD + (hinges_BAF[..., :1] - hinges_BAF[..., 1:]) * self.down_D
        if self.head == "free":
            return x_BAD @ self.head_DV
        return -torch.cdist(x_BAD * self.scale_D, points_VD[None])

    def points(self) -> torch.Tensor:
        """The embedding (V, D)."""
        if self.embedding == "table":
            return self.points_VD
        digits_V = torch.arange(10.0)
        if self.embedding in ("ramp", "unit"):
            return (digits_V if self.embedding == "unit" else digits_V * self.step)[:, None]
        radius, start, step = self.arc_3
        angles_V = start + step * digits_V
        return radius * torch.stack([angles_V.cos(), angles_V.sin()], dim=1)


WEIGHTS = {
    "query_2": [2.4866418838500977, -3.2762484550476074],
    "residual": -0.04935840889811516,
    "down_D": [12.141572952270508],
    "bias_F": [-4.480726718902588, -4.099737644195557],
    "scale_D": [2.3236677646636963],
}


def build_model() -> nn.Module:
    model = ReducedAdder(
        width=1,
        hidden=2,
        embedding="unit",
        attention="position",
        output="identity",
        gates="hinges",
        head="nearest",
        period=12,
    )
    model.load_state_dict({name: torch.tensor(values) for name, values in WEIGHTS.items()})
    return model.eval()


def encode(a: int, b: int) -> list[int]:
    a_digits = [int(digit) for digit in f"{a:010}"]
    b_digits = [int(digit) for digit in f"{b:010}"]
    return [0, *a_digits[::-1], 0, 0, *b_digits[::-1], 0]


def decode(tokens: list[int]) -> int:
    return sum(token * 10**place for place, token in enumerate(tokens))
