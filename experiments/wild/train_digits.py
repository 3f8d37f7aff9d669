"""Trains the second reading on pairs of numbers of at most eight digits.

python -m experiments.wild.train_digits out=FOLDER steps=600 seed=0
"""

import json
import sys
import time
from pathlib import Path
from random import Random

import torch
from torch.nn import functional

from experiments.wild.digits import Pair, drawn, expected
from lab.config.schema import ModelConfig
from lab.models.pretrained import load
from lab.second_reading.adapted import OPERATIONS, Grid, SecondReading, Written, grid

SHARES = {"add": 0.45, "subtract": 0.35, "compare": 0.2}


def batch(size: int, longest: int, rng: Random) -> list[Pair]:
    """Pairs of numbers; the longest number of all has at most `longest` digits."""
    return [drawn(rng.choices(OPERATIONS, list(SHARES.values()))[0], rng.randint(1, longest), rng) for _ in range(size)]


def loss(written: Written, told: Grid, expected_NP: torch.Tensor, walk_weight: float) -> torch.Tensor:
    logits_NPV = written.logits_NPV
    return functional.cross_entropy(logits_NPV.flatten(0, 1), expected_NP.flatten()) + walk_weight * missed_stops(
        written.walks, told
    )


def decisive(grid: Grid) -> torch.Tensor:
    """The places that decide what the places above them need to know, (N, P): those whose digits do not add up to nine
    in a sum, and those whose digits differ otherwise."""
    adds_N1 = (grid.operation_N == OPERATIONS.index("add"))[:, None]
    return torch.where(adds_N1, grid.first_NP + grid.second_NP != 9, grid.first_NP != grid.second_NP)


def missed_stops(walks: list[torch.Tensor], grid: Grid) -> torch.Tensor:
    """The negative logarithm of the probability that a walking head stops at the highest decisive place below its
    blank, or, if there is none, that it does not stop; the mean over layers, heads and blanks but the lowest."""
    decides_NPP = decisive(grid)[:, None] & torch.ones(2 * grid.first_NP.shape[1:], dtype=torch.bool).tril(-1)
    none_above = decides_NPP.flip(-1).cumsum(-1).flip(-1) == 1
    right_NPP = decides_NPP & none_above
    walks_SNHPP = torch.stack(walks)
    stopped = (walks_SNHPP * right_NPP[:, None]).sum(-1)
    chance = torch.where(decides_NPP.any(-1)[:, None], stopped, 1 - walks_SNHPP.sum(-1))
    return -chance.clamp(min=1e-30).log()[..., 1:].mean()


@torch.no_grad()
def exact(reading: SecondReading, pairs: list[Pair]) -> list[bool]:
    """Whether each answer is right; of a comparison, only the highest place counts."""
    told = grid(pairs)
    found, right = reading(told).logits_NPV.argmax(-1), expected(pairs, told.first_NP.shape[1])
    same = found == right
    return [bool(row[-1] if pair[0] == "compare" else row.all()) for row, pair in zip(same, pairs, strict=True)]


def train(
    out: Path,
    steps: int,
    seed: int,
    longest: int = 8,
    parts: int = 1,
    size: int = 96,
    rate: float = 1.5e-3,
    walk_weight: float = 0.2,
    rank: int = 8,
) -> None:
    torch.manual_seed(seed)
    model, tokenizer = load(ModelConfig(name="smollm2-135m-instruct"))
    model.requires_grad_(False)
    reading, rng, done = SecondReading(model, tokenizer, rank), Random(seed), 0
    biases = [reading.digit_bias, reading.walk_bias]
    others = [part for part in reading.parameters() if all(part is not bias for bias in biases)]
    optimizer = torch.optim.AdamW([{"params": others, "lr": rate}, {"params": biases, "lr": 0.1}], weight_decay=0)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1, (step + 1) / 20) * 0.5 * (1 + torch.cos(torch.tensor(step / steps * 3.14159)).item()),
    )
    out.mkdir(parents=True, exist_ok=True)
    state = out / "state.pt"
    if state.exists():
        saved = torch.load(state, weights_only=False)
        reading.load_state_dict(saved["reading"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["schedule"])
        rng.setstate(saved["rng"])
        done = saved["step"]
    valid = {
        f"{operation} {length}": [drawn(operation, length, Random(f"{operation}{length}{i}")) for i in range(16)]
        for operation in OPERATIONS
        for length in (8, 20, 100)
    }
    began = time.time()
    for step in range(done, steps):
        total = 0.0
        for _ in range(parts):
            pairs = batch(size, longest, rng)
            told = grid(pairs)
            part = loss(reading(told), told, expected(pairs, told.first_NP.shape[1]), walk_weight) / parts
            part.backward()
            total += part.item()
        torch.nn.utils.clip_grad_norm_(reading.parameters(), 1)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 10 == 0:
            print(
                json.dumps({"step": step, "loss": round(total, 5), "minutes": round((time.time() - began) / 60, 2)}),
                flush=True,
            )
        if (step + 1) % 25 == 0 or step + 1 == steps:
            rights = {name: sum(exact(reading, pairs)) for name, pairs in valid.items()}
            print(json.dumps({"step": step + 1, "of 16": rights}), flush=True)
            torch.save(
                {
                    "reading": reading.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "rng": rng.getstate(),
                    "schedule": schedule.state_dict(),
                    "step": step + 1,
                },
                state.with_suffix(".new"),
            )
            state.with_suffix(".new").rename(state)


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    train(Path(given["out"]), int(given.get("steps", 600)), int(given.get("seed", 0)), rank=int(given.get("rank", 8)))
