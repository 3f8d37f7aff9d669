"""Judges a declared adder: how many sums it writes right in the growing loop, how many numbers it has, and what its
attention does."""

import math
import random
import secrets
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

from lab.adders.count import count
from lab.adders.loop import generate, read_answers
from lab.adders.model import DeclaredModel, Watch
from lab.adders.problems import Pair, drawn, problems
from lab.adders.rows import prompts
from lab.adders.spec import Adder, Attention
from lab.adders.verdict import Looks, Verdict

DRAWS, EACH = 5, 200
"""Attention is measured on five fixed draws of so many problems, so that its label is the same each time."""
SAME = 0.9
"""The share of answers that must stay as they are, if attention is to be called replaceable."""
ACTIVATIONS_AT_ONCE = 4_000_000


class OutOfTime(Exception):  # noqa: N818
    pass


def judge(adder: Adder, seed: int | None = None, number: int = 10_000, seconds: float = 600) -> Verdict:
    """The verdict on a declared adder.

    Args:
        adder: the adder.
        seed: the seed of the random problems; drawn if not given.
        number: how many random problems, besides the ten edge cases.
        seconds: how long this may take. If it takes longer, the adder does not qualify.
    """
    seed = secrets.randbits(63) if seed is None else seed
    pairs, began = problems(seed, number), time.monotonic()
    runner = Runner(adder, began + seconds)
    objections, right, looks = [], 0, None
    try:
        looks = runner.looks()
        right = sum(found == a + b for (a, b), found in zip(pairs, runner.add(pairs), strict=True))
    except OutOfTime:
        objections.append(f"no verdict within {seconds:,.0f} seconds")
    if looks and looks.kind == "mlp":
        objections.append("has no attention")
    counted = count(adder)
    return Verdict(
        "declared", right, len(pairs), seed, counted.parameters, counted.all, looks, adder.category, adder.seeds,
        objections, time.monotonic() - began,
    )  # fmt: skip


class Runner:
    """A declared adder that is run in the growing loop until its time is up."""

    def __init__(self, adder: Adder, end: float = math.inf) -> None:
        self.adder, self.end, self.model = adder, end, DeclaredModel(adder)
        largest = max((size for table in adder.numbers.values() for size in np.shape(table)), default=1)
        heads = max((part.heads for _, _, part in adder.model.parts() if isinstance(part, Attention)), default=1)
        self.at_once = max(1, min(2000, ACTIVATIONS_AT_ONCE // (adder.tokens * max(largest, heads * adder.tokens))))

    def add(self, pairs: Sequence[Pair]) -> list[int | None]:
        """The sums that it writes; None where it writes no number."""
        return read_answers(self.adder, self.written(prompts(self.adder, pairs)))

    def written(self, prompts_BT: np.ndarray, weights: Sequence[torch.Tensor] | None = None) -> np.ndarray:
        """The tokens that it writes; with other attention weights, if these are given."""
        return generate(self._next(weights), prompts_BT, len(self.adder.answer), self.at_once)

    def _next(self, weights: Sequence[torch.Tensor] | None) -> Callable[[np.ndarray], np.ndarray]:
        @torch.inference_mode()
        def logits(ids_BT: np.ndarray) -> np.ndarray:
            if time.monotonic() > self.end:
                raise OutOfTime
            return self.model(torch.from_numpy(ids_BT), 1, watch=Watch(instead=weights))[:, -1].numpy()

        return logits

    def looks(self) -> Looks:
        """What attention does: its own weights against mean and equal ones."""
        if not any(kind == "attention" for _, kind, _ in self.adder.model.parts()):
            return Looks("mlp", 0.0, 1.0, 1.0, 0)
        generator = random.Random("attention")
        kept, moves = [], 0.0
        for _ in range(DRAWS):
            prompts_BT = prompts(self.adder, drawn(generator, EACH))
            own = self.written(prompts_BT)
            weights, moved = self.weights(np.concatenate([prompts_BT, own[:, :-1].clip(0)], axis=1))
            moves = max(moves, moved)
            for instead in (weights, [equal(self.adder.tokens).to(weight.dtype) for weight in weights]):
                kept.append((self.written(prompts_BT, instead) == own).all(1).mean())
        mean, uniform = float(np.mean(kept[::2])), float(np.mean(kept[1::2]))
        kind = "pooling" if min(mean, uniform) >= SAME else "convolution" if mean >= SAME else "transformer"
        return Looks(kind, moves, mean, uniform, DRAWS * EACH)

    @torch.inference_mode()
    def weights(self, ids_BT: np.ndarray) -> tuple[list[torch.Tensor], float]:
        """The mean weights (H, T, T) of each attention, and how much a weight changes at most where answers are
        predicted."""
        everything: list[Watch] = []
        for start in range(0, len(ids_BT), self.at_once):
            if time.monotonic() > self.end:
                raise OutOfTime
            everything.append(Watch())
            self.model(torch.from_numpy(ids_BT[start : start + self.at_once]), watch=everything[-1])
        means, moved = [], 0.0
        for parts in zip(*(watch.seen for watch in everything), strict=True):
            weights_BHTT = torch.cat(parts)
            asking = weights_BHTT[:, :, -len(self.adder.answer) :]
            moved = max(moved, float((asking.amax(0) - asking.amin(0)).max()))
            means.append(weights_BHTT.mean(0))
        return means, moved


def equal(tokens: int) -> torch.Tensor:
    """Attention that weighs all tokens up to its own alike, (1, T, T)."""
    ones_TT = torch.ones(tokens, tokens).tril()
    return (ones_TT / ones_TT.sum(-1, keepdim=True))[None]
