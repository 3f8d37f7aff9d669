"""Reads the question: a small network over the untouched model's states, before a number is written.

It decides what is asked (nothing that is computed, a sum, a distance, the larger or the smaller number), which of the
numbers before are asked about, and whether two runs of digits are one number, as in 12,345. It sees the states of all
tokens so far, after two of the model's layers; of a run of digits, it sees the last one, so that it does not matter how
many there are. The model itself is not changed.

    python -m experiments.wild.reader states=FOLDER out=FILE seed=0

Shapes: B texts, T tokens that are seen, L layers that are read, D width of the model, E width of the reader, A runs of
digits.
"""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from experiments.wild.problems import ASKED, ROLES, UNKNOWN
from experiments.wild.states import LAYERS, ReadPrompt
from lab.config.schema import ModelConfig
from lab.models.pretrained import load

FARTHEST = 127
"""Tokens further than this from the end of the text count as this far."""
NEAR = 24
"""Tokens further than this from each other count as this far."""
NO_WORD = -1
torch.backends.mha.set_fastpath_enabled(False)  # it knows no scores that are added for each head


class Found(NamedTuple):
    asked_BC: torch.Tensor
    """The logits of what is asked after the last token."""
    roles_BTC: torch.Tensor
    """The logits of the role of a number that ends with a token."""
    joins_BT: torch.Tensor
    """The logit of whether the run of digits that ends with a token belongs to the number before it."""


class Vocabulary:
    """What tokens a reader sees of a text, and which of them count as the same word."""

    def __init__(self, tokenizer: Any) -> None:
        texts = [text.strip("Ġ").lower() for text in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]
        self._digits = {token: text for token, text in enumerate(texts) if text in list("0123456789")}
        words = sorted({text for text in texts if text.isalpha()})
        numbers = {word: number for number, word in enumerate(words)}
        self._words = [numbers.get(text, NO_WORD) for text in texts]

    def seen(self, tokens: Sequence[int]) -> tuple[list[int], list[int]]:
        """The tokens that a reader sees, all but the first digits of runs, and a number for the word of each: words
        are the same if they have the same letters, whatever their case, with a space before or without, and runs of
        digits if they have the same digits. NO_WORD for tokens with other signs."""
        at: list[int] = []
        words: list[int] = []
        run = ""
        for index, token in enumerate(tokens):
            run = run + self._digits[token] if token in self._digits else ""
            if run and tokens[index + 1 : index + 2] and tokens[index + 1] in self._digits:
                continue
            at.append(index)
            words.append(len(self._words) + int("1" + run[:15]) if run else self._words[token])
        return at, words


class Reader(nn.Module):
    def __init__(self, width: int, size: int = 128, depth: int = 3, heads: int = 4, dropout: float = 0.1) -> None:
        """
        Args:
            width: the width of the model.
            size: the width of the reader.
            depth: its number of layers.
            heads: the number of heads of each layer.
            dropout: the rate of dropout in training.
        """
        super().__init__()
        self.heads = heads
        self.inward = nn.Sequential(nn.Dropout(dropout), nn.Linear(len(LAYERS) * width, size))
        self.from_end = nn.Embedding(FARTHEST + 1, size)
        self.again = nn.Embedding(2, size)
        """For whether a token's word comes again."""
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(size, heads, 4 * size, dropout, functional.gelu, True, True)
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(size)
        self.same = nn.Parameter(torch.tensor([5.0, 5.0] + [0.0] * (heads - 2)).repeat(depth, 1))
        """What each head adds to its score of an earlier or later token with the same word."""
        slopes = torch.tensor([0.0] * (heads - 2) + [0.1, 0.5])
        self.apart = nn.Parameter(-(torch.arange(-NEAR, NEAR + 1).abs() * slopes[:, None]).repeat(depth, 1, 1))
        """What each head adds to its score of a token by its distance. Before training, two heads prefer the same
        word, and two prefer near tokens."""
        self.asked = nn.Linear(size, len(ASKED))
        self.roles = nn.Linear(size, len(ROLES))
        self.joins = nn.Linear(size, 1)

    def forward(self, states_BTLD: torch.Tensor, words_BT: torch.Tensor, lengths_B: torch.Tensor) -> Found:
        """
        Args:
            states_BTLD: the model's states after LAYERS. Rows are padded on the right.
            words_BT: see `Vocabulary`.
            lengths_B: the number of tokens of each row.
        """
        at_T = torch.arange(states_BTLD.shape[1])
        from_end_BT = lengths_B[:, None] - 1 - at_T
        hidden_BTE = self.inward(_normed(states_BTLD).flatten(2)) + self.from_end(from_end_BT.clamp(0, FARTHEST))
        later_TT = at_T[:, None] < at_T
        same_BTT = (words_BT[:, :, None] == words_BT[:, None]) & (words_BT >= 0)[:, None] & (at_T[:, None] != at_T)
        hidden_BTE = hidden_BTE + self.again((same_BTT & later_TT).any(-1).long())
        apart_TT = (at_T - at_T[:, None]).clamp(-NEAR, NEAR) + NEAR
        hidden_BTT = (from_end_BT < 0)[:, None].expand_as(same_BTT)
        for layer, same_H, apart_HX in zip(self.layers, self.same, self.apart, strict=True):
            scores_BHTT = same_BTT[:, None] * same_H[:, None, None] + apart_HX[:, apart_TT]
            mask_BHTT = scores_BHTT.masked_fill(hidden_BTT[:, None], -1e9)
            hidden_BTE = layer(hidden_BTE, src_mask=mask_BHTT.flatten(0, 1))
        hidden_BTE = self.norm(hidden_BTE)
        last_BE = hidden_BTE[torch.arange(len(lengths_B)), lengths_B - 1]
        return Found(self.asked(last_BE), self.roles(hidden_BTE), self.joins(hidden_BTE)[..., 0])


def _normed(states: torch.Tensor) -> torch.Tensor:
    """Each layer's state with a mean square of 1; the first tokens of a text have states a thousand times as large."""
    states = states.float()
    return states * states.square().mean(-1, keepdim=True).add(1e-6).rsqrt()


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
) -> None:
    """
    Args:
        size: the number of groups of a batch.
        early: how often a prompt is read only up to one of its numbers.
    """
    torch.manual_seed(seed)
    _, tokenizer = load(ModelConfig(name="smollm2-135m-instruct"))
    vocabulary, rng = Vocabulary(tokenizer), Random(seed)
    groups, valid = shards(folder, "training", vocabulary), shards(folder, "validation", vocabulary)
    reader = Reader(groups[0][0].states_ULD.shape[-1], width, dropout=dropout)
    steps, began = epochs * (len(groups) // size), time.time()
    optimizer = torch.optim.AdamW(reader.parameters(), lr=rate, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps + 1, pct_start=0.1)
    for epoch in range(epochs):
        total = 0.0
        for chosen in batches(groups, size, rng):
            part = [one for group in chosen for one in group]
            batch = Batch.of(part, [cut(one, rng, early) for one in part])
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
    )
