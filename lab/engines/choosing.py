"""Draws the next token of a request.

Shapes: V words in the vocabulary.
"""

import torch

from lab.engines.engine import Sampling


class Chooser:
    """Draws the tokens of one request from its own random stream, so they do not depend on the rest of the batch."""

    def __init__(self, sampling: Sampling, index: int) -> None:
        self.temperature, self.top_p = sampling.temperature or 1.0, sampling.top_p or 1.0
        self.generator = torch.Generator().manual_seed(sampling.seed_of(index))

    def __call__(self, logits_V: torch.Tensor) -> torch.Tensor:
        """Nucleus sampling (Holtzman et al. 2020): draws from the smallest set of most likely tokens whose
        probabilities add up to `top_p`."""
        sorted_V, tokens_V = torch.softmax(logits_V.float() / self.temperature, -1).sort(descending=True)
        before_V = sorted_V.cumsum(-1) - sorted_V
        drawn = torch.multinomial((sorted_V * (before_V < self.top_p)).cpu(), 1, generator=self.generator)
        return tokens_V[drawn[0]]
