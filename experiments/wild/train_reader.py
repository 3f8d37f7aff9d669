"""Trains the reader of `lab.second_reading` on states that are computed once.

    python -m experiments.wild.train_reader states=FOLDER out=FILE seed=0

Shapes: B texts, T tokens that are seen, U tokens of a tree, L layers that are read, D width of the model, A runs of
digits.
"""

import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import NamedTuple

import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from experiments.wild.problems import UNKNOWN
from experiments.wild.states import ReadPrompt
from lab.config.schema import ModelConfig
from lab.models.pretrained import load
from lab.second_reading.reader import NO_WORD, Found, Reader, Vocabulary


class Worded(NamedTuple):
    """A prompt of T tokens that a reader sees; see `ReadPrompt`."""

    states_ULD: torch.Tensor
    nodes_T: torch.Tensor
    words_T: list[int]
    last_A: list[int]
    joins_A: list[int]
    roles_A: list[int]
    asked_T: list[int]
    kind: str

    @classmethod
    def of(cls, states_ULD: torch.Tensor, one: ReadPrompt, vocabulary: Vocabulary) -> "Worded":
        at, words = vocabulary.seen(one.tokens_T)
        where = {token: index for index, token in enumerate(at)}
        return cls(
            states_ULD,
            torch.tensor(one.nodes_T)[at],
            words,
            [where[last] for last in one.last_A],
            one.joins_A,
            one.roles_A,
            [one.asked_T[token] for token in at],
            one.kind,
        )


def cut(one: Worded, rng: Random, early: float) -> int:
    """How many tokens of a prompt are read: all, or those before one of its numbers."""
    known = [token for token, asked in enumerate(one.asked_T[:-1]) if asked != UNKNOWN]
    return 1 + rng.choice(known) if known and rng.random() < early else len(one.asked_T)


class Batch(NamedTuple):
    states_BTLD: torch.Tensor
    words_BT: torch.Tensor
    lengths_B: torch.Tensor
    asked_B: torch.Tensor
    roles_BT: torch.Tensor
    joins_BT: torch.Tensor

    @classmethod
    def of(cls, reads: list[Worded], cuts: list[int]) -> "Batch":
        states = [one.states_ULD[one.nodes_T[:end]] for one, end in zip(reads, cuts, strict=True)]
        words = [torch.tensor(one.words_T[:end]) for one, end in zip(reads, cuts, strict=True)]
        words_BT = pad_sequence(words, batch_first=True, padding_value=NO_WORD)
        roles, joins = (torch.full(words_BT.shape, UNKNOWN) for _ in range(2))
        asked = torch.tensor([one.asked_T[end - 1] for one, end in zip(reads, cuts, strict=True)])
        for row, (one, end) in enumerate(zip(reads, cuts, strict=True)):
            for last, role, join in zip(one.last_A, one.roles_A, one.joins_A, strict=True):
                if last < end:
                    joins[row, last] = join
                    roles[row, last] = role if asked[row] > 0 else UNKNOWN
        return cls(pad_sequence(states, batch_first=True), words_BT, torch.tensor(cuts), asked, roles, joins)


def loss(found: Found, batch: Batch) -> torch.Tensor:
    known = batch.joins_BT != UNKNOWN
    joins = (
        functional.binary_cross_entropy_with_logits(found.joins_BT[known], batch.joins_BT[known].float())
        if known.any()
        else 0
    )
    roles = functional.cross_entropy(
        found.roles_BTC.flatten(0, 1), batch.roles_BT.flatten(), ignore_index=UNKNOWN, reduction="sum"
    )
    return (
        functional.cross_entropy(found.asked_BC, batch.asked_B)
        + roles / (batch.roles_BT != UNKNOWN).sum().clamp(min=1)
        + joins
    )


