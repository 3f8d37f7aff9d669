"""What the untouched model's states are over prompts, computed once, for the reader to learn from.

    python -m experiments.wild.states out=FOLDER split=training shards=12 groups=400

A shard is a list of `Read`. Shard i of a split always has the same prompts. Prompts of a group that begin alike share
the tokens of their beginning: a group is a tree of tokens, and the model reads several trees at once, each token with
those above it.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch

from experiments.wild.problems import UNKNOWN, Prompt, group
from lab.config.schema import ModelConfig
from lab.models.pretrained import load
from lab.second_reading.reader import lower_states


class Read(NamedTuple):
    """A group of prompts with a tree of U tokens."""

    states_ULD: torch.Tensor
    prompts: list["ReadPrompt"]


class ReadPrompt(NamedTuple):
    """A prompt of T tokens, of which A are the last digit of a run of digits."""

    nodes_T: list[int]
    """Where its tokens are in the tree."""
    tokens_T: list[int]
    last_A: list[int]
    """The last token of each run of digits."""
    joins_A: list[int]
    roles_A: list[int]
    asked_T: list[int]
    """What is asked if a number comes after a token, or UNKNOWN."""
    kind: str


class Tree(NamedTuple):
    """Tokens, each after the one above it."""

    tokens_U: list[int]
    above_U: list[int]
    """The token above each token; -1 for a first token."""
    paths: list[list[int]]
    """The tokens of each text."""

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]]) -> "Tree":
        found: dict[tuple[int, int], int] = {}
        tokens, above, paths = [], [], []
        for text in texts:
            paths.append([])
            for token in text:
                key = (paths[-1][-1] if paths[-1] else -1, token)
                if key not in found:
                    found[key] = len(tokens)
                    tokens.append(token)
                    above.append(key[0])
                paths[-1].append(found[key])
        return cls(tokens, above, paths)

    def sees(self) -> torch.Tensor:
        """Which tokens each token sees: those above it and itself, (U, U)."""
        seen = torch.eye(len(self.tokens_U), dtype=torch.bool)
        for token, above in enumerate(self.above_U):
            if above >= 0:
                seen[token] |= seen[above]
        return seen


def states_of(model: Any, trees: Sequence[Tree]) -> list[torch.Tensor]:
    """The states of the tokens of each tree, (U, L, D)."""
    sees = torch.block_diag(*(tree.sees() for tree in trees)).bool()
    mask = torch.zeros(sees.shape, dtype=model.dtype).masked_fill(~sees, -torch.inf)[None, None]
    ids_1T = torch.tensor([[token for tree in trees for token in tree.tokens_U]])
    found = lower_states(model, ids_1T, sees.sum(-1) - 1, mask)[0]
    return [part.clone() for part in found.split([len(tree.tokens_U) for tree in trees])]


def tokens_of(tokenizer: Any, prompt: Prompt) -> tuple[list[int], list[int], list[int], list[int]]:
    """The tokens of a prompt; for each run of digits, its first and its last token; and where each token ends. A digit
    is one token."""
    coded = tokenizer(prompt.text, add_special_tokens=False, return_offsets_mapping=True)
    at = {start: token for token, (start, _) in enumerate(coded["offset_mapping"])}
    firsts, lasts = [at[atom.start] for atom in prompt.atoms], [at[atom.end - 1] for atom in prompt.atoms]
    return coded["input_ids"], firsts, lasts, [end for _, end in coded["offset_mapping"]]


def labelled(prompt: Prompt, tokenizer: Any) -> ReadPrompt:
    """A prompt with what is asked before each number of it, before anything is asked, and after its last token."""
    tokens, firsts, lasts, _ = tokens_of(tokenizer, prompt)
    asked_T = [UNKNOWN] * len(tokens)
    for atom, first in zip(prompt.atoms, firsts, strict=True):
        if atom.copied and first:
            asked_T[first - 1] = 0
    asked_T[-1] = prompt.asked
    joins, roles = [atom.joins for atom in prompt.atoms], [atom.role for atom in prompt.atoms]
    return ReadPrompt([], tokens, lasts, joins, roles, asked_T, prompt.kind)


def read(model: Any, tokenizer: Any, groups: list[list[Prompt]], size: int = 4) -> list[Read]:
    coded = [[labelled(one, tokenizer) for one in prompts] for prompts in groups]
    trees = [Tree.of([one.tokens_T for one in prompts]) for prompts in coded]
    found = []
    for start in range(0, len(trees), size):
        part = slice(start, start + size)
        for prompts, tree, states in zip(coded[part], trees[part], states_of(model, trees[part]), strict=True):
            at = [one._replace(nodes_T=path) for one, path in zip(prompts, tree.paths, strict=True)]
            found.append(Read(states, at))
    return found


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    model, tokenizer = load(ModelConfig(name="smollm2-135m-instruct"))
    folder = Path(given["out"])
    folder.mkdir(parents=True, exist_ok=True)
    first = int(given.get("first", 0))
    for shard in range(first, first + int(given["shards"])):
        file = folder / f"{given['split']}_{shard}.pt"
        if file.exists():
            continue
        rng, began = Random(f"{given['split']} {shard}"), time.time()
        made = read(model, tokenizer, [group(given["split"], rng) for _ in range(int(given.get("groups", 400)))])
        torch.save([(one.states_ULD, [tuple(each) for each in one.prompts]) for one in made], file)
        tokens = sum(len(one.states_ULD) for one in made)
        print(file, len(made), tokens, round(time.time() - began, 1), "s", flush=True)
