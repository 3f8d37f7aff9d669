"""Removing a trace line by line (ICoT-SI): accuracy against words written, from the whole trace to none.

    python -m experiments.internalized.run [seeds=0,1,2] [key=value ...]

Trains configs/rules_internalize.yaml with each seed, and also the same model without traces, with the same updates and
the same problems. Finished runs are not repeated. The table has a row for each task and the end of each stage: the
number of lines removed, the words written, and exact match at the lengths that were measured during training, mean over
the seeds (95 %, the wider of Student's over the seeds and Wilson's over their problems). Other keys change the runs'
config. Writes internalize.md and .png to checkpoints/results/. Takes
half an hour a seed on a free core.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from experiments.shared.arguments import own_and_others
from experiments.shared.internalizing import Removal, internalizing
from experiments.shared.publishing import beside_runs
from lab.benchmarks.results import CurvePoint
from lab.command import read_config
from lab.config.pretraining import PretrainConfig
from lab.drawing.figures import COLORS, error_bars, figure_at, legend_below, line_with_band
from lab.drawing.tables import Table, percent
from lab.errors import exit_cleanly
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.pretrain import pretrain
from lab.runs import Run

HERE = Path(__file__).parent
CONFIG = str(HERE.parents[1] / "configs" / "rules_internalize.yaml")
REMOVED, NEVER = "internalized", "never traced"
WAYS: dict[str, list[str]] = {REMOVED: [], NEVER: ["data.rules.detail=answer"]}
STAGES, WHOLE, EVERY = 4, 1200, 800
"""How many stages remove a line, the steps before the first of them, and the steps of each."""
Curves = Sequence[Sequence[CurvePoint]]
"""What was measured during the training of each seed."""


@exit_cleanly
def main(arguments: list[str]) -> None:
    results = beside_runs(arguments)
    given, keys = own_and_others(arguments, "seeds")
    seeds = given.get("seeds", "0,1,2").split(",")
    found = {way: [trained(way, seed, [*keys, *more]) for seed in seeds] for way, more in WAYS.items()}
    config = read_config(PretrainConfig, [CONFIG, *keys], "internalize", "")
    removal, tasks = removal_of(config), list(map(str, config.data.tasks))
    lengths = config.evaluation.while_training
    ends = [step for step in steps(found[REMOVED]) if removal.begins(step) or step == config.training.max_steps]
    rows = [
        (task, str(removal.stage(step - 1) * removal.lines),
         f"{words(found[REMOVED], step, task, lengths[0]):.1f}",
         *(percent(share(found[way], step, task, length))
           for way in WAYS for length in lengths))
        for task in tasks
        for step in ends
    ]  # fmt: skip
    columns = ("task", "lines removed", f"words at {lengths[0]} digits")
    columns += tuple(f"{way}, {length} digits" for way in WAYS for length in lengths)
    title = f"Traces that lose their lines during training: exact match (%), {len(seeds)} seeds"
    results.show(Table(title, columns, rows, 1), "internalize")
    draw(found, tasks, ends, lengths, results.file("internalize.png"))


def trained(way: str, seed: str, keys: Sequence[str]) -> list[CurvePoint]:
    """What was measured during a run; trains it unless it is finished."""
    arguments = [CONFIG, f"name={way.replace(' ', '_')}_{seed}", f"seed={seed}", "resume=true", *keys]
    config = read_config(PretrainConfig, arguments, "internalize", "")
    config.check_run()
    pretrain(config, internalizing(config, removal_of(config)) if way == REMOVED else None)
    run = Run(config.path)
    return [CurvePoint.model_validate(row) for row in run.read("curve")]


def removal_of(config: PretrainConfig) -> Removal:
    return Removal(config.training.batch_size, STAGES, WHOLE, EVERY)


def steps(seeds: Curves) -> list[int]:
    return sorted({point.step for point in seeds[0]})


def at(seeds: Curves, step: int, task: str, length: int) -> list[CurvePoint]:
    """The measurement of each seed."""
    return [p for curve in seeds for p in curve if (p.step, p.task, p.length) == (step, task, length)]


def share(seeds: Curves, step: int, task: str, length: int) -> Estimate:
    points = at(seeds, step, task, length)
    return seeds_proportion([point.exact_match.value for point in points], points[0].exact_match.n, same_problems=False)


def words(seeds: Curves, step: int, task: str, length: int) -> float:
    """The mean number of words written for an answer."""
    return mean(point.tokens or 0 for point in at(seeds, step, task, length))


def draw(
    found: Mapping[str, Curves], tasks: Sequence[str], ends: Sequence[int], lengths: Sequence[int], path: Path
) -> None:
    with figure_at(path, figsize=(9, 3.2)) as figure:
        panels = figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
        for axes, task in zip(panels, tasks, strict=True):
            for color, length in zip(COLORS, lengths, strict=False):
                across = [words(found[REMOVED], step, task, lengths[0]) for step in ends]
                shares = [share(found[REMOVED], step, task, length) for step in ends]
                line_with_band(axes, dict(zip(across, shares, strict=True)), color=color, label=f"{length} digits")
                last = share(found[NEVER], ends[-1], task, length)
                direct = words(found[NEVER], ends[-1], task, lengths[0])
                look = {"fmt": "x", "color": color, "label": f"{length} digits, {NEVER}"}
                axes.errorbar([direct], [last.value], error_bars([last]), **look)
            axes.set(title=task, xlabel=f"words at {lengths[0]} digits", ylim=(-0.03, 1.03))
        panels[0].set_ylabel("exact match")
        legend_below(figure, 4)


if __name__ == "__main__":
    main(sys.argv[1:])
