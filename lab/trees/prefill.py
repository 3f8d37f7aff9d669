"""Reads prompts into a cache, computing shared beginnings once.

Prompts are merged into prefix trees (`lab.trees.prefix_tree`), only a few prompts in each, because the states of a
tree take memory. If the prompts of a group share a longer beginning, such as a rule, it is computed once for all trees
in all batches. It is computed separately, so its states do not depend on the other prompts.

Shapes: B prompts in a piece, L tokens in the longest one, S tokens in the shared beginning, T nodes in a tree, V words
in the vocabulary.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, PreTrainedModel

from lab.trees.cache import RaggedCache, States
from lab.trees.layout import has_pairs, shareable, tree_inputs, tree_path_inputs
from lab.trees.paths import Paths, attends_along_paths
from lab.trees.prefix_tree import PrefixTree

_TOKENS_A_TREE = {"cpu": 2048, "cuda": 8192}
"""Maximum number of nodes in a tree, by device."""
_BIASED_TOKENS_A_TREE = {"cpu": 512, "cuda": 2048}
"""The same limits for models with parts that need tables over all pairs of nodes."""
_SHORTEST_START = 64
"""A shared beginning is computed separately only if it has at least this many tokens. For a shorter one, a separate
forward pass costs more than computing it in every tree."""


class PromptReader:
    """Computes the states of prompts, and the logits after them."""

    def __init__(self, model: PreTrainedModel, groups: Sequence[str], prompts: Sequence[list[int]]) -> None:
        """`prompts`: the token ids of all prompts of a job. `groups`: the group of each (`Request.group`)."""
        self.model, self.prompts = model, prompts
        self.starts: list[tuple[int, ...]] = [()] * len(prompts)
        """The beginning that each prompt shares with its whole group; empty if it is short."""
        for _, members in itertools.groupby(sorted(range(len(prompts)), key=groups.__getitem__), groups.__getitem__):
            members = list(members)
            start = _common_start([prompts[i] for i in members])
            start = start[: min(shareable(model)(prompts[i], len(start)) for i in members)]
            for i in members if len(start) >= _SHORTEST_START else ():
                self.starts[i] = start
        self._start: tuple[int, ...] = ()
        self._states: States = []

    def read(self, chosen: Sequence[int], cache: RaggedCache) -> torch.Tensor:
        """The logits after each chosen prompt, (len(chosen), V). Stores the prompts' states in the cache's rows."""
        logits, row = [], 0
        for start, members in itertools.groupby(chosen, self.starts.__getitem__):
            rests = [self.prompts[i][len(start) :] for i in members]
            shared, longest = len(_common_start(rests)), max(map(len, rests))
            limits = _BIASED_TOKENS_A_TREE if has_pairs(self.model) else _TOKENS_A_TREE
            most = limits[self.model.device.type]
            count = max(1, (most - shared) // max(1, longest - shared))
            for piece in (rests[k : k + count] for k in range(0, len(rests), count)):
                logits_BV, states = self._read_piece(start, piece)
                cache.fill(row, states)
                logits.append(logits_BV)
                row += len(piece)
        return torch.cat(logits)

    def _read_piece(self, start: tuple[int, ...], rests: list[list[int]]) -> tuple[torch.Tensor, States]:
        """Logits (B, V) and states (B, heads, L, width); shorter prompts are padded on the right."""
        device, known = self.model.device, len(start)
        tree = PrefixTree(rests, shareable=shareable(self.model))
        inputs, cache = tree.tokens_and_depths(device), DynamicCache()
        for layer, (keys, values) in enumerate(self._states_of(start)):
            cache.update(keys, values, layer)
        output = self.model(
            input_ids=inputs["input_ids"],
            **{"position_ids": inputs["position_ids"] + known} | self._inputs(tree, start),
            past_key_values=cache,
            logits_to_keep=torch.tensor([path[-1] for path in tree.paths], device=device),
        )
        paths = [torch.tensor([*range(known), *(known + node for node in path)]) for path in tree.paths]
        nodes_BL = pad_sequence(paths, batch_first=True).to(device)
        return output.logits[0], [(_along(keys, nodes_BL), _along(values, nodes_BL)) for keys, values in _layers(cache)]

    def _inputs(self, tree: PrefixTree, start: tuple[int, ...]) -> dict[str, Any]:
        """Which tokens each node of a tree sees, and what parts must know about the nodes. The tree follows `start`."""
        device = self.model.device
        if not attends_along_paths(self.model) or has_pairs(self.model):
            mask_11TT = pad(tree.inputs(device)["attention_mask"], (len(start), 0), value=True)
            return {"attention_mask": mask_11TT, **tree_inputs(self.model, tree, start)}
        given = tree_path_inputs(self.model, tree, start)
        paths = Paths(*(given.pop(name).to(device) for name in Paths._fields))
        return {**given, "attention_mask": given["attention_mask"].to(device), "paths": paths}

    def _states_of(self, start: tuple[int, ...]) -> States:
        """The states of a shared beginning. Only those of the latest one are kept, because the requests of a group come
        together."""
        if start != self._start:
            cache = DynamicCache()
            if start:
                ids_1S = torch.tensor([start], device=self.model.device)
                self.model(input_ids=ids_1S, past_key_values=cache, logits_to_keep=1)
            self._start, self._states = start, _layers(cache)
        return self._states


def _along(states: torch.Tensor, nodes_BL: torch.Tensor) -> torch.Tensor:
    """From (1, heads, S + T, width) to (B, heads, L, width): each prompt gets the states along its own path."""
    return states[0].index_select(1, nodes_BL.flatten()).unflatten(1, nodes_BL.shape).transpose(0, 1)


def _layers(cache: DynamicCache) -> States:
    return [(layer.keys, layer.values) for layer in cache.layers]  # type: ignore[union-attr, return-value]


def _common_start(prompts: Sequence[list[int]]) -> tuple[int, ...]:
    """The beginning that all prompts share. It is never a complete prompt, because the logits after the last token of
    each prompt are needed.

    In lexicographic order, the first and the last prompt share exactly what all prompts share.
    """
    pairs = zip(min(prompts), max(prompts), strict=False)
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return tuple(prompts[0][: min(shared, min(map(len, prompts)) - 1)])
