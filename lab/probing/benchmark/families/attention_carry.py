"""Adders that fetch the carry by attention, past any number of nines.

In layer 0, a head brings a_j to the token of each b_j, and the MLP finds whether a_j + b_j is at least 10 or exactly 9
(TriCase of Quirke, Neo and Barez, arXiv 2402.02619). In layer 1, a head attends from q_k to the highest column below k
whose digits do not sum to 9, or to the sign next to the ones if there is none, and fetches the carry from there. Then
the MLP adds. Heads find their tokens with a table of queries and keys, for which each position has a direction of its
own in the residual stream. Digits may be written from either end. If the ones come last, already the first digit that
is written depends on all lower columns.
"""

import math
from collections.abc import Callable
from functools import partial

import torch

from lab.probing.benchmark.known import DIGITS, FIELD, FieldSums, Known, KnownAdder
from lab.probing.benchmark.wiring import Layer, basis, embedding, native, shuffled, unembedding
from lab.probing.components import Component

_HEADS = ("a", "b", "a at b", "decoy")
_NAMES = ("one", "value", "plus", *_HEADS, "end", "ten", "nine", "carry", "digit")


def adder(name: str, ones_first: bool, seed: int = 0, sharp: bool = False) -> KnownAdder:
    """The adder. `sharp`: whether its switches are flat at the values that they tell apart and turn halfway between
    them, so that no gradient passes them."""
    writer = FieldSums(ones_first)
    tokens, heads = writer.tokens, len(_HEADS)
    width, head_width = len(_NAMES) + tokens, tokens + 1
    basis_DD = basis(width, seed)
    at: dict[str, torch.Tensor] = dict(zip(_NAMES, basis_DD, strict=False))
    place_TD = basis_DD[len(_NAMES) :]
    head = shuffled(_HEADS, seed)
    key_HZD = torch.cat([place_TD, at["nine"][None]]).expand(heads, -1, -1)
    values_ZD, ten_ZD = torch.zeros(2, head_width, width)
    values_ZD[0], values_ZD[1], ten_ZD[0] = at["value"], at["plus"], at["ten"]
    out_DHZ, carry_DHZ = torch.zeros(2, width, heads, head_width)
    for one, index in head.items():
        out_DHZ[:, index, 0] = at[one]
    out_DHZ[:, head["a"], 1] = at["end"]
    carry_DHZ[:, head["a"], 0] = at["carry"]
    step = 60 * math.sqrt(head_width)  # the second-best token gets e^-60 of the best one's weight
    queries = (_fixed(writer, head, step), _highest(ones_first, head, tokens, step))
    fixed_HZD, highest_HZD = (torch.einsum("htz,td->hzd", query_HTZ, place_TD) for query_HTZ in queries)
    find, add = _mlps(at, sharp)
    layers = [
        Layer(fixed_HZD, key_HZD, values_ZD, out_DHZ, *find),
        Layer(highest_HZD, key_HZD, ten_ZD, carry_DHZ, *add),
    ]
    subject = native(name, writer, embedding(at), place_TD, unembedding(at["one"], at["digit"], at["end"]), layers)
    return KnownAdder(subject, _known(at, head))


def _fixed(writer: FieldSums, head: dict[str, int], step: float) -> torch.Tensor:
    """The queries of layer 0 by token, (H, T, Z): each head attends a fixed number of tokens back."""
    back = {"a": writer.back(0), "b": writer.back(1), "a at b": FIELD + 1, "decoy": writer.back(0)}
    query_HTZ = torch.zeros(len(head), writer.tokens, writer.tokens + 1)
    for name, index in head.items():
        query_HTZ[index, :, : writer.tokens] = step * torch.ones(writer.tokens - back[name]).diag(-back[name])
    return query_HTZ


def _highest(ones_first: bool, head: dict[str, int], tokens: int, step: float) -> torch.Tensor:
    """The queries of layer 1 by token, (H, T, Z). They prefer columns near k; columns that sum to 9 come last, even
    after the sign next to the ones."""
    place_T = torch.arange(tokens)
    back_TT = place_T[:, None] - place_T
    if ones_first:  # b_{k-1} is FIELD + 1 before q_k, lower ones further back, then "+"
        below_TT, better_TT = (back_TT > FIELD) & (place_T > FIELD), -back_TT
    else:  # b_{k-1} is DIGITS before q_k, lower ones after it, then "="
        below_TT, better_TT = (back_TT <= DIGITS) & (place_T <= 2 * FIELD + 2), back_TT
    query_HTZ = torch.zeros(len(head), tokens, tokens + 1)
    query_HTZ[head["a"], :, :tokens] = step * torch.where(below_TT, better_TT, -4 * tokens)
    query_HTZ[head["a"], :, tokens] = -2 * DIGITS * step
    return query_HTZ


def _mlps(at: dict[str, torch.Tensor], sharp: bool) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What the neurons of both layers read (N, D) and write (D, N)."""
    u, y, one = at["a at b"] + at["value"], at["a"] + at["b"] + at["carry"], at["one"]
    nothing = torch.zeros_like(one)
    if sharp:  # nine from 8.5 to 9.5, ten from 9.5 on, with slopes of 4 at the ends
        found = [4 * (u - bound * one) for bound in (8.25, 8.5, 9.5, 9.75)]
        tell = [at["nine"], -at["nine"], at["ten"] - at["nine"], at["nine"] - at["ten"]]
        carry = [4 * (y - bound * one) for bound in (9.25, 9.5)]
    else:
        found = [u - 8 * one, u - 9 * one, u - 10 * one, nothing]
        tell = [at["nine"], at["ten"] - 2 * at["nine"], at["nine"] - at["ten"], nothing]
        carry = [y - 9 * one, y - 10 * one]
    digit, unused = [-10 * at["digit"], 10 * at["digit"]], [nothing, nothing]
    layers = ([*found, nothing], [*tell, nothing]), ([y, *carry, *unused], [at["digit"], *digit, *unused])
    return [(torch.stack(reads), torch.stack(writes, dim=1)) for reads, writes in layers]


def _known(at: dict[str, torch.Tensor], head: dict[str, int]) -> Known:
    bring, fetch = Component("head", 0, head["a at b"]), Component("head", 1, head["a"])
    first, last = Component("mlp", 0), Component("mlp", 1)
    # no edges into keys: these depend on nines, and where pairs differ only in the carry, neither sum has a nine
    edges = {(str(bring), str(first)), (str(first), f"{fetch}.v"), (str(fetch), str(last)), (str(last), "logits")}
    return Known(
        carry_D=at["carry"],
        digit_D=at["digit"],
        nodes=frozenset({bring, fetch, first, last}),
        edges=frozenset(edges),
        carry_sites=((1, "mid"),),
        digit_sites=((1, "post"),),
        looks_at={(0, head["a"]): ("a", 0), (0, head["b"]): ("b", 0), (0, head["decoy"]): ("a", 0)},
        carry_heads=((0, bring.head), (1, fetch.head)),
        digit_heads=((0, head["a"]), (0, head["b"])),
        decoy=(0, head["decoy"]),
        idle_heads=tuple((1, index) for name, index in head.items() if name != "a"),
        directions=at,
    )


ADDERS: dict[str, Callable[[int], KnownAdder]] = {
    "ones last": partial(adder, "ones last", False),
    "ones last, sharp": partial(adder, "ones last, sharp", False, sharp=True),
    "ones first, fetched carry": partial(adder, "ones first, fetched carry", True),
    "ones first, fetched carry, sharp": partial(adder, "ones first, fetched carry, sharp", True, sharp=True),
}
