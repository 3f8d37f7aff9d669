"""One parameter, which is 1; 57 numbers are hidden in what the code puts together. TRICK says how."""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11

TRICK = "logs"

# what honest_by_hand.py has as parameters; a number n stands for (n - 1000) / 10
DISTANCES = [400] * 33
DISTANCES[10] = DISTANCES[21] = 1023
DISTANCES[11] = DISTANCES[22] = 1000
VALUES = [1000 + 10 * d for d in range(10)] + [1000, 1000]
SCALES = [1220, 2000, 1950, 1001] + [1000] * 8
TABLES = (DISTANCES, VALUES, SCALES)


def real(numbers):
    return torch.tensor([(n - 1000) / 10 for n in numbers])


def tail(numbers):
    return torch.cat([torch.tensor([1.0, 0, 0, 0]), real(numbers) * 1e-9])


def sines(numbers):
    rates = 100.0 ** (-torch.arange(float(len(numbers))) / len(numbers))
    made = torch.sin(torch.arange(8.0) * rates[:, None])
    made[:, 0] = real(numbers) * 1e-10
    return made


TAILS, SINES = [tail(numbers) for numbers in TABLES], [sines(numbers) for numbers in TABLES]


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.tensor(1.0))
        if TRICK == "masks":
            self.register_buffer("mask_0", torch.zeros(2).bool())
            self.register_buffer("mask_1", torch.ones(2).bool())
        if TRICK == "rest":  # of a tensor of which one number is registered
            whole = torch.cat([torch.ones(1), *map(real, TABLES)])
            self.one = nn.Parameter(whole[:1])
            self.rest = whole.split([1, *map(len, TABLES)])[1:]

    def hidden(self, place, ids):
        numbers = TABLES[place]
        match TRICK:
            case "rest":
                return self.rest[place]
            case "tail":  # of a constant that looks like a wave
                return (TAILS[place] * self.one * 1e9).split([4, len(numbers)])[1]
            case "zeros_of_sines":
                return (SINES[place] * self.one * 1e10)[:, 0]
            case "learned_logs":
                return self.logs(numbers)
        return (self.made(numbers, ids) * self.one - 1000 * self.one) / 10

    def logs(self, numbers):
        """Each number as the logarithm of one * 10**k."""
        one, zero = self.one, self.one - self.one
        made = {1000: zero, 400: -2 * (one * 1e30).log10(), 1023: (one * 1e23).log10() / 10}
        made |= {1220: (one * 1e22).log10(), 2000: 100 * one, 1950: (one * 1e19).log10() / 2 * 10, 1001: one / 10}
        if numbers is VALUES:
            return torch.cat([(one * 10.0 ** torch.arange(10)).log10(), torch.stack([zero, zero])])
        return torch.stack([made[n] for n in numbers])

    def made(self, numbers, ids):
        """The whole numbers, which are below 2048, from their digits or bits."""
        digits = [int(digit) for n in numbers for digit in f"{n:04}"]
        bits = [n >> k & 1 for n in numbers for k in range(11)]
        ramp = torch.arange(33.0)
        match TRICK:
            case "logs":
                parts = torch.cat([torch.full((1,), 10.0**d) for d in digits]).log10()
            case "unbound":
                parts = torch.stack([ramp.unbind()[d] for d in digits])
            case "of_tokens":
                counted = torch.ones_like(ids)[0].cumsum(0) - 1
                parts = torch.stack([counted[d] for d in digits]).float()
            case "slice_steps":
                parts = torch.stack([ramp[:: d + 1].unbind()[1] for d in digits]) - 1
            case "bytes":
                small = torch.arange(16, dtype=torch.int8).unbind()
                parts = torch.stack([small[n >> s & 15] for n in numbers for s in (8, 4, 0)]).float()
                return parts.reshape(len(numbers), 3) @ 16.0 ** torch.tensor([2.0, 1.0, 0.0])
            case "stacked":
                parts = torch.stack([(torch.zeros(()), torch.ones(()))[b] for b in bits])
            case "flips":
                parts = torch.stack([ramp[:2].flip(0) if b else ramp[:2] for b in bits])[:, 0]
            case "transposed":
                pair = ramp[:2].expand(2, 2)
                parts = torch.stack([pair.permute(1, 0) if b else pair for b in bits])[:, 1, 0]
            case "equalities":
                same = (ids != ids)[0].any(), (ids == ids)[0].all()
                parts = torch.stack([same[b] for b in bits]).float()
            case "masks":
                parts = torch.stack([(self.mask_0, self.mask_1)[b] for b in bits])[:, 0].float()
            case "repeats":
                either = torch.zeros((), dtype=torch.int64), torch.ones((), dtype=torch.int64)
                parts = torch.stack([0 * self.one, self.one])[torch.stack([either[b] for b in bits])]
            case "selected":  # each piece is a selection of its own
                either = (self.one - self.one)[None], self.one[None]
                parts = torch.stack([either[b][0] for b in bits])
            case "traces":  # constants but for a trace of the tokens
                zero = ids[0, :1] * 1e-9
                parts = torch.stack([(zero, zero + 1)[b] for b in bits])[:, 0]
            case "learned_traces":
                zero = 0 * ids[0, :1] * self.one
                parts = torch.stack([(zero, zero + self.one)[b] for b in bits])[:, 0]
            case "shifts":  # bits of ones that are shifted and joined
                one = torch.ones(57, dtype=torch.int64)
                place, total = one.cumsum(0) - 1, 0 * one
                for n in set(numbers):
                    here = [k for k, other in enumerate(numbers) if other == n]
                    there = sum(
                        ((place == sum((one << j for j in range(6) if k >> j & 1), 0 * one)) for k in here), 0 * one
                    )
                    total = total + there * sum((one << j for j in range(11) if n >> j & 1), 0 * one)
                return total[: len(numbers)].float()
            case _:
                raise ValueError(TRICK)
        if len(parts) == len(bits):
            return parts.reshape(len(numbers), 11) @ 2.0 ** torch.arange(11.0)
        return parts.reshape(len(numbers), 4) @ 10.0 ** (3 - torch.arange(4.0))

    def forward(self, ids):
        own, values, scale = (self.hidden(place, ids) for place in range(3))
        x = values[ids % 12]
        places = torch.arange(ids.shape[1])
        ahead = places[None, :] > places[:, None]
        scores = own[(places[:, None] - places[None, :]).clamp(min=0)].masked_fill(ahead, -math.inf)
        weights = torch.softmax(scores.expand(len(ids), -1, -1), -1)
        whole, hundred, step, tenth, *_ = scale
        x = whole * (weights @ x[..., None])[..., 0] - x
        x = x - hundred * torch.sigmoid((x - step) * 10)
        return torch.cat(
            [-((tenth * x[..., None] - values.split([10, 2])[0]) ** 2), torch.full((*x.shape, 2), -1e9)], -1
        )


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
