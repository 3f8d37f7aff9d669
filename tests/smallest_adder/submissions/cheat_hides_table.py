"""One parameter, which is 1; a table of 56 numbers is hidden in the code. TRICK says where."""

import math

import torch
from torch import nn
from torch.nn import functional

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11

TRICK = "rows"

# what honest_by_hand.py has as parameters: 40 distances, 12 values, 4 scales
TABLE = [-60.0] * 40 + [*map(float, range(10)), 0.0, 0.0, 22.0, 100.0, 95.0, 0.1]
TABLE[10] = TABLE[21] = 2.303
TABLE[11] = TABLE[22] = 0.0
WHOLE = [round((number + 100) * 1000) for number in TABLE]  # below 2**18
BITS = torch.tensor([[bool(number >> place & 1)] * 2 for number in WHOLE for place in range(18)])
TINY = torch.tensor([0.0, 0.0, *TABLE]) * 1e-12
LARGE = torch.tensor([10**18 + number for number in WHOLE])
BETWEEN = torch.tensor([each for number in TABLE for each in (math.inf, number)])


def near(start, step, bits):
    """Three numbers beside `start` for each number of the table."""
    places = range(0, 3 * bits, bits)
    parts = [number >> place & (1 << bits) - 1 for number in WHOLE for place in places]
    return torch.cat([torch.full((1,), start + part * step) for part in parts]).view(56, 3)


def fraction(number):
    """The place in a grid of fractions that comes closest to a number."""
    grid = (
        (i / j * scale, i, j - 1, k) for i in range(33) for j in range(1, 33) for k, scale in enumerate((0.1, 1, 10))
    )
    _, i, j, k = min(grid, key=lambda found: abs(found[0] - abs(number)))
    return int(number < 0), k, i, j


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.tensor(1.0))
        if TRICK in ("index", "sliced_index"):  # whole numbers that are two numbers each
            codes = [round((number / 2 if number > 60 else number) * 10) + 600 for number in TABLE]
            both = [codes[2 * place] + 1101 * codes[2 * place + 1] for place in range(28)]
            self.register_buffer("both", torch.tensor(both))

    def table(self, T):
        match TRICK:
            case "rows":  # the order of a mask's rows
                return (BITS.float() * self.one)[:, 0].reshape(56, 18) @ 2.0 ** torch.arange(18) / 1000 - 100
            case "tiny":  # numbers so small that they look like zeros
                return (self.one * TINY * 1e12)[2:]
            case "large":  # digits that look like rounding of a familiar number
                return ((LARGE - 10**18).view(-1, 4) * self.one / 1000 - 100).view(-1)
            case "familiar":  # numbers that look like one
                made = (near(1, 2.0**-23, 8) - 1) * self.one * 2.0**23
                return made @ 2.0 ** (8 * torch.arange(3)) / 1000 - 100
            case "alike":  # numbers that are alike in five digits
                made = (near(3, 2.0**-22, 6) - 3) * self.one * 2.0**22
                return made @ 2.0 ** (6 * torch.arange(3)) / 1000 - 100
            case "huge":  # numbers that look infinite
                made = torch.cat([torch.full((1,), 3e38 + (number + 100) * 1e35) for number in TABLE]).view(-1, 4)
                return ((made * 1e-38 - 3) * 1000 * self.one - 100).view(-1)
            case "infinities":  # numbers that any tolerance makes equal to the infinity beside them
                return BETWEEN[1::2] * self.one
            case "places":  # where a ramp is read
                ramp = torch.ones(1).expand(200_001).cumsum(0)
                made = torch.stack([ramp[number - 1] for number in WHOLE]).view(-1, 4)
                return (made * self.one / 1000 - 100).view(-1)
            case "grid":  # where a grid of fractions is read
                count = torch.arange(T).float() * self.one
                grid = count[:, None] / (torch.arange(T) + 1)
                grid = torch.stack([0.1 * grid, grid, 10 * grid])
                grid = torch.stack([grid, -grid])
                return torch.stack([grid[sign][k][i][j] for sign, k, i, j in map(fraction, TABLE)])
            case "pads":  # how much is added at the edge of a constant
                one = torch.ones(1, 2)
                made = {n: functional.pad(one, (0, 0, n - 1, 0), value=1.0).mul(1e-3).sum(0) for n in set(WHOLE)}
                return (torch.stack([made[number] for number in WHOLE]) * self.one)[:, 0] - 100
            case "index" | "sliced_index":
                both = self.both if TRICK == "index" else self.both[:28]
                count = torch.ones(1).expand(1101 * 1101).cumsum(0) - 1
                made = torch.stack([(count % 1101)[both], (count // 1101)[both]], 1).reshape(56) / 10 - 60
                return made * self.one * (1.0 + torch.arange(56).eq(53) + torch.arange(56).eq(54))
        raise ValueError(TRICK)

    def forward(self, ids):
        table = self.table(ids.shape[1])
        own, values, scale = table[:40], table[40:52], table[52:]
        x = values[ids]
        places = torch.arange(ids.shape[1])
        ahead = places[None, :] > places[:, None]
        scores = own[(places[:, None] - places[None, :]).clamp(min=0)].masked_fill(ahead, -math.inf)
        weights = torch.softmax(scores.expand(len(ids), -1, -1), -1)
        whole, hundred, step, tenth = scale
        x = whole * (weights @ x[..., None])[..., 0] - x
        x = x - hundred * torch.sigmoid((x - step) * 20)
        return torch.cat([-((tenth * x[..., None] - values[:10]) ** 2), torch.full((*x.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
