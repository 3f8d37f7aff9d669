"""The public hand-coded family: width 2, numbers 19 tokens apart, rotary positions of period 19, a parabolic head."""

import math

import torch
from torch import nn

VOCAB_SIZE = 10
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    """A digit d is (large - d^2 / bend, -d): the first number is nearly constant, and carries queries and keys.

    Scores are cosines that are largest 10.3 tokens back, and 19 tokens before: 10 : 1 on this place and the one before.
    """

    def __init__(self):
        super().__init__()
        self.large, self.bend = (nn.Parameter(torch.tensor(number)) for number in (1000.0, 200.0))
        turned = 10.3 * 2 * math.pi / 19
        self.query = nn.Parameter(52.9 * torch.tensor([math.cos(turned), -math.sin(turned)]))
        self.output = nn.Parameter(torch.tensor(-22 * 1000 / math.sqrt(2)))
        self.edges = nn.Parameter(torch.tensor([94.0, 95.0]))
        self.fall = nn.Parameter(torch.tensor(100.0))

    def embedded(self, digits):
        return torch.stack([self.large - digits**2 / self.bend, -digits], -1)

    def normed(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def rotated(self, x):
        angles = torch.arange(x.shape[-2]) * (2 * math.pi / 19)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack([x[..., 0] * cos - x[..., 1] * sin, x[..., 0] * sin + x[..., 1] * cos], -1)

    def forward(self, ids):
        x = self.embedded(ids.float())
        h = self.normed(x)
        q = self.rotated(h[..., :1] * self.query)
        k = self.rotated(torch.cat([h[..., :1], 0 * h[..., :1]], -1))
        ahead = torch.triu(torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool), 1)
        weights = torch.softmax((q @ k.mT).masked_fill(ahead, -math.inf), -1)
        second = x[..., 1] + self.output * (weights @ h[..., 1:])[..., 0]
        hinges = torch.relu(second[..., None] - self.edges)
        second = second - self.fall * (hinges[..., 0] - hinges[..., 1])
        last = self.normed(torch.stack([x[..., 0], -second], -1))
        return last @ self.embedded(torch.arange(10.0)).mT


def build_model():
    return Adder()


def encode(a, b):
    return [0, *map(int, reversed(f"{a:010}")), *[0] * 9, *map(int, reversed(f"{b:010}")), 0]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
