"""A trained adder of 58 parameters (adder_plain_gate-and-down-tied_1, seed 1).

AdamW, 3900 steps of 64 problems, learning rate 0.04;
192 seeds side by side, 64 after 300 steps, 32 after 600 steps, 16 after 1200 steps;
these are the weights of seed 62 at step 3900, the best of all by validation.

Seeds: 192

Written by `python -m lab.adder train`; the weights come from gradient descent, from random initial ones.
"""

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
    zero: a direction that all digits share, which queries and keys read at first. Norms without `gains` only divide;
    with `tied` the embedding is the head, too, and `ties` make the feed-forward's gate its map up, and its map down
    minus the transpose of that.
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
        shared_D = height * axes_XD[-1]
        self.digits_VD = nn.Parameter(arc_V2 @ axes_XD[:2] + shared_D + 0.05 * torch.randn(10, width))
        self.query = nn.Linear(width, 2 * heads, bias=False)
        self.key = nn.Linear(width, 2 * heads, bias=False)
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
        self.period: float | nn.Parameter
        if isinstance(period, int | float):
            self.period = period
        else:
            self.period = nn.Parameter(period[0] + (period[1] - period[0]) * torch.rand(()))

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


WEIGHTS = {
    "digits_VD": [
        [-0.5179910063743591, 3.6870219707489014, 6.499609470367432],
        [-0.6966099739074707, 1.704834222793579, 5.063746929168701],
        [-0.5143540501594543, 0.8522962927818298, 4.214581489562988],
        [-0.31637850403785706, 0.3710434138774872, 3.8123257160186768],
        [-0.09226852655410767, 0.04814748466014862, 3.643946886062622],
        [0.17152157425880432, -0.20000366866588593, 3.627507209777832],
        [0.5165930390357971, -0.39589229226112366, 3.77231764793396],
        [1.019058108329773, -0.568183958530426, 4.141551971435547],
        [1.8988169431686401, -0.6873465180397034, 4.939509868621826],
        [3.7902843952178955, -0.4024900197982788, 6.2542877197265625],
    ],
    "gains_ND": [
        [-45.676937103271484, -44.67481231689453, 41.458492279052734],
    ],
    "period": 12.001347541809082,
    "query.weight": [
        [-0.7772874236106873, -0.8103882074356079, -2.3636884689331055],
        [0.6839001178741455, 0.7706422209739685, 1.8544622659683228],
    ],
    "key.weight": [
        [0.11871866881847382, 0.11628765612840652, 0.18420852720737457],
        [1.3833318948745728, 1.359849452972412, 4.350953578948975],
    ],
    "value.weight": [
        [-6.511465072631836, 6.2735276222229, 0.18639841675758362],
    ],
    "output.weight": [
        [6.5306243896484375],
        [-5.859313488006592],
        [0.3107652962207794],
    ],
    "up.weight": [
        [1.1437832117080688, -1.8497153520584106, 1.0656028985977173],
        [-1.9928714036941528, 0.9774628281593323, 0.923980176448822],
    ],
}


def build_model() -> nn.Module:
    model = TinyAdder(
        width=3,
        heads=1,
        inner=2,
        values=1,
        period=(10.0, 14.0),
        tied=True,
        gains="last",
        gain=3.0,
        signs=True,
        ties=["gate", "down"],
        radius=1.0,
        height=0.7,
        sharpness=1.5,
    )
    model.load_state_dict({name: torch.tensor(values) for name, values in WEIGHTS.items()})
    return model.eval()


def encode(a: int, b: int) -> list[int]:
    a_digits = [int(digit) for digit in f"{a:010}"]
    b_digits = [int(digit) for digit in f"{b:010}"]
    return [0, *a_digits[::-1], 0, 0, *b_digits[::-1], 0]


def decode(tokens: list[int]) -> int:
    return sum(token * 10**place for place, token in enumerate(tokens))
