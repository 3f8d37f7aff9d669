"""Where walking heads stop, and how the answers change if they stop elsewhere (lab/parts/walk.py).

    python -m experiments.graft-walks.run MODEL[,MODEL ...] [digits=6x12,20x12,50x12,100x12] [edit=100x16]
                                      [layers=50x8] [seed=1] [wording=N] [table=graft_walks] [output=FOLDER]

MODEL is a run of the row "as written" of experiments/graft.py, or its exported adapters; give one for each seed. Each
sum is read once with its right answer, so a sum counts as right if each digit is the likeliest after the right ones
before it, that is, if greedy decoding would write it. For each layer and length, the script measures the probability of
stopping at the place that decides about the carry (or of not stopping, if no place decides), by how many places are
passed on the way. Then it changes where walking heads stop:

    as it is            nothing is changed
    the right place     all stop at the place that decides, with certainty
    one place lower     all stop one place below the right one (a control)
    nowhere             none ever stops
    layer L nowhere     the heads of layer L never stop (on the sums of `layers`; the other edits use the sums of
                        `edit`)

Sums are asked in NUPA's wording, or in held-out wording N (lab/text/templates.py), counted from 0. digits=50x12 means
12 sums of 50 digits in each stratum. Measurements are kept in the output folder and not repeated. Leaves two tables and
a figure.
"""

import sys
from collections.abc import Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from experiments.shared.arguments import counts, one_of, own_and_listed, whole_number
from experiments.shared.kept import Kept, identified
from experiments.shared.publishing import Results, beside_runs
from lab.config.schema import ModelConfig
from lab.drawing import figures
from lab.drawing.tables import Entry, Shown, Table
from lab.errors import ConfigError, exit_cleanly
from lab.models import loading
from lab.models.swaps import swap_of
from lab.numbers.additions import STRATA, addition
from lab.numbers.statistics import seeds_proportion
from lab.numbers.tasks import task
from lab.parts.rows import Rows
from lab.parts.walk import WalkHook, decisive, right_stops, walk_down
from lab.progress import quiet_libraries
from lab.text.examples import encode
from lab.text.formats import TextFormat
from lab.text.templates import HELD_OUT, worded
from lab.trees.losses import base_model

PASSED = {"none": (0, 0), "1": (1, 1), "2-4": (2, 4), "5-16": (5, 16), "17 or more": (17, 10**9)}
"""How many places are passed before the one that decides, in groups: the smallest and the largest number."""
AS_IS, RIGHT, LOWER, NOWHERE = "as it is", "the right place", "one place lower", "nowhere"