@torch.no_grad()
def measured(reader: Reader, reads: list[Worded]) -> dict[str, str]:
    """For each kind: prompts that ask for something and are read right in all respects, and prompts that do not and of
    which something is computed."""
    reader.eval()
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for start in range(0, len(reads), 32):
        part = reads[start : start + 32]
        batch = Batch.of(part, [len(one.asked_T) for one in part])
        found = reader(batch.states_BTLD, batch.words_BT, batch.lengths_B)
        asked_B, roles_BT = found.asked_BC.argmax(-1), found.roles_BTC.argmax(-1)
        same_B = ((roles_BT == batch.roles_BT) | (batch.roles_BT == UNKNOWN)).all(-1) & (asked_B == batch.asked_B)
        for one, asked, same in zip(part, asked_B.tolist(), same_B.tolist(), strict=True):
            for name in (one.kind, "all"):
                count = counts[name]
                at = 0 if one.asked_T[-1] else 2
                count[at] += same if at == 0 else asked != 0
                count[at + 1] += 1
    reader.train()
    return {name: f"{a}/{b} right, {c}/{d} false" for name, (a, b, c, d) in sorted(counts.items())}


def shards(folder: Path, split: str, vocabulary: Vocabulary) -> list[list[Worded]]:
    """The groups of a split that `states` has read."""
    found = []
    for file in sorted(folder.glob(f"{split}_*.pt")):
        for states, prompts in torch.load(file, weights_only=False):
            found.append([Worded.of(states, ReadPrompt(*one), vocabulary) for one in prompts])
    return found


def train(
    folder: Path,
    out: Path,
    seed: int,
    epochs: int = 4,
    size: int = 4,
    rate: float = 1e-3,
    early: float = 0.2,
    width: int = 128,
    dropout: float = 0.1,
    start: Path | None = None,
) -> None:
    """
    Args:
        start: a reader to go on from, if any.
        size: the number of groups of a batch.
        early: how often a prompt is read only up to one of its numbers.
    """
    torch.manual_seed(seed)
    _, tokenizer = load(ModelConfig(name="smollm2-135m-instruct"))
    vocabulary, rng = Vocabulary(tokenizer), Random(seed)
    groups, valid = shards(folder, "training", vocabulary), shards(folder, "validation", vocabulary)
    reader = Reader(groups[0][0].states_ULD.shape[-1], width, dropout=dropout)
    if start:
        reader.load_state_dict(torch.load(start))
    steps, began = epochs * (len(groups) // size), time.time()
    optimizer = torch.optim.AdamW(reader.parameters(), lr=rate, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps + 1, pct_start=0.1)
    for epoch in range(epochs):
        total = 0.0
        for chosen in batches(groups, size, rng):
            part = [one for group in chosen for one in group]
            batch = Batch.of(part, [cut(one, rng, early) for one in part])
            with torch.autocast("cpu", torch.bfloat16):
                value = loss(reader(batch.states_BTLD, batch.words_BT, batch.lengths_B), batch)
            value.backward()
            torch.nn.utils.clip_grad_norm_(reader.parameters(), 1)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            total += value.item()
        line = {"epoch": epoch, "groups": len(groups), "loss": round(total * epochs / steps, 4)}
        minutes = round((time.time() - began) / 60, 1)
        found = measured(reader, [one for group in valid for one in group])
        print(json.dumps({**line, "minutes": minutes, **found}), flush=True)
        torch.save(reader.state_dict(), out)


def batches(groups: list[list[Worded]], size: int, rng: Random) -> list[list[list[Worded]]]:
    """Batches of groups of about the same length, in any order."""
    order = rng.sample(groups, len(groups))
    near = [
        group
        for start in range(0, len(order), 16 * size)
        for group in sorted(order[start : start + 16 * size], key=lambda group: max(len(one.words_T) for one in group))
    ]
    found = [near[start : start + size] for start in range(0, len(near) - size + 1, size)]
    return rng.sample(found, len(found))


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    train(
        Path(given["states"]),
        Path(given["out"]),
        int(given.get("seed", 0)),
        int(given.get("epochs", 4)),
        width=int(given.get("width", 128)),
        dropout=float(given.get("dropout", 0.1)),
        rate=float(given.get("rate", 1e-3)),
        start=Path(given["start"]) if "start" in given else None,
    )
