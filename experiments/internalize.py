"""Removing a trace line by line: accuracy against tokens, from the whole trace to none (ICoT-SI).

    python experiments/internalize.py [seeds=0,1,2] [publish=true] [key=value ...]

Trains configs/rules_internalize.yaml with each seed, and also the same model on direct answers, with the same updates
and the same problems. Finished runs are shown again. The table has a row for the end of each stage: the lines that
samples lacked, and exact match and tokens written for each task, at the longest trained length. Other keys
belong to the runs' config. Writes internalize.md and .png to checkpoints/results/, or to experiments/results/ with
publish=true. Takes a quarter of an hour a seed on a free core.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import matplotlib.pyplot as plt
from shared.publishing import take_results

from lab.benchmarks.results import CurvePoint
from lab.command import read_config
from lab.config.pretraining import PretrainConfig
from lab.drawing.tables import Entry, Table, percent
from lab.errors import exit_cleanly
from lab.numbers.statistics import Estimate, wilson
from lab.pretrain import main as pretrain
from lab.runs import Run
from lab.training.internalizing import Removal

HERE = Path(__file__).parent
CONFIG = str(HERE.parent / "configs" / "rules_internalize.yaml")
DIRECT = ["data.rules.detail=answer", "training.internalize.stages=0"]
WAYS: dict[str, list[str]] = {"internalized": [], "direct": DIRECT}


@exit_cleanly
def main(arguments: list[str]) -> None:
    results, rest = take_results(arguments, HERE / "results")
    seeds = next((part.removeprefix("seeds=") for part in rest if part.startswith("seeds=")), "0,1,2").split(",")
    keys = [part for part in rest if not part.startswith("seeds=")]
    found = {way: [trained(way, seed, [*more, *keys]) for seed in seeds] for way, more in WAYS.items()}
    config = read_config(PretrainConfig, [CONFIG, *keys], "internalize", "")
    removal = Removal(config.training.internalize, config.training.batch_size)
    length, tasks = config.data.lengths[1], [str(task) for task in config.data.tasks]
    steps = sorted({point.step for point in found["internalized"][0]})
    columns = ("updates", "lines removed", *(f"{task}, {what}" for task in tasks for what in COLUMNS))
    rows = []
    for step in steps:
        row = [text for task in tasks for text in cells(found, step, task, length)]
        rows.append((str(step), str(removal.stage(step - 1) * config.training.internalize.lines), *row))
    title = f"Problems of {length} digits while traces lose their lines, {len(seeds)} seeds"
    table = Table(title, columns, rows, names=2)
    print(table.markdown())
    results.file("internalize.md").write_text(table.markdown())
    figure, axes = plt.subplots(1, len(tasks), figsize=(4.5 * len(tasks), 3.6), sharey=True, layout="constrained")
    for place, task in zip(axes, tasks, strict=True):
        for way, runs in found.items():
            at = [summed(runs, step, task, length) for step in steps]
            place.plot([tokens for _, tokens in at], [share.value for share, _ in at], "-o", ms=4, label=way)
        place.set(title=task, xlabel="tokens written", ylim=(-0.03, 1.03))
    axes[0].set_ylabel(f"exact match at {length} digits")
    axes[0].legend()
    figure.savefig(results.file("internalize.png"), dpi=110)


COLUMNS = ("right, %", "tokens", "direct, right, %")


def trained(way: str, seed: str, keys: Sequence[str]) -> list[CurvePoint]:
    """What was measured during a run; trains it unless it is finished."""
    arguments = [CONFIG, f"name={way}_{seed}", f"seed={seed}", "resume=true", *keys]
    pretrain(arguments)
    run = Run(read_config(PretrainConfig, arguments, "internalize", "").path)
    return [CurvePoint.model_validate(row) for row in run.read("curve")]


def cells(found: dict[str, list[list[CurvePoint]]], step: int, task: str, length: int) -> tuple[Entry, ...]:
    share, tokens = summed(found["internalized"], step, task, length)
    direct, _ = summed(found["direct"], step, task, length)
    return percent(share), f"{tokens:.1f}", percent(direct)


def summed(runs: Sequence[Sequence[CurvePoint]], step: int, task: str, length: int) -> tuple[Estimate, float]:
    """Exact match over the problems of all seeds, and the mean of the tokens that were written."""
    points = [p for run in runs for p in run if (p.step, p.task, p.length) == (step, task, length)]
    right = sum(round(p.exact_match.value * p.exact_match.n) for p in points)
    return wilson(right, sum(p.exact_match.n for p in points)), mean(p.tokens or 0 for p in points)


if __name__ == "__main__":
    main(sys.argv[1:])
