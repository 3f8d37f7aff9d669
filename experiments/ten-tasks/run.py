"""One pretrained model tuned on ten tasks of NUPA with numbers of at most eight digits: how long may numbers be?

    python -m experiments.ten-tasks.run [seeds=0] [rows=graft] [lengths=4,8,16,20,50,100] [problems=32]
                                      [output=checkpoints] [together=8000] [key=value ...]

Trains configs/smollm2_graft_tasks.yaml, one seed after the other; with rows=graft,plain, also the same config without
the graft, on equally many samples. Then asks each tuned model test problems of every task and length in NUPA's wording,
including the hard strata; answers are decoded greedily by the lab's own engine. The first numbers of the problems in a
batch have at most `together` digits in total (on a GPU, ten times as many fit). Other arguments go to `lab.finetune`.
Measurements are kept beside each model and are not repeated. Shows exact match (95 % over seeds and problems) and
well-learned digits: the longest length up to which at least 90 % of digits are right at every tested length. For
comparison, it shows the well-learned digits of the paper's Llama-3.1-8B, tuned on 51,200 samples of all tasks with
numbers of up to 8 or 20 digits (Table 8).
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import lab
from experiments.shared.arguments import own_and_others, some_of, whole_number, whole_numbers
from experiments.shared.heat_map import heat_map
from experiments.shared.kept import Kept
from experiments.shared.kinds_of_sums import in_words
from experiments.shared.publishing import Results, beside_runs
from experiments.shared.streams import STREAMS
from experiments.shared.training import trained
from lab.benchmarks.nupa.published import PUBLISHED
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.config.schema import chosen
from lab.drawing import figures
from lab.drawing.tables import Table, percent
from lab.errors import exit_cleanly
from lab.numbers.additions import STRATA
from lab.numbers.metrics import WELL_LEARNED, contiguous_passing
from lab.numbers.sampling import Problem
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "smollm2_graft_tasks.yaml"
TRAINED = 8
"""Digits of the longest numbers in training."""
THEIRS = "Llama-3.1-8B-ft"
ROWS = {"graft": [], "plain": ["parts.coupled=null"]}
NAMES = ("seeds", "rows", "lengths", "problems", "output", "together")


class Answers(NamedTuple):
    """The scores of one model on the problems of one task and length."""

    exact: list[float]
    digits: list[float]


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, changes = own_and_others(arguments, *NAMES)
    lengths = whole_numbers(given, "lengths", "4,8,16,20,50,100")
    problems, output = whole_number(given, "problems", 32), given.get("output", "checkpoints")
    together = whole_number(given, "together", 8_000)
    found: dict[str, list[dict[str, dict[int, Answers]]]] = {}
    rows = some_of(ROWS, given.get("rows", "graft"), "rows", ",")
    for seed in whole_numbers(given, "seeds", "0"):
        for row in rows:
            config = configured(row, seed, output, changes)
            tasks = [task.key for task in chosen(config.data.tasks)]
            found.setdefault(row, []).append(answered(trained(config), tasks, lengths, problems, together))
            show(row, found[row], lengths, problems, results)


def configured(row: str, seed: int, output: str, changes: Sequence[str]) -> FinetuneConfig:
    name = f"graft_tasks_{seed}" if row == "graft" else f"graft_tasks_{row}_{seed}"
    changes = [*ROWS[row], *changes, f"name={name}", f"seed={seed}", f"output={output}", "resume=true"]
    return load(FinetuneConfig, CONFIG, changes)


def rows_of(tasks: Sequence[str]) -> list[str]:
    """The tasks as NUPA draws them, and the hard strata of those that have strata (lab/numbers/additions.py)."""
    hard = [f"{task}, {stratum}" for task in tasks if task in STREAMS for stratum in STRATA if stratum != "uniform"]
    return [*tasks, *hard]


def drawn(row: str, length: int, problems: int) -> list[Problem]:
    task, _, stratum = row.partition(", ")
    if stratum:
        return [STREAMS[task](stratum, length, 0, index) for index in range(problems)]
    return lab.problems(task, length, problems)


def answered(
    run: Path, tasks: Sequence[str], lengths: Sequence[int], problems: int, together: int
) -> dict[str, dict[int, Answers]]:
    """The answers of every row by length. Problems without an answer are asked."""
    kept, names = Kept(run / "graft_tasks.json"), rows_of(tasks)
    for length in lengths:
        missing = {name: row for row in names if (name := f"{row} {length} {problems}") not in kept.known}
        if missing:
            for name, answers in asked(run, missing, length, problems, max(1, together // length)).items():
                kept.keep(name, answers, lambda answers: f"{mean(answers.exact):.3f}")
    return {row: {length: Answers(*kept.known[f"{row} {length} {problems}"]) for length in lengths} for row in names}


def asked(run: Path, missing: Mapping[str, str], length: int, problems: int, batch_size: int) -> dict[str, Answers]:
    model = lab.load(str(run), batch_size=batch_size, dtype="auto")
    asked = {name: drawn(row, length, problems) for name, row in missing.items()}
    samples = iter(lab.evaluate(model, [one for part in asked.values() for one in part]).samples)
    answers = {}
    for name, part in asked.items():
        readings = [next(samples).reading for _ in part]
        exact = [float(reading.exact_match) for reading in readings]
        answers[name] = Answers(exact, [reading.digit_match or 0.0 for reading in readings])
    return answers


def published(task: str) -> str:
    """The well-learned digits of the paper's tuned model."""
    rows = [row for row in PUBLISHED if row.model == THEIRS and row.task == task and row.metric == "digit_match"]
    return str(rows[0].digits[0]) if rows and rows[0].digits else ""


