"""SmolLM2 following rules, compared with SmolLM2 answering directly: accuracy and cost by task and length.

    python -m experiments.rules-smollm2.run [seeds=0,1,2] [only=NAME/NAME] [problems=48] [measure=true]
        [output=checkpoints]
                                        [table=rules_smollm2] [key=value ...]

Tunes configs/smollm2_rules_values.yaml with each seed for each row of DETAILS, with the same number of updates and of
problems, and asks every model the same test problems (configs/nupa_rfcot.yaml), `problems` in each range of lengths.
Finished runs are not run again, and measure=false leaves out tests that are not finished. Other keys change the config
of the training. Shows exact match, the mean over the seeds (95 % over seeds and problems), the number of tokens written
for each token of a direct answer, and the kind of the first mistake in a trace. Leaves two tables and a figure.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from experiments.shared.arguments import own_and_others, some_of, true_or_false, whole_number
from experiments.shared.publishing import Results, beside_runs
from experiments.shared.training import trained
from lab.benchmarks.results import Sample, read_samples
from lab.config.evaluation import EvaluateConfig
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing import figures
from lab.drawing.tables import NOT_MEASURED, Entry, Table, percent
from lab.errors import exit_cleanly
from lab.evaluate import main as evaluate
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.progress import quiet_libraries
from lab.rules.traces.errors import KINDS
from lab.runs import Run
from lab.text.prompts import completion

ROOT = Path(__file__).parents[2]
TRAINING, TEST = ROOT / "configs" / "smollm2_rules_values.yaml", ROOT / "configs" / "nupa_rfcot.yaml"
DETAILS = {"values": "values", "state": "state", "bare": "bare", "results": "results", "direct": "answer"}
"""The rows, and what a response shows before its answer (`rules.detail`)."""
SCALE = (
    "training={max_steps: 240, batch_size: 32, micro_batch_size: 16, evaluate_every: 120}",
    "training={learning_rate: 1e-3, warmup_steps: 20}",
    "evaluation={lengths: {hard: [3, 5], easy: [3, 5]}, problems_per_range: 1}",
)
"""Settings of the training. The test is a run of its own, so the training itself tests next to nothing."""
LONGEST, WINDOW = 5, 1500
"""Digits of the longest numbers in training; the most tokens of a test problem and its response."""
SPANS = {"3-5 digits": range(3, 6), "6-8": range(6, 9), "9-12": range(9, 13)}
"""Lengths that are shown together: those of the training, and two beyond."""
Asked = list[Sample]


@exit_cleanly
def main(arguments: list[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, keys = own_and_others(arguments, "seeds", "only", "problems", "measure", "output", "table")
    output, problems = Path(given.get("output", "checkpoints")), whole_number(given, "problems", 48)
    rows, seeds = some_of(DETAILS, given.get("only")), given.get("seeds", "0,1,2").split(",")
    missing_too = true_or_false(given, "measure", True)
    runs = {row: [ran(row, seed, problems, output, keys, missing_too) for seed in seeds] for row in rows}
    found = {row: [read_samples(run) for run in tests if run] for row, tests in runs.items()}
    show({row: asked for row, asked in found.items() if asked}, results, given.get("table", "rules_smollm2"))


def ran(row: str, seed: str, problems: int, output: Path, keys: Sequence[str], missing_too: bool) -> Run | None:
    """The finished test of a row's model; None if it is not finished and should not be run."""
    detail, name = DETAILS[row], f"rules-{row}_{seed}"
    changes = [
        *SCALE,
        f"data.rules.detail={detail}",
        *keys,
        f"name={name}",
        f"seed={seed}",
        f"output={output}",
        "resume=true",
    ]
    training = load(FinetuneConfig, TRAINING, changes)
    asking = [
        f"engine={{model: {{name: '{training.path}'}}, batch_size: 96}}",
        f"benchmark={{tasks: {list(training.data.tasks)}, problems_per_range: {problems}}}",
        f"benchmark.lengths={{hard: [{SPANS['3-5 digits'][0]}, {max(map(max, SPANS.values()))}]}}",
        f"benchmark.rules={{unit: 1, detail: {detail}, window: {WINDOW}}}",
        *(f"name={name}_test", f"output={output}", "resume=true"),
    ]
    test = load(EvaluateConfig, TEST, asking)
    if test.run_status() != "finished":
        if not missing_too:
            return None
        trained(training)
        evaluate([str(TEST), *asking])
    return Run(test.path)


