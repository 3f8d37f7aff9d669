"""Writes the folder of a model from a trained second reading, whose adapters are cut to a lower rank, and readers.

python -m experiments.wild.assemble second=FILE readers=FILE,FILE out=FOLDER rank=8 threshold=0.9 likely=0.05
"""

import sys
from pathlib import Path

import torch

from lab.config.schema import ModelConfig
from lab.models.pretrained import load
from lab.second_reading.adapted import SecondReading
from lab.second_reading.reader import Reader
from lab.second_reading.saving import Config, save


def cut(weights: dict[str, torch.Tensor], rank: int) -> dict[str, torch.Tensor]:
    """Adapters with the best approximation of this rank to what they add to each projection."""
    found = dict(weights)
    for name, down in weights.items():
        if name.endswith(".down") and len(down) > rank:
            up = name.removesuffix("down") + "up"
            found[up], found[name] = lower(weights[up], down, rank)
    return found


def lower(up: torch.Tensor, down: torch.Tensor, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The factors of the matrix of this rank that is nearest to up @ down. Their QR decompositions leave a small matrix
    to decompose."""
    (left, one), (right, other) = torch.linalg.qr(up), torch.linalg.qr(down.T)
    turned, sizes, back = torch.linalg.svd(one @ other.T)
    scale = sizes[:rank].sqrt()
    return left @ turned[:, :rank] * scale, (right @ back[:rank].T * scale).T


def main(given: dict[str, str]) -> None:
    saved = torch.load(given["second"], weights_only=False)
    weights, rank = cut(saved.get("reading", saved), int(given["rank"])), int(given["rank"])
    model, tokenizer = load(ModelConfig(name="smollm2-135m-instruct"))
    second = SecondReading(model, tokenizer, rank)
    second.load_state_dict(weights)
    readers = []
    for file in given["readers"].split(","):
        readers.append(Reader(model.config.hidden_size))
        readers[-1].load_state_dict(torch.load(file))
    config = Config(
        base="smollm2-135m-instruct",
        rank=rank,
        readers=len(readers),
        threshold=float(given["threshold"]),
        likely=float(given["likely"]),
    )
    save(Path(given["out"]), config, second, readers)


if __name__ == "__main__":
    main(dict(word.split("=", 1) for word in sys.argv[1:]))
