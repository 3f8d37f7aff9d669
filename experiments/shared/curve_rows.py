"""The length curves of a sweep's runs as rows: one for each cell, seed, task and length."""

import csv
from collections.abc import Iterator
from pathlib import Path

from lab.benchmarks.length_curves.tables import of_run
from lab.runs import Run
from lab.sweeping.cells import trials
from lab.sweeping.config import SweepConfig

COLUMNS = ("task", "model", "seed", "digits", "problems", "right", "n")


def curve_rows(sweep: SweepConfig) -> Iterator[tuple[str | int, ...]]:
    """The rows of the finished runs, in the order of COLUMNS. Each seed has problems of its own."""
    for trial in trials(sweep):
        if not trial.finished:
            continue
        model = ", ".join(label for key, label in trial.cell.labels.items() if key != "data.tasks") or "all"
        for task, lengths in of_run(Run(trial.config.path)).items():
            for digits, scores in lengths.items():
                value, _, _, n = scores.exact_match
                yield task, model, trial.config.seed, digits, "own", round(value * n), n


def write_curve_rows(sweep: SweepConfig, file: Path) -> None:
    """Writes the rows of a sweep into a results file, if its runs have length curves."""
    if sweep.results.kind != "length_curves":
        return
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerows([COLUMNS, *curve_rows(sweep)])