def show(found: dict[str, list[Asked]], results: Results, table: str) -> None:
    """`found`: for each row, the answers to the test of each seed."""
    tasks = list(dict.fromkeys(sample.task for sample in next(iter(found.values()))[0]))
    shares: dict[tuple[str, str], dict[str, Estimate]] = {}
    lines: list[tuple[Entry, ...]] = []
    for task in tasks:
        for row, seeds in found.items():
            of_row = shares.setdefault((task, row), {})
            for name, lengths in SPANS.items():
                asked = [[one for one in seed if one.task == task and one.length in lengths] for seed in seeds]
                if asked[0]:
                    right = [mean(one.right for one in seed) for seed in asked]
                    of_row[name] = seeds_proportion(right, len(asked[0]))
            cells = [percent(of_row.get(name)) for name in SPANS]
            lines.append((task, row, str(len(seeds)), *cells, tokens(seeds, task)))
    title = "SmolLM2-135M that follows rules, or answers directly: exact match (%, 95 %)"
    columns = ("task", "response", "seeds", *SPANS, "tokens per token of the answer, 3-5 digits")
    results.show(Table(title, columns, lines, 3), table)
    results.show(mistakes(found, tasks), f"{table}_mistakes")
    draw(shares, tasks, list(found), results.file(f"{table}.png"))


def tokens(seeds: Sequence[Asked], task: str) -> str:
    """The tokens written at training lengths, for each token of a direct answer."""
    asked = [one for seed in seeds for one in seed if one.task == task and one.length <= LONGEST]
    direct = sum(len(completion(one.problem).strip()) + 1 for one in asked)  # one token a digit, and the end
    return f"{sum(one.completion.completion_tokens for one in asked) / direct:.1f}" if asked else NOT_MEASURED


def mistakes(found: dict[str, list[Asked]], tasks: Sequence[str]) -> Table:
    """The kind of the first mistake of a trace, for all seeds together."""
    lines: list[tuple[Entry, ...]] = []
    for row, seeds in found.items():
        for task in tasks:
            for name, lengths in SPANS.items():
                asked = [one for seed in seeds for one in seed if one.task == task and one.length in lengths]
                if asked and "first_error" in asked[0].remarks:
                    first = Counter((one.remarks["first_error"] or {"kind": "none"})["kind"] for one in asked)
                    lines.append((row, task, name, str(len(asked)), *(str(first[kind]) for kind in ("none", *KINDS))))
    return Table("The first mistake in each trace", ("response", "task", "digits", "n", "none", *KINDS), lines, 3)


def draw(
    shares: dict[tuple[str, str], dict[str, Estimate]], tasks: Sequence[str], rows: Sequence[str], path: Path
) -> None:
    with figures.figure_at(path, (2.3 * len(tasks) + 0.6, 2.9)) as figure:
        panels = figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
        for axes, task in zip(panels, tasks, strict=True):
            for shift, row in enumerate(rows):
                found = shares[task, row]
                places = [list(SPANS).index(name) + (shift - len(rows) / 2) * 0.08 for name in found]
                values = [one.value for one in found.values()]
                spread = [
                    [one.value - one.low for one in found.values()],
                    [one.high - one.value for one in found.values()],
                ]
                axes.errorbar(places, values, spread, fmt="-o", ms=3.5, lw=1, color=figures.COLORS[shift], label=row)
            axes.set(title=task, ylim=(-0.04, 1.04), xlabel=f"digits (trained on at most {LONGEST})")
            axes.set_xticks(range(len(SPANS)), [name.removesuffix(" digits") for name in SPANS])
        figure.axes[0].set_ylabel("exact match")
        figure.axes[-1].legend(fontsize="small")


if __name__ == "__main__":
    main(sys.argv[1:])
