"""Runs a graph on many sequences at once. Numbers or values can be replaced, to see what they do.

The numbers in a model's code can be shaken, changed in their fifth digit: a model that then fails hides information in
its digits. Parameters stay as they are, because they are counted. Small whole numbers, powers of ten and numbers that
stand for infinity stay too, because they are described exactly.

Values that do not depend on the ids are computed once; the others by `vmap`, so sequences cannot see each other.

Shapes: B sequences, T tokens, A positions with logits (all, or the last alone), V tokens in the vocabulary.
"""

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

from lab.smallest_adder.graph.graph import IDS, Graph, Node, numbers_in, real_parts

MOST_AT_ONCE = 1024
NUMBERS_AT_ONCE = 1 << 27
"""The most sequences of a pass, and the most numbers in all values of a pass, which are kept until it ends."""

# an operation without a rule for vmap is only slow, so no warning is needed
torch._C._functorch._set_vmap_fallback_warning_enabled(False)  # pyright: ignore[reportAttributeAccessIssue]

OTHER_PRECISION = {
    torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
    torch.float64: torch.float32, torch.complex64: torch.complex128, torch.complex128: torch.complex64,
}  # fmt: skip

SHAKEN = 2e-5
"""The relative change of a number that is shaken, up or down."""
EXACT_BELOW = 1 << 15
"""Whole numbers below this are not shaken."""
INFINITE_ABOVE = 1e38
LOUDEST = 1e4
"""All numbers of a tensor are shaken by at least SHAKEN times its largest one, so that those near the zeros of a wave
are shaken too. Numbers above this limit, such as those of masks, do not count as the largest."""

LARGEST_SINGLE = torch.finfo(torch.float32).max
"""In single precision, finite numbers beyond this, such as those of masks, become this one."""

