"""The second reading of numbers: adapted weights reread two numbers and write a third, all places at once.

    place       3  2  1  0      the numbers as the second reading sees them: shorter ones have zeros in front
    first       0  3  5  8
    second      0  0  4  7
    blank       _  _  _  _      one for each place of the answer: 0  4  0  5 (358 + 47)

A pretrained Llama reads a grid of three rows: the digits of the first number, those of the second, and blanks. Its
weights are adapted (LoRA); its embeddings, norms and head are as they were. Every token sees the model's first token (a
constant, to which heads attend when there is nothing to look for) and itself. A digit of the second number also sees
the digit above it, and a blank sees both digits above it. The tokens of a row of the grid share one position id.

So what a token reads depends on its column alone, until carries are looked for: in each of the walking layers, three
heads of a blank also walk down the places of the second number and stop at each with a probability that depends on
their score there (stick-breaking, `lab.parts.stick_breaking`). Until then, every different column is read only once.

What is computed is one of three operations, each a vector that is added to the embeddings of all tokens:

    add        the digit of the sum
    subtract   the digit of the difference, if the first number is not smaller
    compare    whether the first number, without the digits from this place on, is larger, equal or smaller: > = <

No blank sees another one, so an answer of any length takes a single forward pass.

Shapes: N problems, P places (lowest first), T tokens (the first digits, the second digits of U columns, the blanks), D
width of the model, H heads, G key-value heads, W width of a head, V the 13 tokens that an answer can have.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from lab.parts.stick_breaking import sharpened, stick_breaking_weights

OPERATIONS = ("add", "subtract", "compare")
SIGNS = "0123456789<=>"
"""What a blank can turn into."""
IDS = (3, 6, 9)
"""The position ids of the first number, the second number and the blanks; the first token of all has id 0."""
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class Grid(NamedTuple):
    """Problems with numbers of up to P digits. Digits are lowest first, with zeros behind."""

    first_NP: torch.Tensor
    second_NP: torch.Tensor
    operation_N: torch.Tensor


Pair = tuple[str, int | str, int | str]
"""An operation and its two numbers, which may be strings of digits of any length."""


def grid(pairs: Sequence[Pair]) -> Grid:
    """The grid of some pairs, with one place more than the longest number."""
    places = 1 + max(len(str(number)) for pair in pairs for number in pair[1:])
    numbers = torch.tensor([[digits(first, places), digits(second, places)] for _, first, second in pairs])
    return Grid(numbers[:, 0], numbers[:, 1], torch.tensor([OPERATIONS.index(operation) for operation, _, _ in pairs]))


def digits(number: int | str, places: int) -> list[int]:
    """The digits of a number, lowest first, with zeros behind."""
    return [int(digit) for digit in reversed(str(number).zfill(places))]


class Written(NamedTuple):
    logits_NPV: torch.Tensor
    walks: list[torch.Tensor]
    """For each walking layer, where its heads stop: (N, walking heads, P, P)."""


class LowRank(nn.Module):
    """What is added to a projection: up(down(x)), which is zero at first."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.empty(rank, inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(functional.linear(x, self.down.to(x.dtype)), self.up.to(x.dtype))


class Tokens(NamedTuple):
    """What the tokens of a grid see, as indexes of tokens. A token that sees no such digit has -1."""

    ids_T: torch.Tensor
    """Position ids."""
    first_T: torch.Tensor
    second_T: torch.Tensor

    @classmethod
    def of(cls, first_U: torch.Tensor, firsts: int, column_M: torch.Tensor) -> "Tokens":
        """The tokens: `firsts` digits, U digits below them, and blanks.

        Args:
            first_U: which of the first digits each of the second digits stands below.
            firsts: how many first digits there are.
            column_M: which of the second digits each blank stands below.
        """
        none_F, none_U = -torch.ones(firsts, dtype=torch.long), -torch.ones_like(first_U)
        counts = torch.tensor([firsts, len(first_U), len(column_M)])
        ids_T = torch.tensor(IDS).repeat_interleave(counts)
        return cls(
            ids_T, torch.cat([none_F, first_U, first_U[column_M]]), torch.cat([none_F, none_U, firsts + column_M])
        )


