"""Runs every contestant on every adder, and makes tables of the scores."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from lab.drawing.tables import NOT_MEASURED, Entry, Shown, Table
from lab.errors import LabError, TaskError
from lab.numbers.statistics import bootstrap_mean
from lab.probing.benchmark import families
from lab.probing.benchmark.contestants import CONTESTANTS, Scores, Trial
from lab.probing.benchmark.known import Adder
from lab.probing.config import BenchmarkConfig
from lab.runs import Run

ADDERS: Mapping[str, Callable[[int], Adder[Any]]] = {
    name: make
    for module in sorted(file.name for file in pkgutil.iter_modules(families.__path__))
    for name, make in importlib.import_module(f"{families.__name__}.{module}").ADDERS.items()
}
"""For each name, a function that makes the adder from a seed; those of every file in lab/probing/benchmark/families."""
_TITLES = {
    "nodes": "Which heads and MLPs: means over adders",
    "edges": "Which edges: means over adders",
    "heads": "Which heads look at which digit: means over adders",
    "direction": "Which direction is the carry: means over adders",
}


class Score(NamedTuple):
    """One figure of one instrument on one adder."""

    adder: str
    seed: int
    instrument: str
    measure: str
    value: float


def measure(config: BenchmarkConfig, run: Run, tell: Callable[[str], None]) -> list[Score]:
    """The scores of every adder. Adders that were finished before an interruption are not measured again. If an
    instrument fails on an adder, `tell` is called with the reason, and the instrument's measure "failed" is 1.

    Raises TaskError for an unknown adder.
    """
    found = []
    for name, make in chosen(config).items():
        for seed in config.seeds:
            stored = f"scores_{name.replace(', ', '_').replace(' ', '_')}_{seed}"
            if not (run.path / f"{stored}.json").exists():
                tell(f"{name}, seed {seed} ...")
                run.write_json(stored, [score._asdict() for score in _of(name, make(seed), seed, config, tell)])
            found += [Score(**row) for row in run.read_json(stored)]
    return found


def chosen(config: BenchmarkConfig) -> dict[str, Callable[[int], Adder[Any]]]:
    """The adders of a config, all of them if it names none. Raises TaskError for an unknown one."""
    if unknown := [name for name in config.adders if name not in ADDERS]:
        raise TaskError(f"adder {unknown[0]!r}: should be one of {', '.join(map(repr, ADDERS))}")
    return {name: ADDERS[name] for name in config.adders or ADDERS}


def tables(scores: list[Score]) -> list[Table]:
    """A table for each kind of contestant: a row for each instrument, a column for each measure, and means over adders
    and seeds."""
    kinds = dict.fromkeys(_kind(score.instrument) for score in scores)
    return [_table(kind, [score for score in scores if _kind(score.instrument) == kind]) for kind in kinds]


def everything(scores: list[Score]) -> Table:
    """All scores, one in each row."""
    rows = [(one.adder, str(one.seed), one.instrument, one.measure, f"{one.value:.6g}") for one in scores]
    return Table("Scores", Score._fields, rows, 4)


def _of(
    name: str, adder: Adder[Any], seed: int, config: BenchmarkConfig, tell: Callable[[str], None]
) -> Iterator[Score]:
    trial = Trial(adder, config.pairs, config.steps, config.das_steps, config.seed)
    for instrument, score in CONTESTANTS.items():
        try:
            measured: Scores = {**score(trial), "failed": 0.0}
        except LabError as error:
            tell(f"{instrument} on {name}: {error}")
            measured = {"failed": 1.0}
        for key, value in measured.items():
            yield Score(name, seed, instrument, key, value)


def _table(kind: str, scores: list[Score]) -> Table:
    measures = list(dict.fromkeys(score.measure for score in scores))
    instruments = list(dict.fromkeys(score.instrument for score in scores))
    values = {(one, key): [s.value for s in scores if (s.instrument, s.measure) == (one, key)]
              for one in instruments for key in measures}  # fmt: skip
    rows = [(one.removesuffix(f" ({kind})"), *(mean(values[one, key]) for key in measures)) for one in instruments]
    n = len({(score.adder, score.seed) for score in scores})
    return Table(f"{_TITLES[kind]} (95 %, at most {n} adders)", ("instrument", *measures), rows, 1)


def mean(values: list[float]) -> Entry:
    """The mean over adders, without nan, and its bootstrap interval; NOT_MEASURED if nothing is left."""
    there = [value for value in values if not np.isnan(value)]
    if not there:
        return NOT_MEASURED
    return Shown(bootstrap_mean(there), "{:.2f} ({:.2f}-{:.2f})", 1)


def _kind(instrument: str) -> str:
    return instrument.rpartition("(")[2].rstrip(")")
