"""Reads the question: a small network over the untouched model's states, before a number is written.

It decides what is asked (nothing that is computed, a sum, a distance, the larger or the smaller number), which of the
numbers before are asked about, and whether two runs of digits are one number, as in 12,345. It sees the states of all
tokens so far, after two of the model's layers; of a run of digits, it sees the last one, so that it does not matter how
many there are. The model itself is not changed.

Shapes: B texts, T tokens that are seen, L layers that are read, D width of the model, E width of the reader.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

ASKED = ("none", "sum", "distance", "larger", "smaller")
"""What is asked. A difference a - b is a sum in which b has the role "minus"."""
ROLES = ("none", "plus", "minus")
LAYERS = (8, 16)
"""The layers after which states are read. Those of layer 24 as well do not help."""
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
        self.inward, self.dropout = nn.Linear(len(LAYERS) * width, size), dropout
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
        hidden_BTE = self.inward(self._dropped(_normed(states_BTLD).flatten(2)))
        hidden_BTE = hidden_BTE + self.from_end(from_end_BT.clamp(0, FARTHEST))
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

    def _dropped(self, states_BTX: torch.Tensor) -> torch.Tensor:
        """In training, states without some of their entries, the same ones for all tokens of a text."""
        kept = functional.dropout(torch.ones_like(states_BTX[:, :1]), self.dropout, self.training)
        return states_BTX * kept if self.training else states_BTX


def _normed(states: torch.Tensor) -> torch.Tensor:
    """Each layer's state with a mean square of 1; the first tokens of a text have states a thousand times as large."""
    states = states.float()
    return states * states.square().mean(-1, keepdim=True).add(1e-6).rsqrt()


@torch.no_grad()
def lower_states(
    model: Any, ids_BT: torch.Tensor, at_T: torch.Tensor | None = None, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """The states of texts after LAYERS, (B, T, L, D).

    Args:
        model: a Llama.
        ids_BT: token ids.
        at_T: position ids; without them, tokens are counted.
        mask: what is added to the scores of attention; without one, a token sees all before it.
    """
    states_BTD, found = model.model.embed_tokens(ids_BT), []
    angles = model.model.rotary_emb(states_BTD, (torch.arange(ids_BT.shape[1]) if at_T is None else at_T)[None])
    for layer in model.model.layers[: LAYERS[-1]]:
        states_BTD = layer(states_BTD, attention_mask=mask, position_embeddings=angles)
        found.append(states_BTD)
    return torch.stack([found[layer - 1] for layer in LAYERS], 2)