def show(
    row: str,
    found: Sequence[Mapping[str, Mapping[int, Answers]]],
    lengths: Sequence[int],
    problems: int,
    results: Results,
) -> None:
    curves = {
        task: {length: over_seeds([model[task][length].exact for model in found]) for length in lengths}
        for task in found[0]
    }
    lines = []
    for task, points in curves.items():
        digits = {n: over_seeds([model[task][n].digits for model in found]).value for n in lengths}
        learned = contiguous_passing(digits, "digit_match", WELL_LEARNED)
        lines.append((task, *map(percent, points.values()), str(learned), published(task)))
    what = f"SmolLM2-135M tuned on ten tasks, 1-{TRAINED} digits{'' if row == 'graft' else ', without the graft'}"
    title = f"{what}: exact match (%, 95 %), {len(found)} seeds, n={problems}"
    name = "graft_tasks" if row == "graft" else f"graft_tasks_{row}"
    heads = ("task", *map(str, lengths), "well-learned", f"{THEIRS}: well-learned")
    results.show(Table(title, heads, lines, 1), name)
    draw(curves, what, results.file(f"{name}.png"))


def over_seeds(models: Sequence[Sequence[float]]) -> Estimate:
    return seeds_proportion([sum(values) / len(values) for values in models], min(map(len, models)))


def draw(curves: Mapping[str, Mapping[int, Estimate]], title: str, path: Path) -> None:
    """A heat map of exact match: tasks by lengths, with a line between lengths of training and those beyond."""
    lengths = list(next(iter(curves.values())))
    with figures.figure_at(path, (6.4, 5.4)) as figure:
        axes = figure.subplots()
        values = [[points[length].value for length in lengths] for points in curves.values()]
        image = heat_map(axes, values, list(map(in_words, curves)), list(map(str, lengths)), size=7)
        axes.axvline(sum(length <= TRAINED for length in lengths) - 0.5, color="black")
        axes.set(xlabel="digits (trained to the left of the line)")
        axes.set_title(title)
        figure.colorbar(image, label="exact match (%)")


if __name__ == "__main__":
    main(sys.argv[1:])
