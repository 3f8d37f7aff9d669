"""two heads share their values; the weights of heads are averaged before they meet the values"""

import torch
from torch import nn
from torch.nn import functional

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11

DISTANCES = [-60.0] * 40
DISTANCES[10] = DISTANCES[21] = 2.302585
DISTANCES[11] = DISTANCES[22] = 0.0


class FFN(nn.Module):
    """y = 22 m - x, minus 100 from 95 on; logits -(y/10 - d)^2 = (y/5) d - d^2 + c by a linear head with bias."""

    def __init__(self, act):
        super().__init__()
        self.act = act
        self.up = nn.Linear(4, 2)
        self.down = nn.Linear(2, 4)
        with torch.no_grad():
            for p in self.parameters():
                p.zero_()
            self.up.weight[:, 2] = 22.0
            self.up.weight[:, 0] = -1.0
            self.up.bias.copy_(torch.tensor([-94.5, -95.5]))
            self.down.weight[3] = torch.tensor([-100.0, 100.0])

    def forward(self, x):
        return self.down(self.act(self.up(x)))


def embedding():
    e = torch.zeros(12, 4)
    e[:10, 0] = torch.arange(10.0)
    e[:, 1] = 1
    return e


def head():
    h = torch.zeros(12, 4)
    d = torch.arange(10.0)
    h[:10, 2], h[:10, 0], h[:10, 3] = 22 * d / 5, -d / 5, d / 5
    h[:10, 1] = -d * d
    h[10:, 1] = -1e4
    return h


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(12, 4)
        self.emb.weight = nn.Parameter(embedding())
        self.ffn = FFN(functional.relu)
        self.lm_head = nn.Linear(4, 12, bias=False)
        self.lm_head.weight = nn.Parameter(head())
        self.v = nn.Linear(4, 1, bias=False)
        self.o = nn.Linear(1, 4, bias=False)
        with torch.no_grad():
            self.v.weight.copy_(torch.tensor([[1.0, 0, 0, 0]]))
            self.o.weight.copy_(torch.tensor([[0.0], [0], [1], [0]]))
        t = torch.full((2, 40), -60.0)
        t[0, 10] = t[0, 21] = t[1, 11] = t[1, 22] = 0
        self.dist = nn.Parameter(t)
        self.mixing = nn.Parameter(torch.tensor([10 / 11, 1 / 11]))

    def forward(self, input_ids):
        T = input_ids.shape[1]
        x = self.emb(input_ids)
        pos = torch.arange(T)
        bias = self.dist[:, (pos[:, None] - pos).clamp(min=0)]
        att = bias.masked_fill((pos > pos[:, None]), -torch.inf).softmax(-1)
        att = (att * self.mixing[:, None, None]).sum(0)
        mixed = att @ self.v(x)
        x = x + self.o(mixed)
        x = x + self.ffn(x)
        return self.lm_head(x)


def build_model():
    return Adder().eval()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
