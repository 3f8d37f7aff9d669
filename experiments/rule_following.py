"""Does a small model learn to follow rules, and is this worth the time? (Number Cookbook, section 4)

    python experiments/rule_following.py [publish=true] [key=value ...]

Fine-tunes SmolLM2-135M to follow rules and, for about the same wall time, to answer directly. Asks both the same
problems, at their training lengths and beyond, and says where in the rule the first wrong line is. Arguments, such as
output=/tmp/runs, go to both trainings. Every run can be resumed. Writes rule_following.png to results/ beside the runs,
or to experiments/results/ with publish=true.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import yaml
from shared.publishing import Results, take_results

from lab.benchmarks.results import Sample, read_samples
from lab.drawing.figures import error_bars, figure_at, legend_below
from lab.errors import exit_cleanly
from lab.evaluate import main as evaluate
from lab.finetune import main as finetune
from lab.numbers.statistics import Estimate, wilson
from lab.numbers.tasks import EASY, TASKS
from lab.rules.traces.errors import KINDS
from lab.runs import Run

ROOT = Path(__file__).parents[1]
TRAININGS = ("smollm2_rfcot", "smollm2_direct")
TESTS = {"rules": "nupa_rfcot", "direct": "nupa_rfcot_direct"}
NAMES = {"rules": "with rules", "direct": "directly"}
ASIDE = {"rules": -0.06, "direct": 0.06}
"""How far intervals are moved in the figure, so that none hides another."""
COLORS = {"rules": "#0a6ebd", "direct": "#d9822b"}


@exit_cleanly
def main(arguments: list[str]) -> None:
    results, overrides = take_results(arguments, ROOT / "experiments" / "results")
    for name in TRAININGS:
        finetune([str(ROOT / "configs" / f"{name}.yaml"), *overrides, "resume=true"])
    output = next((part.removeprefix("output=") for part in overrides if part.startswith("output=")), "checkpoints")
    for name, training in zip(TESTS.values(), TRAININGS, strict=True):
        model = f"engine.model.name={output}/{training}"
        evaluate([str(ROOT / "configs" / f"{name}.yaml"), f"output={output}", model, "resume=true"])
    report(Path(output), results)


def report(folder: Path, results: Results) -> None:
    samples = {label: {_question(s): s for s in read_samples(Run(folder / name))} for label, name in TESTS.items()}
    shared = samples["rules"].keys() & samples["direct"].keys()
    trained = yaml.safe_load((folder / TRAININGS[0] / "config.yaml").read_text())["data"]["lengths"]
    print(f"{len(shared)} problems that both were asked; {len(samples['direct']) - len(shared)} do not fit the window")
    tasks = list(dict.fromkeys(question[:2] for question in samples["direct"]))
    with figure_at(results.file("rule_following.png"), (3 * len(tasks), 5.2)) as figure:
        axes = figure.subplots(2, len(tasks), squeeze=False)
        for column, task in enumerate(tasks):
            kind = "easy" if TASKS["_".join(task)].difficulty is EASY else "hard"
            for label, asked in samples.items():
                found = [asked[question] for question in asked if question in shared and question[:2] == task]
                lengths = sorted({sample.length for sample in found})
                estimates = [_accuracy([s for s in found if s.length == length]) for length in lengths]
                look = {"marker": "o", "ms": 4, "label": NAMES[label], "color": COLORS[label]}
                places = [length + ASIDE[label] for length in lengths]
                axes[0][column].errorbar(places, [e.value for e in estimates], error_bars(estimates), **look)
                axes[0][column].set_xticks(lengths)
                inside = [s for s in found if s.length <= trained[kind][1]]
                for name, part in (("trained lengths", inside), ("longer", [s for s in found if s not in inside])):
                    if part:
                        e = _accuracy(part)
                        print(f"{' '.join(task):18} {label:7} {name:16} {100 * e.value:5.1f} % "
                              f"({100 * e.low:.1f}-{100 * e.high:.1f}), n = {e.n}")  # fmt: skip
            axes[0][column].axvspan(0, trained[kind][1] + 0.5, color="#f2f2f2", zorder=0)
            axes[0][column].set(title=" ".join(task), ylim=(-0.04, 1.04), xlabel="digits (grey: trained)")
            first = Counter(
                (s.remarks["first_error"] or {"kind": "none"})["kind"]
                for s in samples["rules"].values()
                if _task(s) == task
            )
            axes[1][column].barh(["none", *KINDS], [first[kind] for kind in ("none", *KINDS)], color=COLORS["rules"])
            axes[1][column].invert_yaxis()
            axes[1][column].xaxis.get_major_locator().set_params(integer=True)
            axes[1][column].set_xlabel("responses with rules, by first wrong line")
            print(f"{' '.join(task):18} first wrong line: {dict(first.most_common())}")
        axes[0][0].set_ylabel("exact match (95 % Wilson)")
        legend_below(figure, 2)
    for (label, asked), training in zip(samples.items(), TRAININGS, strict=True):
        seconds = [sample.completion.seconds for sample in asked.values()]
        times = [row["seconds"] for row in Run(folder / training).read("training_times")]
        minutes = f"{sum(times) / 60:.1f} min" if times else "for a time that was not recorded"
        print(f"{label}: trained {minutes}, {sum(seconds) / len(seconds):.2f} s a problem")


def _question(sample: Sample) -> tuple[str, ...]:
    return sample.problem.task, sample.problem.representation, sample.problem.a, sample.problem.b or ""


def _task(sample: Sample) -> tuple[str, str]:
    return sample.problem.task, sample.problem.representation


def _accuracy(samples: Sequence[Sample]) -> Estimate:
    return wilson(sum(sample.readings["strict"].exact_match for sample in samples), len(samples))


if __name__ == "__main__":
    main(sys.argv[1:])