class SecondReading(nn.Module):
    def __init__(
        self, model: Any, tokenizer: Any, rank: int = 32, walkers: int = 3, walking: range = range(21, 29)
    ) -> None:
        """
        Args:
            model: a Llama; it is not changed, and its weights are not among the parameters of this module.
            tokenizer: its tokenizer, with one token for each of SIGNS and one for a single space.
            rank: the rank of the adapters.
            walkers: how many heads of a walking layer walk, the last ones; they must share their keys.
            walking: the layers that walk.
        """
        super().__init__()
        self.base = [model]  # in a list, so that its weights are not saved
        self.walkers, self.walking, config = walkers, walking, model.config
        self.adapters = nn.ModuleList(
            nn.ModuleDict(
                {name: LowRank(part.in_features, part.out_features, rank) for name, part in projections(layer)}
            )
            for layer in model.model.layers
        )
        self.digit_bias = nn.Parameter(torch.zeros(config.num_hidden_layers, config.num_attention_heads, 2))
        """What each head adds to the score of a digit of the first or second number."""
        self.walk_bias = nn.Parameter(torch.zeros(len(walking), walkers))
        self.operations = nn.Parameter(torch.randn(len(OPERATIONS), config.hidden_size) * 0.02)
        signs = torch.tensor([one_token(tokenizer, sign) for sign in SIGNS])
        embed, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
        self.digits_VD, self.blank_D = embed[signs[:10]].detach(), embed[one_token(tokenizer, " ")].detach()
        self.head_VD = head[signs].detach()
        self.sinks = sink_states(model, tokenizer.bos_token_id)

    def forward(self, grid: Grid) -> Written:
        model, shape = self.base[0].model, grid.first_NP.shape
        codes_NP = (grid.operation_N[:, None] * 10 + grid.first_NP) * 10 + grid.second_NP
        code_U, column_NP = codes_NP.unique(return_inverse=True)
        code_F, first_U = (code_U // 10).unique(return_inverse=True)
        told_D3 = self.operations.to(self.blank_D.dtype)
        firsts_FD = self.digits_VD[code_F % 10] + told_D3[code_F // 10]
        seconds_UD, blanks_UD = (
            self.digits_VD[code_U % 10] + told_D3[code_U // 100],
            self.blank_D + told_D3[code_U // 100],
        )
        hidden_TD, walks = torch.cat([firsts_FD, seconds_UD, blanks_UD]), []
        tokens, numbers = Tokens.of(first_U, len(code_F), torch.arange(len(code_U))), len(code_F) + len(code_U)
        for index, layer in enumerate(model.layers):
            if index == self.walking.start:
                hidden_TD = torch.cat([hidden_TD[:numbers], hidden_TD[numbers:][column_NP.flatten()]])
                tokens = Tokens.of(first_U, len(code_F), column_NP.flatten())
            project = {name: self._adapted(part, self.adapters[index][name]) for name, part in projections(layer)}  # type: ignore[index]
            inner_TD = layer.input_layernorm(hidden_TD)
            query_THW, key_TGW, value_TGW = (
                project[name](inner_TD).unflatten(-1, (-1, self.head_width)) for name in PROJECTIONS[:3]
            )
            query_THW, key_TGW = self._rotated(query_THW, key_TGW, tokens.ids_T)
            found_THW = self._attention(index, query_THW, key_TGW, value_TGW, tokens)
            if index in self.walking:
                below = slice(len(code_F), numbers)
                walk, walked_NPHW = self._walk(
                    index,
                    query_THW[numbers:].unflatten(0, shape),
                    key_TGW[below][column_NP],
                    value_TGW[below][column_NP],
                )
                found_THW = found_THW + functional.pad(
                    walked_NPHW.flatten(0, 1), (0, 0, found_THW.shape[1] - self.walkers, 0, numbers, 0)
                )
                walks.append(walk)
            hidden_TD = hidden_TD + project["o_proj"](found_THW.flatten(1))
            inner_TD = layer.post_attention_layernorm(hidden_TD)
            hidden_TD = hidden_TD + project["down_proj"](
                functional.silu(project["gate_proj"](inner_TD)) * project["up_proj"](inner_TD)
            )
        return Written(
            functional.linear(model.norm(hidden_TD[numbers:]), self.head_VD).float().unflatten(0, shape), walks
        )

    @property
    def head_width(self) -> int:
        return self.base[0].config.hidden_size // self.base[0].config.num_attention_heads

    @staticmethod
    def _adapted(part: nn.Linear, adapter: LowRank) -> Any:
        return lambda x: part(x) + adapter(x)

    def _rotated(
        self, query_THW: torch.Tensor, key_TGW: torch.Tensor, ids_T: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The queries, scaled, and the keys, both rotated by position ids (RoPE)."""
        angles = self.base[0].model.rotary_emb(query_THW, ids_T[None])
        query, key = apply_rotary_pos_emb(query_THW.transpose(0, 1)[None], key_TGW.transpose(0, 1)[None], *angles)
        return query[0].transpose(0, 1) * self.head_width**-0.5, key[0].transpose(0, 1)

    def _attention(
        self, index: int, query_THW: torch.Tensor, key_TGW: torch.Tensor, value_TGW: torch.Tensor, tokens: Tokens
    ) -> torch.Tensor:
        """What the heads of a layer find in the first token of all, in the token itself, and in the digits above it."""
        seen = tokens.first_T, tokens.second_T
        keys, values = (
            torch.stack([sink.expand_as(states), states, *(states[at_T] for at_T in seen)], 1)
            for states, sink in zip((key_TGW, value_TGW), self.sinks[index], strict=True)
        )
        groups = key_TGW.shape[1]
        shared = query_THW.unflatten(1, (groups, -1))
        scores_TH4 = torch.einsum("tghw,tkgw->tghk", shared, keys).flatten(1, 2).float() + functional.pad(
            self.digit_bias[index], (2, 0)
        )
        hidden_T4 = functional.pad(torch.stack(seen, 1) < 0, (2, 0))
        weights = scores_TH4.masked_fill(hidden_T4[:, None], -1e30).softmax(-1).to(value_TGW.dtype)
        return torch.einsum("tghk,tkgw->tghw", weights.unflatten(1, (groups, -1)), values).flatten(1, 2)

    def _walk(
        self, index: int, query_NPHW: torch.Tensor, key_NPGW: torch.Tensor, value_NPGW: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Where the walking heads of each blank stop, (N, heads, P, P), and what they find there, (N, P, heads, W)."""
        scores = torch.einsum("nphw,nkw->nhpk", query_NPHW[:, :, -self.walkers :], key_NPGW[:, :, -1]).float()
        scores = scores + self.walk_bias[self.walking.index(index)][:, None, None]
        below_PP = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(-1)
        walk = stick_breaking_weights(sharpened(scores, below_PP), below_PP.expand_as(scores))
        return walk, torch.einsum("nhpk,nkw->nphw", walk.to(value_NPGW.dtype), value_NPGW[:, :, -1])


def projections(layer: Any) -> Iterator[tuple[str, nn.Linear]]:
    for block in (layer.self_attn, layer.mlp):
        for name, part in block.named_children():
            if name in PROJECTIONS:
                yield name, part


def one_token(tokenizer: Any, text: str) -> int:
    """The token of a single character."""
    (token,) = tokenizer.encode(text, add_special_tokens=False)
    return token


@torch.no_grad()
def sink_states(model: Any, token: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The key and value, (G, W) each, of a text's first token in each layer of the untouched model."""
    cache = model(torch.tensor([[token]]), use_cache=True).past_key_values
    return [(layer.keys[0, :, 0].clone(), layer.values[0, :, 0].clone()) for layer in cache.layers]
