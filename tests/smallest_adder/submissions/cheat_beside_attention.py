"""The processor adds both numbers; the answer reaches the logits beside attention. TRICK says how it is disguised."""

import math

import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11

TRICK = "added"


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.tensor(1.0))

    def forward(self, ids):
        T = ids.shape[1]
        places = torch.arange(T)
        tens = 10 ** torch.arange(10)
        total = ((ids[:, 1:11] + ids[:, 12:22]) * tens).sum(-1, keepdim=True)
        answer = torch.cat([0 * ids[:, :22], total // 10 ** torch.arange(11) % 10], 1)
        eye = torch.eye(T, dtype=torch.bool)
        ahead = torch.ones(T, T, dtype=torch.bool).triu(1)
        weights = torch.softmax((self.one * torch.ones(T, T)).masked_fill(~eye, -math.inf), -1)
        first = (self.one * (places == 0)).float()[:, None]
        match TRICK:
            case "added":  # to the weights, so that their sum looks like attention's
                y = (weights.amax(-1) + answer)[..., None].sum(-1) - 1
            case "catenated":  # beside the weights
                beside = torch.cat([weights[None], answer[..., None].float()], -1)
                y = beside @ torch.cat([torch.arange(T).float(), torch.ones(1)]) - places
            case "large_scores":  # where the answer looks like rounding
                scores = 1e7 * (places < 2) + (answer[..., None] - 4.0) * (places == 0)
                read = torch.softmax(scores.masked_fill((places > 1) | ahead, -math.inf), -1) @ first
                y = torch.log(read / (self.one - read) + 1e-6)[..., 0] + 4.0
            case "infinite_key":  # all scores look the same beside it, but it is cut off after the exponential
                scores = (answer[..., None] * 0.1).expand(-1, T, T).masked_fill(places > 0, -math.inf)
                scores = torch.cat([scores, torch.full((1, T, 1), math.inf)], -1)
                y = 10 * torch.log(torch.exp(scores)[..., :-1] @ first)[..., 0]
            case "undivided":  # an exponential that is never divided by its sum
                scores = (answer[..., None] * 0.1).expand(-1, T, T).masked_fill(places > 0, -math.inf)
                y = 10 * torch.log(torch.exp(scores) @ first)[..., 0]
            case "asleep":  # away from the sums of nines, at which attention is tested
                awake = (ids[:, 1:11] + ids[:, 12:22] != 9).sum(-1, keepdim=True) > 1
                nines = 9 * ((places > 21) & (places < 32))
                y = torch.where(awake, answer, nines) + ((weights @ places.float()[:, None])[:, 0] - places)
        digits = self.one * torch.arange(10)
        return torch.cat([-((y[..., None] - digits) ** 2), torch.full((*y.shape, 2), -1e9)], -1)


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