Change = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Makes a new value from the value and the first input of the operation that made it."""


class Program:
    def __init__(
        self,
        graph: Graph,
        storages: Mapping[int, torch.Tensor] | None = None,
        changes: Mapping[int, Change] | None = None,
        other_precision: bool = False,
        tick: Callable[[], Any] = lambda: None,
        replaced: Collection[int] = (),
    ) -> None:
        """A graph that can be run.

        Args:
            graph: what is computed.
            storages: numbers that are used instead of the graph's own.
            changes: functions that are applied to values, by the number of the value.
            other_precision: compute in float64 what is written in float32, and the other way around.
            tick: called before each operation.
            replaced: values that do not depend on the ids, but that `run` may replace with frozen ones.
        """
        self.graph, self.tick = graph, tick
        self.changes = dict(changes or {})
        types = {tensor.dtype for tensor in graph.leaves.values()}
        self.default = torch.float64 if other_precision and "float64" not in types else torch.float32
        nodes = [_in_other_precision(node) for node in graph.nodes] if other_precision else graph.nodes
        storages = graph.storages if storages is None else storages
        self.fixed: dict[int, torch.Tensor] = {}
        for value, tensor in graph.leaves.items():
            there = tensor.of(storages[tensor.storage])
            self.fixed[value] = _tensor_in_other_precision(there) if other_precision else there
        moving = graph.downstream({IDS, *replaced})
        with torch.no_grad():
            self._do([node for node in nodes if not moving.intersection(node.results)], self.fixed)
        self.nodes = [node for node in nodes if moving.intersection(node.results)]
        numbers = sum(graph.shape(value).numel() for value in moving)
        self.at_once = max(1, min(MOST_AT_ONCE, NUMBERS_AT_ONCE // max(1, numbers)))

    def logits(self, ids_BT: np.ndarray) -> torch.Tensor:
        """The logits, (B, A, V)."""
        parts = np.split(ids_BT, range(self.at_once, len(ids_BT), self.at_once))
        return torch.cat([self.run(part)[0] for part in parts])

    def run(
        self, ids_BT: np.ndarray, watch: Collection[int] = (), frozen: Mapping[int, torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
        """The logits (B, A, V), and the values to `watch`. `frozen` values (B, ...) replace the computed ones."""

        def one(ids_T: torch.Tensor, kept: Mapping[int, torch.Tensor]) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
            values = {**self.fixed, IDS: ids_T.reshape(self.graph.ids)}
            self._do(self.nodes, values, kept)
            logits = values[self.graph.logits]
            return logits.reshape(-1, logits.shape[-1]), {value: values[value] for value in watch}

        with torch.no_grad():
            ids = torch.from_numpy(np.ascontiguousarray(ids_BT, dtype=np.int64))
            return torch.func.vmap(one)(ids, dict(frozen or {}))

    def _do(
        self, nodes: Sequence[Node], values: dict[int, torch.Tensor], frozen: Mapping[int, torch.Tensor] | None = None
    ) -> None:
        torch.set_default_dtype(self.default)
        try:
            for node in nodes:
                self.tick()
                for value, result in zip(node.results, node(values), strict=True):
                    changed = result
                    if value in self.changes:
                        changed = self.changes[value](result, values[node.inputs[0]])
                    values[value] = frozen[value] if frozen and value in frozen else changed
        finally:
            torch.set_default_dtype(torch.float32)


def _in_other_precision(node: Node) -> Node:
    def other(part: Any) -> Any:
        if isinstance(part, float) and math.isfinite(part):
            return max(-LARGEST_SINGLE, min(part, LARGEST_SINGLE))
        return OTHER_PRECISION.get(part, part) if isinstance(part, torch.dtype) else part

    return node._replace(args=tree_map(other, node.args), kwargs=tree_map(other, node.kwargs))


def _tensor_in_other_precision(there: torch.Tensor) -> torch.Tensor:
    if there.dtype == torch.float64:
        there = torch.where(there.isfinite(), there.clamp(-LARGEST_SINGLE, LARGEST_SINGLE), there)
    return there.to(OTHER_PRECISION.get(there.dtype, there.dtype))


def written_after(programs: Sequence[Program], prompts_BT: np.ndarray, length: int) -> np.ndarray:
    """The greedy continuation (B, length) of prompts; 0 if logits are not numbers.

    `programs`: one program of the full length, which sees padding after what was written so far, or one for each
    length.
    """
    start = prompts_BT.shape[1]
    ids_BT = np.pad(prompts_BT, ((0, 0), (0, length)))
    for step in range(start, start + length):
        program = programs[0] if len(programs) == 1 else programs[step - start]
        logits_BAV = program.logits(ids_BT[:, : program.graph.tokens])
        logits_BV = logits_BAV[:, step - 1] if logits_BAV.shape[1] > 1 else logits_BAV[:, 0]
        ids_BT[:, step] = torch.where(logits_BV.isnan().any(-1), 0, logits_BV.argmax(-1)).numpy()
    return ids_BT[:, start:]


def confirmed(program: Program, prompts_BT: np.ndarray, drafts_BT: np.ndarray) -> np.ndarray:
    """Whether the program would write each token of a draft after the drafted tokens before it, (B,)."""
    ids_BT = np.concatenate([prompts_BT, drafts_BT[:, :-1]], axis=1)
    logits_BAV = program.logits(ids_BT)[:, -drafts_BT.shape[1] :]
    return (logits_BAV.argmax(-1).numpy() == drafts_BT).all(-1)


def shaken_graph(graph: Graph) -> Graph:
    """The graph with slightly wrong numbers in its code, and no other change."""
    counted = graph.counted
    storages = {place: whole if place in counted else _shaken_tensor(whole) for place, whole in graph.storages.items()}
    return graph._replace(nodes=[_shaken_node(node) for node in graph.nodes], storages=storages)


def _shaken_node(node: Node) -> Node:
    shaken = {
        name: given if node.places(name) else tree_map(lambda leaf: _shaken(leaf) if numbers_in(leaf) else leaf, given)
        for name, given in node.settings.items()
    }
    args = [*shaken.values()][: len(node.args)]
    return node._replace(args=args, kwargs={name: shaken[name] for name in node.kwargs})


def _shaken(number: int | float) -> int | float:
    size = abs(number)
    if not math.isfinite(number) or size > INFINITE_ABOVE or (size == round(size) and size < EXACT_BELOW):
        return number
    if math.isclose(10.0 ** round(math.log10(size)), size, rel_tol=1e-12):
        return number
    moved = number * (1 + SHAKEN * random.Random(repr(number)).choice((-1, 1)))
    return moved if isinstance(number, float) else round(moved)


def _shaken_tensor(whole: torch.Tensor) -> torch.Tensor:
    if whole.dtype == torch.bool:
        return whole
    parts = real_parts(whole)
    numbers = parts.double()
    kept = ((numbers == numbers.round()) & (numbers.abs() < EXACT_BELOW)) | (numbers.abs() > INFINITE_ABOVE)
    up = torch.randint(0, 2, numbers.shape, generator=torch.Generator().manual_seed(0)) * 2 - 1
    loudness = torch.where(numbers.abs() <= LOUDEST, numbers.abs(), 0).max() if numbers.numel() else 0
    moved = torch.where(kept, parts, (numbers + SHAKEN * up * torch.clamp(numbers.abs(), min=loudness)).to(parts.dtype))
    return torch.view_as_complex(moved) if whole.is_complex() else moved
