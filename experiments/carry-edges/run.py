"""Which edges of SmolLM2 carry the carry: in three tunings, and before tuning and after it?

    python -m experiments.carry-edges.run [seeds=0,1,2] [columns=hundreds,tens] [pairs=16] [tested=16] [steps=5]
                                        [output=checkpoints] [table=smollm2_edges] [key=value ...]

Tunes SmolLM2-135M on sums of 1-4 digits by configs/smollm2_sums.yaml, once for each seed. Tuned models are asked in
NUPA's words, the untouched model after three examples, because it cannot add without them. For the carry into the
hundreds of three-digit sums, the first tuned model is also asked after the examples; for the carry into the tens of
two-digit sums, so is the untouched one, with pairs that it gets right, of 120. For each model:

    discovery  integrated gradients rank all edges on `pairs` pairs that differ only in the carry
               (lab/probing/instruments/edges.py)
    test       on `tested` other pairs, only the first edges of a ranking stay live; all others carry what they carry in
               the sum with the other carry. How much of the margin is left? The rankings are the model's own, those of
               other models, and a control: as many edges, drawn from all between the same senders and receivers. And
               how much is left with the model's own, but without those that leave L20H7, or another head of its layer?

Other arguments go to `lab.finetune`. Measurements are kept beside each model and are not repeated. Leaves tables and a
figure in results/ beside the runs.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.shared.arguments import own_and_others, some_of, whole_number, whole_numbers
from experiments.shared.estimates import estimate, estimated, shown
from experiments.shared.kept import Kept
from experiments.shared.publishing import Results, beside_runs
from experiments.shared.showing import looks
from experiments.shared.training import trained
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing import figures
from lab.drawing.tables import NOT_MEASURED, Entry, Table, percent
from lab.errors import exit_cleanly
from lab.numbers.statistics import wilson
from lab.probing.addition.pairs import Pairs, carry_only
from lab.probing.answered import Answered
from lab.probing.bridge import Subject, open_model
from lab.probing.components import Component
from lab.probing.instruments import edges
from lab.probing.instruments.edges import Graph
from lab.probing.measured import max_abs_over_directions
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "smollm2_sums.yaml"
BASE, UNTOUCHED = "smollm2-135m-instruct", "untouched"
EXAMPLES = "12 + 45 = 57. 38 + 27 = 65. 64 + 29 = 93. {a} + {b} = "
COLUMNS = {"hundreds": (3, 2), "tens": (2, 1)}
"""How many digits the numbers have, and the column that the carry goes into."""
SHARES = (0.005, 0.01, 0.02, 0.05)
"""Shares of all edges that stay live."""
COMPARED = 0.01
"""The share of edges whose overlap is counted."""
KEPT = 0.2
"""The share of all edges whose ranks are kept."""
UNTOUCHED_PAIRS = 120
"""Pairs of which the untouched model gets some right."""
NAMED = 12
"""How many edges are named."""
DRAWN = "drawn"
WITHOUT = {"its own without L20H7": Component("head", 20, 7), "its own without L20H8": Component("head", 20, 8)}
BATCH = 16


class Asked(NamedTuple):
    """A model, how it is asked, and for which carry."""

    folder: Path
    """Where its measurements are kept."""
    model: str
    template: str
    column: str

    def opened(self) -> Subject:
        return open_model(self.model, self.template)

    def drawn(self, count: int, seed: int) -> Pairs:
        """Pairs that differ only in the carry."""
        digits, column = COLUMNS[self.column]
        return carry_only(digits, column - 1, UNTOUCHED_PAIRS if self.model == BASE else count, seed)

    @cache  # noqa: B019
    def right(self, count: int, seed: int) -> np.ndarray:
        """Which of the drawn pairs the model gets right in both sums."""
        drawn = self.drawn(count, seed)
        return Answered(self.opened(), drawn).run(BATCH).right_B[: len(drawn.base)]

    def pairs(self, count: int, seed: int) -> Pairs:
        """The drawn pairs; for the untouched model, the first `count` that are right."""
        drawn = self.drawn(count, seed)
        return drawn.where(self.right(count, seed)).part(slice(count)) if self.model == BASE else drawn

    def once(self, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        words = "after examples" if self.template else "in NUPA's words"
        return Kept(self.folder / "edges.json").once(f"{self.column} {words}: {name}", measure)


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, changes = own_and_others(arguments, "seeds", "columns", "pairs", "tested", "steps", "output", "table")
    output, name = Path(given.get("output", "checkpoints")), given.get("table", "smollm2_edges")
    counts = [whole_number(given, key, usual) for key, usual in (("pairs", 16), ("tested", 16), ("steps", 5))]
    tuned: list[Path] = []
    seeds = whole_numbers(given, "seeds", "0,1,2")
    for seed in seeds:
        own = [f"name=smollm2_sums_{seed}", f"seed={seed}", f"output={output}", "resume=true"]
        tuned.append(trained(load(FinetuneConfig, CONFIG, [*changes, *own])))
    for column in some_of(COLUMNS, given.get("columns", "hundreds,tens"), "columns", ","):
        asked = {f"seed {seed}": Asked(run, str(run), "", column) for seed, run in zip(seeds, tuned, strict=True)}
        if column == "tens":
            asked = {UNTOUCHED: Asked(output / UNTOUCHED, BASE, EXAMPLES, column), **asked}
        else:
            asked[f"seed {seeds[0]}, after examples"] = Asked(tuned[0], str(tuned[0]), EXAMPLES, column)
        show(measured(asked, *counts), results, f"{name}_{column}")


def measured(asked: Mapping[str, Asked], pairs: int, tested: int, steps: int) -> dict[str, dict[str, Any]]:
    """The rankings of all models, and what is left of each model's margin with the first edges of each ranking."""
    found, scale = {}, f"{pairs} pairs, {steps} steps"
    for name, one in asked.items():
        kind = "pairs that are right" if one.model == BASE else "pairs"
        found[name] = one.once(f"ranking, {pairs} {kind}, {steps} steps", partial(ranked, one, pairs, steps))
    for name, one in asked.items():
        left = {}
        others = [other for other in asked if other != name]
        if UNTOUCHED in others:  # seeds are compared with each other in the other column
            others = [UNTOUCHED]
        for whose in [name, *WITHOUT, DRAWN, *others]:
            ranking = found.get(whose, found[name])["edges"]
            test = partial(tested_on, one, tested, ranking, whose)
            left[whose] = one.once(f"left of {whose}, {scale}, {tested} tested", test)
        found[name]["left"] = left
    return found


