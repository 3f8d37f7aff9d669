"""The circuit of a trained adder, found by intervening on sets of parts.

    python -m experiments.trained_circuits [NAME ...]

Prints heads and MLPs, and the edges between them, of the trained adders of `lab probe benchmark`, which
lab/probing/benchmark/families/trained.py lists (all of them if none is named).

Nobody wrote these circuits, so a circuit is the smallest set of parts that this script finds and that passes two tests.
With the source's activations only in the set, the base answers as the source does; with the source's activations
everywhere else, it answers as before. Parts are left out one after another, beginning with the one that has the
smallest effect by itself, as long as both tests pass. If two parts can replace each other, another set may pass as
well.

Instruments score single parts, so no instrument computes the quantity by which it is scored; activation patching comes
closest.
"""

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from lab.errors import exit_cleanly
from lab.probing.addition.pairs import Pairs
from lab.probing.benchmark.families import trained
from lab.probing.bridge import Subject
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments import edges, patching
from lab.probing.instruments.writes import EMBEDDING

SLACK = 0.05
"""How far either test may be off, as a share of the carry's whole effect."""
Part = TypeVar("Part")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    for name in arguments or trained.ADDERS:
        adder, pairs = trained.ADDERS[name](0), trained.pairs()
        print(f"{name}: {', '.join(map(str, sorted(nodes(adder, pairs))))}")
        print(*(f"    {sender} -> {receiver}" for sender, receiver in sorted(wires(adder, pairs))), sep="\n")


def nodes(subject: Subject, pairs: Pairs) -> frozenset[Component]:
    """Heads and MLPs that the carry comes through. `pairs`: carry-only pairs, not those of the benchmark.

    Raises what `patching.patch` raises.
    """
    every = subject.components

    def off(circuits: Sequence[frozenset[Component]]) -> list[float]:
        """How far the worse of both tests is off, in both directions of the carry."""
        sets = [part for circuit in circuits for part in (circuit, frozenset(every) - circuit)]
        patches = [patching.Patch(tuple(sorted(one)), EVERYWHERE) for one in sets if one]
        effect = patching.patch(subject, pairs, patches, "effect", {"patch": list(map(str, patches))}).effect.value
        found = dict(zip([one for one in sets if one], effect.T, strict=True))
        nothing = np.zeros(len(effect))
        return [
            float(
                max(np.abs(1 - found.get(one, nothing)).max(), np.abs(found.get(frozenset(every) - one, nothing)).max())
            )
            for one in circuits
        ]

    return _smallest(every, off)


def wires(subject: Subject, pairs: Pairs) -> frozenset[tuple[str, str]]:
    """Edges between heads, MLPs and the logits, by the names of sender and receiver; those of the embedding are kept.

    The test is faithfulness under resampling. Raises what `edges.faithfulness` raises.
    """
    graph = edges.Graph(subject)
    of_embedding = graph.is_edge_UR & np.array([one == EMBEDDING for one in graph.senders])[:, None]
    every = [(int(u), int(r)) for u, r in np.argwhere(graph.is_edge_UR & ~of_embedding)]

    def off(circuits: Sequence[frozenset[tuple[int, int]]]) -> list[float]:
        masks = []
        for circuit in circuits:
            mask_UR = of_embedding.copy()
            mask_UR[tuple(np.array(sorted(circuit), dtype=int).reshape(-1, 2).T)] = True
            masks.append(mask_UR)
        kept = edges.faithfulness(subject, pairs, masks, "resample", batch_size=256).value
        return np.abs(1 - kept).tolist()

    named = graph.names()
    return frozenset((named["sender"][u], named["receiver"][r]) for u, r in _smallest(every, off))


def _smallest(every: Sequence[Part], off: Callable[[Sequence[frozenset[Part]]], list[float]]) -> frozenset[Part]:
    """The parts that cannot be left out. `off` returns for each set how far it is from passing the tests."""
    alone = off([frozenset(every) - {part} for part in every])
    kept = frozenset(every)
    for _, place in sorted(zip(alone, range(len(every)), strict=True)):
        without = kept - {every[place]}
        if off([without])[0] <= SLACK:
            kept = without
    return kept


if __name__ == "__main__":
    main(sys.argv[1:])
