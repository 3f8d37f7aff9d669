"""The smallest adders: causal transformers of one layer that read digits and write digits.

Each class needs only torch and math, because a submission contains its source; so the submitted class is the
trained one. `forward(ids, answers)` gives only the logits of the last `answers` positions, for training: keys and
values are those of all tokens, queries those of the answers.

Shapes: B sequences, T tokens, A answers (T if not given), D width, H heads, W width of a head, F hidden units, V
digits; dimensions of size 2 and 3 are called 2 and 3.
"""

import math

import torch
from torch import nn

from lab.smallest_adder.config import AdderModelConfig


class GptAdder(nn.Module):
    """GPT's layer (Radford et al. 2019): learned positions, norms before, GELU, the head tied to the embedding."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        angles_V = torch.linspace(-1.2, 1.2, 10)
        arc_V2 = torch.stack([angles_V.cos(), angles_V.sin()], dim=1)
        plane_2D = torch.linalg.qr(torch.randn(width, 2))[0].T
        self.digits_VD = nn.Parameter(2 * arc_V2 @ plane_2D + 0.05 * torch.randn(10, width))
        # waves at first, so that what one place of the answer learns to look at is near what the next one should
        turns_TF = torch.arange(35)[:, None] / 35 * torch.arange(1, width // 2 + 1)
        waves_TD = torch.cat([(2 * math.pi * turns_TF).sin(), (2 * math.pi * turns_TF).cos()], dim=1)
        self.positions_TD = nn.Parameter(waves_TD)
        self.attention_norm = nn.LayerNorm(width)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.feed_forward_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.final_norm = nn.LayerNorm(width)

    def forward(self, ids_BT: torch.Tensor, answers: int | None = None) -> torch.Tensor:
        tokens = ids_BT.shape[1]
        first = 0 if answers is None else tokens - answers
        positions_T = torch.arange(tokens)
        x_BTD = self.digits_VD[ids_BT] + self.positions_TD[:tokens]
        normed_BTD = self.attention_norm(x_BTD)
        q_BHAW = self.split(self.query(normed_BTD[:, first:]))
        k_BHTW = self.split(self.key(normed_BTD))
        v_BHTW = self.split(self.value(normed_BTD))
        scores_BHAT = q_BHAW @ k_BHTW.mT / math.sqrt(q_BHAW.shape[-1])
        later_AT = positions_T > positions_T[first:, None]
        weights_BHAT = torch.softmax(scores_BHAT.masked_fill(later_AT, -math.inf), dim=-1)
        x_BAD = x_BTD[:, first:] + self.output((weights_BHAT @ v_BHTW).transpose(1, 2).flatten(2))
        x_BAD = x_BAD + self.down(nn.functional.gelu(self.up(self.feed_forward_norm(x_BAD))))
        return self.final_norm(x_BAD) @ self.digits_VD.T

    def split(self, x_BTD: torch.Tensor) -> torch.Tensor:
        return x_BTD.unflatten(2, (self.heads, -1)).transpose(1, 2)


class TinyAdder(nn.Module):
    """Llama's layer: RMS norms, heads of one rotary pair, SwiGLU; everything in it is learned.

    `period` is a number, in tokens, or the two numbers between which a learned one begins. The embedding begins as an
    arc of a circle of that `radius`, so that neighbouring digits are near each other from the start, `height` above
    zero: a direction that all digits share, which queries and keys read at first. Norms without `gains` only divide.
    With `tied`, the embedding is also the head. With `ties`, the feed-forward's gate is its up projection ("gate"), and
    its down projection is minus the transpose of the up projection ("down").
    """

    def __init__(
        self,
        width: int,
        heads: int,
        inner: int,
        values: int,
        period: float | tuple[float, float],
        tied: bool,
        gains: str,
        gain: float,
        signs: bool,
        ties: list[str],
        radius: float,
        height: float,
        sharpness: float,
    ) -> None:
        super().__init__()
        self.heads = heads
        angles_V = torch.linspace(-1.2, 1.2, 10)
        arc_V2 = radius * torch.stack([angles_V.cos(), angles_V.sin()], dim=1)
        axes_XD = torch.linalg.qr(torch.randn(width, 3 if height else 2))[0].T
        self.digits_VD = nn.Parameter(arc_V2 @ axes_XD[:2] + height * axes_XD[-1] + 0.05 * torch.randn(10, width))
        self.query, self.key = (nn.Linear(width, 2 * heads, bias=False) for _ in range(2))
        self.value = nn.Linear(width, values * heads, bias=False)
        self.output = nn.Linear(values * heads, width, bias=False)
        self.gate = None if "gate" in ties else nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = None if "down" in ties else nn.Linear(inner, width, bias=False)
        for map_ in (self.query, self.key):
            nn.init.normal_(map_.weight, std=sharpness)
            if height:
                map_.weight.data = math.sqrt(width) * map_.weight.data[:, :1] * axes_XD[-1]
        gains_ND = torch.full(({"all": 3, "last": 1, "none": 0}[gains], width), float(gain))
        gains_ND = gains_ND * torch.randn(gains_ND.shape).sign() if signs else gains_ND
        self.gains_ND = gains_ND if gains == "none" else nn.Parameter(gains_ND)
        self.head = None if tied else nn.Linear(width, 10, bias=False)
        fixed = isinstance(period, int | float)
        self.period = period if fixed else nn.Parameter(period[0] + (period[1] - period[0]) * torch.rand(()))

    def forward(self, ids_BT: torch.Tensor, answers: int | None = None) -> torch.Tensor:
        tokens = ids_BT.shape[1]
        first = 0 if answers is None else tokens - answers
        positions_T = torch.arange(tokens)
        x_BTD = self.digits_VD[ids_BT]
        normed_BTD = self.normed(x_BTD, 0)
        q_BHA2 = self.rotated(self.split(self.query(normed_BTD[:, first:])), positions_T[first:])
        k_BHT2 = self.rotated(self.split(self.key(normed_BTD)), positions_T)
        v_BHTW = self.split(self.value(normed_BTD))
        scores_BHAT = q_BHA2 @ k_BHT2.mT / math.sqrt(2)
        later_AT = positions_T > positions_T[first:, None]
        weights_BHAT = torch.softmax(scores_BHAT.masked_fill(later_AT, -math.inf), dim=-1)
        x_BAD = x_BTD[:, first:] + self.output((weights_BHAT @ v_BHTW).transpose(1, 2).flatten(2))
        normed_BAD = self.normed(x_BAD, 1)
        up_BAF = self.up(normed_BAD)
        gated_BAF = nn.functional.silu(up_BAF if self.gate is None else self.gate(normed_BAD)) * up_BAF
        x_BAD = x_BAD + (-gated_BAF @ self.up.weight if self.down is None else self.down(gated_BAF))
        last_BAD = self.normed(x_BAD, 2)
        return last_BAD @ self.digits_VD.T if self.head is None else self.head(last_BAD)

    def normed(self, x_BTD: torch.Tensor, which: int) -> torch.Tensor:
        normed_BTD = x_BTD * torch.rsqrt((x_BTD * x_BTD).mean(-1, keepdim=True) + 1e-6)
        own = which - 3 + len(self.gains_ND)  # the last ones have gains
        return normed_BTD * self.gains_ND[own] if own >= 0 else normed_BTD

    def split(self, x_BTD: torch.Tensor) -> torch.Tensor:
        return x_BTD.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def rotated(self, x_BHT2: torch.Tensor, positions_T: torch.Tensor) -> torch.Tensor:
        """Each pair of numbers turned by the same angle a token."""
        angles_T = positions_T * (2 * math.pi / self.period)
        one, other = x_BHT2.unbind(-1)
        cos, sin = angles_T.cos(), angles_T.sin()
        return torch.stack([one * cos - other * sin, one * sin + other * cos], dim=-1)


class ReducedAdder(nn.Module):
    """One layer of one head, with as few numbers as possible: V and O are one map; norms and biases that change nothing
    are left out.

    Each part that is a matrix in other transformers can have fewer numbers:
    embedding  table: ten points. arc: points on a circle, from radius, first angle and step. ramp: multiples of a step.
               unit: the digits themselves, because the step of a ramp can be moved into the weights after it.
    attention  content: queries and keys are linear in the tokens, in a plane that RoPE turns once in `period` tokens.
               position: queries and keys are the same for all tokens, so only an amplitude and a phase are learned.
    output     matrix: a matrix. identity: the mix of attention is added to the stream as it is.
    gates      free: each ReLU unit has an input and an output direction of its own. hinges: two units share both
               directions, and their outputs have opposite signs, which makes a step of finite slope. With width 1,
               there is no input direction to learn.
    head       free: ten vectors. tied: the embedding. nearest: the digit whose point in the embedding is nearest. tied
               and nearest first multiply each coordinate by a learned scale, like the gains of a last norm.
    The residual connection around attention has a learned scale too.
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
        logits_BAV = x_BAD * self.scale_D @ points_VD.T
        return logits_BAV if self.head == "tied" else logits_BAV - (points_VD**2).sum(-1) / 2

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


def build(config: AdderModelConfig) -> nn.Module:
    """A new model; its weights are drawn from torch's global generator."""
    classes = {"gpt": GptAdder, "tiny": TinyAdder, "reduced": ReducedAdder}
    return classes[config.kind](**config.model_dump(exclude={"kind"}))