def ranked(asked: Asked, count: int, steps: int) -> dict[str, Any]:
    """The first edges, as indices of the flat array (senders, receivers), how many pairs are right, and the names and
    scores of the very first. "sum": the scores of the embedding's edges; 1 if attribution is exact."""
    subject, pairs = asked.opened(), asked.pairs(count, 1)
    graph = Graph(subject)
    right_N = asked.right(count, 1)
    both = edges.attribute(subject, pairs, steps)
    scores_UR = np.where(graph.is_edge_UR, np.nan_to_num(max_abs_over_directions(both.value)), 0)
    order = np.argsort(-np.abs(scores_UR), axis=None, kind="stable")[: round(KEPT * graph.count)]
    named = [np.unravel_index(int(place), scores_UR.shape) for place in order[:NAMED]]
    return {
        "edges": order.tolist(),
        "count": graph.count,
        "right": [int(right_N.sum()), len(right_N)],
        "sum": np.nansum(both.value[:, 0], -1).tolist(),
        "named": [[str(graph.senders[u]), str(graph.receivers[r]), float(scores_UR[u, r])] for u, r in named],
    }


def tested_on(asked: Asked, tested: int, ranking: Sequence[int], whose: str) -> dict[str, list[float]]:
    """What is left of the margin on other pairs, with its interval, by the share of edges that stay live."""
    subject = asked.opened()
    graph = Graph(subject)
    circuits = [chosen(graph, ranking, share) for share in SHARES]
    if whose == DRAWN:
        circuits = [mixed(graph, one_UR) for one_UR in circuits]
    if whose in WITHOUT:
        keeps_U = np.array([sender != WITHOUT[whose] for sender in graph.senders])
        circuits = [one_UR & keeps_U[:, None] for one_UR in circuits]
    left = edges.faithfulness(subject, asked.pairs(tested, 2), circuits, "resample", BATCH)
    return {str(share): estimate(left.at(circuit=place)) for place, share in enumerate(SHARES)}


