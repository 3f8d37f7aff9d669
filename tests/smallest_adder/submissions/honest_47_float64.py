"""adder_47 in float64, einsum everywhere, mask by torch.where and finfo.min"""

import math

import torch
from torch import nn

CATEGORY = "trained"
VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11


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
        scores = torch.einsum("bhad,bhtd->bhat", q_BHA2, k_BHT2) * 2**-0.5
        seen = positions_T <= positions_T[first:, None]
        weights_BHAT = torch.where(seen, scores, torch.finfo(scores.dtype).min).softmax(-1)
        x_BAD = x_BTD[:, first:] + self.output(
            torch.einsum("bhat,bhtw->bhaw", weights_BHAT, v_BHTW).transpose(1, 2).flatten(2)
        )
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


WEIGHTS = {
    "digits_VD": [
        [0.7113694548606873, -9.123659133911133],
        [0.36639684438705444, -8.439927101135254],
        [0.12642648816108704, -8.150422096252441],
        [-0.0875452384352684, -7.998607635498047],
        [-0.2902699410915375, -7.940659999847412],
        [-0.4920271337032318, -7.960855007171631],
        [-0.7205146551132202, -8.074307441711426],
        [-0.9700709581375122, -8.282031059265137],
        [-1.3203740119934082, -8.718953132629395],
        [-1.9979243278503418, -9.859291076660156],
    ],
    "gains_ND": [[-206.2232666015625, 126.47537231445312]],
    "period": 11.99461555480957,
    "query.weight": [[-0.41190358996391296, -0.9709457159042358], [-0.7968856692314148, -2.4618072509765625]],
    "key.weight": [[-0.26376140117645264, -7.160071849822998], [-0.007678182329982519, -1.8192616701126099]],
    "value.weight": [[16.531940460205078, -0.5175264477729797]],
    "output.weight": [[-11.245615005493164], [-3.4439010620117188]],
    "gate.weight": [[0.5153660178184509, -0.21549054980278015], [-7.400349140167236, -4.445808410644531]],
    "up.weight": [[-5.7178778648376465, -0.8620249032974243], [0.06474924832582474, 1.3879401683807373]],
    "down.weight": [[4.83966588973999, -0.9711735844612122], [-4.281861305236816, -1.8633134365081787]],
}


def build_model() -> nn.Module:
    model = TinyAdder(
        width=2,
        heads=1,
        inner=2,
        values=1,
        period=(10.0, 14.0),
        tied=True,
        gains="last",
        gain=3.0,
        signs=True,
        ties=[],
        radius=1.0,
        height=0.0,
        sharpness=1.5,
    )
    model.load_state_dict({name: torch.tensor(values) for name, values in WEIGHTS.items()})
    return model.double().eval()


def encode(a: int, b: int) -> list[int]:
    a_digits = [int(digit) for digit in f"{a:010}"]
    b_digits = [int(digit) for digit in f"{b:010}"]
    return [0, *a_digits[::-1], 0, 0, *b_digits[::-1], 0]


def decode(tokens: list[int]) -> int:
    return sum(token * 10**place for place, token in enumerate(tokens))
