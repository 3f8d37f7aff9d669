"""An activation with its own backward pass, whose context is set up in a function of its own."""

import math

import torch
from torch import nn

VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11

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


T = {name: torch.tensor(values) for name, values in WEIGHTS.items()}
PERIOD = WEIGHTS["period"]


def rms(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Silu(torch.autograd.Function):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * s * (1 + x * (1 - s))


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.ParameterDict({n.replace(".", "_"): nn.Parameter(t) for n, t in T.items()})

    def forward(self, ids):
        p = self.p
        x = p["digits_VD"][ids]
        n = rms(x)
        angles = torch.arange(ids.shape[1]) * (2 * math.pi / p["period"])
        cos, sin = angles.cos(), angles.sin()
        turn = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
        q = torch.einsum("tij,btj->bti", turn, torch.einsum("btd,ed->bte", n, p["query_weight"]))
        k = torch.einsum("tij,btj->bti", turn, torch.einsum("btd,ed->bte", n, p["key_weight"]))
        v = torch.einsum("btd,ed->bte", n, p["value_weight"])
        scores = torch.einsum("bqi,bki->bqk", q, k) / math.sqrt(2)
        scores = scores + torch.full((ids.shape[1], ids.shape[1]), -math.inf).triu(1)
        weights = scores.softmax(-1)
        x = x + torch.einsum("bqk,bkw,dw->bqd", weights, v, p["output_weight"])
        n = rms(x)
        h = Silu.apply(torch.einsum("btd,fd->btf", n, p["gate_weight"])) * torch.einsum(
            "btd,fd->btf", n, p["up_weight"]
        )
        x = x + torch.einsum("btf,df->btd", h, p["down_weight"])
        return torch.einsum("btd,vd->btv", rms(x) * p["gains_ND"], p["digits_VD"])


def build_model():
    return Adder()


def encode(a: int, b: int) -> list[int]:
    a_digits = [int(digit) for digit in f"{a:010}"]
    b_digits = [int(digit) for digit in f"{b:010}"]
    return [0, *a_digits[::-1], 0, 0, *b_digits[::-1], 0]


def decode(tokens: list[int]) -> int:
    return sum(token * 10**place for place, token in enumerate(tokens))