def chosen(graph: Graph, ranking: Sequence[int], share: float) -> np.ndarray:
    """The first edges of a ranking, (U, R)."""
    live = np.zeros(graph.is_edge_UR.size, dtype=bool)
    live[list(ranking[: round(share * graph.count)])] = True
    return live.reshape(graph.is_edge_UR.shape)


def mixed(graph: Graph, circuit_UR: np.ndarray) -> np.ndarray:
    """As many edges drawn from all edges between the senders and the receivers of a circuit."""
    between_UR = graph.is_edge_UR & circuit_UR.any(1, keepdims=True) & circuit_UR.any(0)
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(between_UR))[: int(circuit_UR.sum())]
    live = np.zeros(circuit_UR.size, dtype=bool)
    live[drawn] = True
    return live.reshape(circuit_UR.shape)


def show(found: Mapping[str, dict[str, Any]], results: Results, name: str) -> None:
    results.show(left_table(found), name)
    results.show(overlap_table(found), f"{name}_overlap")
    results.show(named_table(found), f"{name}_named")
    draw(found, results.file(f"{name}.png"))


def left_table(found: Mapping[str, dict[str, Any]]) -> Table:
    lines: list[tuple[Entry, ...]] = []
    for name, one in found.items():
        for whose, left in one["left"].items():
            cells = [shown(estimated(left[str(share)])) for share in SHARES]
            lines.append((name, percent(wilson(*one["right"])), shown_as(whose, name), *cells))
    title = "What is left of the margin of SmolLM2-135M if only the first edges of a ranking stay live (%, 95 %)"
    return Table(title, ("model", "pairs right", "ranking", *(f"{100 * share:g} %" for share in SHARES)), lines, 3)


def shown_as(whose: str, model: str) -> str:
    """The name of a ranking that is tested on `model`."""
    return {model: "its own", DRAWN: "as many edges drawn"}.get(whose, whose)


def overlap_table(found: Mapping[str, dict[str, Any]]) -> Table:
    first = {name: set(one["edges"][: round(COMPARED * one["count"])]) for name, one in found.items()}
    lines: list[tuple[Entry, ...]] = []
    for name, one in found.items():
        shared = [
            NOT_MEASURED if other == name else f"{100 * len(first[name] & first[other]) / len(first[name]):.0f}"
            for other in found
        ]
        lines.append((name, " and ".join(f"{part:.2f}" for part in one["sum"]), *shared))
    first_edges = f"the first {100 * COMPARED:g} % of edges"
    title = f"The share of {first_edges} that two models have in common (%; {100 * COMPARED:g} by chance)"
    return Table(title, ("model", "sum of scores", *found), lines, 1)


def named_table(found: Mapping[str, dict[str, Any]]) -> Table:
    lines: list[tuple[Entry, ...]] = []
    for place in range(NAMED):
        lines.append((str(place + 1), *("{} to {} ({:.2f})".format(*one["named"][place]) for one in found.values())))
    return Table("The edges with the largest attributed effects", ("", *found), lines, 1)


def draw(found: Mapping[str, dict[str, Any]], path: Path) -> None:
    """A panel for each model, a line for each ranking; dashed if edges are left out of it."""
    rankings = (shown_as(whose, name) for name, one in found.items() for whose in one["left"])
    of_name = dict(zip(dict.fromkeys(["its own", *reversed(WITHOUT), *rankings]), looks(), strict=False))
    with figures.figure_at(path, (2.8 * max(2, len(found)), 3.4)) as figure:
        panels = np.atleast_1d(figure.subplots(1, len(found), sharey=True))
        for axes, (name, one) in zip(panels, found.items(), strict=True):
            for whose, left in one["left"].items():
                label = shown_as(whose, name)
                look = {**of_name[label], "ls": "--" if whose in WITHOUT else "-"}
                curve = {100 * share: estimated(left[str(share)]) for share in SHARES}
                figures.line_with_band(axes, curve, label=label, **look)
            axes.set(title=name, xlabel="live edges (%)", xscale="log")
            axes.minorticks_off()
            axes.set_xticks([100 * share for share in SHARES], [f"{100 * share:g}" for share in SHARES])
        panels[0].set_ylabel("share of the margin that is left")
        figures.legend_below(figure, 4)
        figures.headed(figure, "What the first edges of a ranking do alone")


if __name__ == "__main__":
    main(sys.argv[1:])
