"""What the untouched model's states are over prompts, computed once, for the reader to learn from.

    python -m experiments.wild.states out=FOLDER split=train shards=12 prompts=500

A shard is a list of `Read`. Shard i of a split always has the same prompts.
"""

import sys
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch

from experiments.wild.problems import UNKNOWN, Prompt, prompt
from lab.config.schema import ModelConfig
from lab.models.pretrained import load

LAYERS = (8, 16)
"""The layers after which states are read. Those of layer 24 as well do not help."""


class Read(NamedTuple):
    """A prompt of T tokens, of which A are the last digit of a run of digits."""

    states_TLD: torch.Tensor
    last_A: list[int]
    """The last token of each run of digits."""
    joins_A: list[int]
    roles_A: list[int]
    asked_T: list[int]
    """What is asked if a number comes after a token, or UNKNOWN."""
    prompt: Prompt


def tokens_of(tokenizer: Any, prompt: Prompt) -> tuple[list[int], list[int], list[int]]:
    """The tokens of a prompt, and for each run of digits, its first and its last token. A digit is one token."""
    coded = tokenizer(prompt.text, add_special_tokens=False, return_offsets_mapping=True)
    at = {start: token for token, (start, _) in enumerate(coded["offset_mapping"])}
    return coded["input_ids"], [at[atom.start] for atom in prompt.atoms], [at[atom.end - 1] for atom in prompt.atoms]


def labels(prompt: Prompt, firsts: list[int], tokens: int) -> list[int]:
    """What is asked before each number of the prompt and after its last token."""
    asked_T = [UNKNOWN] * tokens
    for atom, first in zip(prompt.atoms, firsts, strict=True):
        if atom.copied and first:
            asked_T[first - 1] = 0
    asked_T[-1] = prompt.asked
    return asked_T


@torch.no_grad()
def lower_states(model: Any, ids_BT: torch.Tensor) -> torch.Tensor:
    """The states of texts after LAYERS, (B, T, L, D). Rows may be padded on the right."""
    states_BTD, found = model.model.embed_tokens(ids_BT), []
    angles = model.model.rotary_emb(states_BTD, torch.arange(ids_BT.shape[1])[None])
    for layer in model.model.layers[: LAYERS[-1]]:
        states_BTD = layer(states_BTD, position_embeddings=angles)  # without a mask, attention is causal
        found.append(states_BTD)
    return torch.stack([found[layer - 1] for layer in LAYERS], 2)


def read(model: Any, tokenizer: Any, prompts: list[Prompt], size: int = 16) -> list[Read]:
    coded = [tokens_of(tokenizer, one) for one in prompts]
    order, found = sorted(range(len(prompts)), key=lambda index: len(coded[index][0])), {}
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        longest = max(len(coded[row][0]) for row in rows)
        states_BTLD = lower_states(
            model, torch.tensor([coded[row][0] + [0] * (longest - len(coded[row][0])) for row in rows])
        )
        for at, row in enumerate(rows):
            (tokens, firsts, lasts), one = coded[row], prompts[row]
            joins, roles = [atom.joins for atom in one.atoms], [atom.role for atom in one.atoms]
            asked_T = labels(one, firsts, len(tokens))
            found[row] = Read(states_BTLD[at, : len(tokens)].clone(), lasts, joins, roles, asked_T, one)
    return [found[row] for row in range(len(prompts))]


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    model, tokenizer = load(ModelConfig(name="smollm2-135m-instruct"))
    folder = Path(given["out"])
    folder.mkdir(parents=True, exist_ok=True)
    for shard in range(int(given.get("first", 0)), int(given.get("first", 0)) + int(given["shards"])):
        file = folder / f"{given['split']}_{shard}.pt"
        if file.exists():
            continue
        rng = Random(f"{given['split']} {shard}")
        made = read(model, tokenizer, [prompt(given["split"], rng) for _ in range(int(given.get("prompts", 500)))])
        torch.save([tuple(one) for one in made], file)
        print(file, flush=True)