class Row(NamedTuple):
    """A sum with its right answer, ready to be read once."""

    ids_T: torch.Tensor
    first: int
    """The index of the token that writes the answer's first digit."""
    right_QK: torch.Tensor
    """Where each token should stop: nowhere if no place decides."""
    lower_QK: torch.Tensor
    """One place lower than the right one."""
    passed_Q: torch.Tensor
    """How many places are passed on the way; -1 for tokens that do not walk."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    keys = ("digits", "edit", "layers", "seed", "wording", "table", "output")
    given, names = own_and_listed(arguments, "models that walk", *keys)
    templates = {"": "", **{str(place): template for place, template in enumerate(HELD_OUT)}}
    seed, template = whole_number(given, "seed", 1), templates[one_of(templates, given, "wording", "")]
    kept = Kept(Path(given.get("output", "checkpoints")) / "graft_walks.json")
    walkers = [Walker(name, seed, template, kept) for name in names]
    asked = counts(given, "digits", "6x12,20x12,50x12,100x12")
    edited, layers = counts(given, "edit", "100x16"), counts(given, "layers", "50x8")
    stops: dict[int, list[dict[str, Any]]] = {}
    found: dict[tuple[str, int, int], list[dict[str, int]]] = {}
    for walker in walkers:
        for length, count in asked.items():
            stops.setdefault(length, []).append(walker.stops(length, count))
        of_layers = (AS_IS, *(f"layer {layer} nowhere" for layer in walker.layers))
        edits = chain(product((AS_IS, RIGHT, LOWER, NOWHERE), edited.items()), product(of_layers, layers.items()))
        for edit, (length, count) in edits:
            found.setdefault((edit, length, count), []).append(walker.right(edit, length, count))
    name = given.get("table", "graft_walks")
    show_stops(stops, results, name)
    show_edits(found, results, name)


class Walker:
    """A model with walking heads, and what is known about it. It is loaded when it is first needed."""

    def __init__(self, name: str, seed: int, template: str, kept: Kept) -> None:
        self.name, self.seed, self.template, self.kept = name, seed, template, kept
        self.known_as = f"{identified(name)} {seed} {template or 'nupa'}"
        self._loaded: Any = None

    def _model(self) -> tuple[Any, Any, Any]:
        """The model, the part of it that walks, and the tokenizer."""
        if self._loaded is None:
            model, tokenizer = loading.load(ModelConfig(name=self.name))
            base = base_model(model)
            if "walk" not in getattr(base, "parts", {}):
                raise ConfigError(f"{self.name}: no heads of this model walk")
            self._loaded = model, base, tokenizer
        return self._loaded

    @property
    def layers(self) -> range:
        return self._model()[1].parts["walk"].layers

    def rows(self, length: int, count: int, stratum: str) -> list[Row]:
        model, base, tokenizer = self._model()
        written = TextFormat(swap_of(model).format, [task("add_integer")])
        examples = [written.example(addition(stratum, length, self.seed, index)) for index in range(count)]
        if self.template:
            examples = [worded(self.template, example) for example in examples]
        return [row_of(base, *encode(example, tokenizer)) for example in examples]

    def right(self, edit: str, length: int, count: int) -> dict[str, int]:
        """How many sums of each stratum are right after an edit."""

        def measure() -> dict[str, int]:
            return {
                stratum: sum(self._said(row, editing(edit, row)) for row in self.rows(length, count, stratum))
                for stratum in STRATA
            }

        return self.kept.once(f"{self.known_as} {edit} {length}x{count}", measure, str)

    @torch.inference_mode()
    def _said(self, row: Row, hook: WalkHook) -> bool:
        """Whether each token of the answer is the likeliest."""
        model, base, _ = self._model()
        base.parts["walk"].watch(hook)
        try:
            logits_TV = model(row.ids_T[None]).logits[0]
        finally:
            base.parts["walk"].watch(None)
        said_T = logits_TV[row.first : -1].argmax(-1)
        return bool((said_T == row.ids_T[row.first + 1 :]).all())

    def stops(self, length: int, count: int) -> dict[str, Any]:
        """For each layer and each group of PASSED, the mean probability of doing the right thing and how many digits
        it is the mean of; "nothing decides" is a group of its own."""
        return self.kept.once(f"{self.known_as} stops {length}x{count}", lambda: self._stops(length, count))

    def _stops(self, length: int, count: int) -> dict[str, Any]:
        found: dict[tuple[int, str], list[float]] = {}
        for stratum in STRATA:
            for row in self.rows(length, count, stratum):

                def see(layer: int, weights_BNQK: torch.Tensor, row: Row = row) -> torch.Tensor:
                    weights_QK = weights_BNQK[0].mean(0).float()
                    stopped_Q = (weights_QK * row.right_QK).sum(-1)
                    decided_Q = row.right_QK.any(-1)
                    chance_Q = torch.where(decided_Q, stopped_Q, 1 - weights_QK.sum(-1))
                    for token in np.flatnonzero(row.passed_Q >= 0):
                        group = _group(int(row.passed_Q[token])) if decided_Q[token] else "nothing decides"
                        found.setdefault((layer, group), []).append(float(chance_Q[token]))
                    return weights_BNQK

                self._said(row, see)
        return {f"{layer} {group}": [float(np.mean(all_)), len(all_)] for (layer, group), all_ in found.items()}


def row_of(base: Any, prompt: list[int], completion: list[int]) -> Row:
    """The end-of-sequence token is left out: it would end the answer, whose places are those of an unfinished one."""
    tokens = [*prompt, *completion[:-1]]
    operands = base.parts["walk"].operands
    spots = Rows([tokens], base.words).spots("none", operands)
    walk = walk_down(spots, operands)
    decides_BQK = decisive(spots, operands, torch.from_numpy(base.words.digits(tokens))[None])
    right_BQK = right_stops(walk["places_BK"], decides_BQK)
    places_K, below_QK, right_QK = walk["places_BK"][0], walk["below_BQK"][0], right_BQK[0]
    stop_Q = torch.where(right_QK, places_K, -1).amax(-1)
    lower_QK = below_QK & (places_K == stop_Q[:, None] - 1)
    above_QK = below_QK & (places_K > stop_Q[:, None])
    passed_Q = torch.where(below_QK.any(-1), above_QK.sum(-1), -1)
    return Row(torch.tensor(tokens), len(prompt) - 1, right_QK, lower_QK, passed_Q)


def _group(passed: int) -> str:
    return next(name for name, (least, most) in PASSED.items() if least <= passed <= most)


def editing(edit: str, row: Row) -> WalkHook:
    def change(layer: int, weights_BNQK: torch.Tensor) -> torch.Tensor:
        if edit == NOWHERE or edit == f"layer {layer} nowhere":
            return torch.zeros_like(weights_BNQK)
        if edit in (RIGHT, LOWER):
            stops_QK = row.right_QK if edit == RIGHT else row.lower_QK
            return stops_QK.to(weights_BNQK.dtype).expand_as(weights_BNQK)
        return weights_BNQK

    return change


def show_stops(stops: Mapping[int, Sequence[Mapping[str, Any]]], results: Results, name: str) -> None:
    """A table and a figure: for each length, layer and group, the mean over the models."""
    groups, lines = [*PASSED, "nothing decides"], []
    layers = sorted({int(key.split()[0]) for models in stops.values() for one in models for key in one})
    means: dict[tuple[int, int, str], float] = {}
    for length, models in stops.items():
        for layer in layers:
            cells: list[Entry] = []
            for group in groups:
                known = [one[f"{layer} {group}"][0] for one in models if f"{layer} {group}" in one]
                if known:
                    means[length, layer, group] = sum(known) / len(known)
                cells.append(f"{100 * means[length, layer, group]:.1f}" if known else "")
            lines.append((str(length), str(layer), *cells))
    title = "The probability of stopping at the place that decides (%), by the number of places passed on the way"
    results.show(Table(title, ("digits", "layer", *groups), lines, 2), f"{name}_stops")
    with figures.figure_at(results.file(f"{name}.png"), (max(6, 2.5 * len(stops) + 1), 3.2)) as figure:
        panels = figure.subplots(1, len(stops), squeeze=False, sharey=True)[0]
        for axes, length in zip(panels, stops, strict=True):
            for color, group in zip(figures.COLORS, groups, strict=False):
                points = {layer: means[length, layer, group] for layer in layers if (length, layer, group) in means}
                if points:
                    axes.plot([*points], [*points.values()], marker=".", color=color, label=group)
            axes.set(title=f"{length} digits", xlabel="layer", ylim=(min(means.values()) - 0.01, 1.01), xticks=layers)
        panels[0].set_ylabel("stops at the right place")
        handles, labels = panels[-1].get_legend_handles_labels()
        figure.legend(handles, labels, title="places passed", loc="outside lower center", ncols=len(labels))
        figures.headed(figure, "Where walking heads stop")


def show_edits(found: Mapping[tuple[str, int, int], Sequence[Mapping[str, int]]], results: Results, name: str) -> None:
    lines: list[tuple[Entry, ...]] = []
    for (edit, length, count), models in found.items():
        shares = ([one[stratum] / count for one in models] for stratum in STRATA)
        cells = [Shown(seeds_proportion(of_models, count), "{:.1f} ({:.1f}-{:.1f})", 100) for of_models in shares]
        lines.append((edit, str(length), str(count), *cells))
    asked = len(next(iter(found.values())))
    title = f"Sums that are right if walking heads stop elsewhere (%, 95 %), {asked} models, n each and stratum"
    results.show(Table(title, ("they stop at", "digits", "n", *STRATA), lines, 3), f"{name}_edits")


if __name__ == "__main__":
    main(sys.argv[1:])
