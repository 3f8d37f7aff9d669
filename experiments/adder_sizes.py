"""How few parameters does gradient descent need to learn addition, and how reliably does it?

    python experiments/adder_sizes.py [seeds=0,1,2] [only=LABEL/...] [publish=true] [key=value ...]

A ladder of small adders (lab/smallest_adder/models.py), each trained in its final form, with several groups of seeds.
Every group is a run of `lab.adder train` named adder_sizes_<label>_<seed>; unfinished runs are resumed, and finished
ones are not repeated. A group has learned if its best seed by validation is right in 99 % of the public test. Prints
the share of groups that have learned (95 % Wilson interval), and leaves a table and a figure in results/ beside the
runs, or in experiments/results/ with publish=true.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from shared.arguments import own_and_others, some_of, whole_numbers
from shared.learned_by_size import learned_by_size
from shared.publishing import Results, take_results

from lab.adder import main as adder
from lab.drawing.tables import Table, percent
from lab.errors import exit_cleanly
from lab.numbers.statistics import wilson
from lab.runs import Run

ROOT = Path(__file__).parents[1]
QUALIFYING = 0.99

TABLE = ("model.embedding=table", "model.attention=content", "model.output=matrix", "model.gates=free")
LADDER: dict[str, tuple[str, ...]] = {
    "gpt": ("adder_gpt",),
    "tiny": ("adder_tiny",),
    "free, width 3": ("adder_arc", *TABLE, "model.width=3", "model.hidden=3", "model.head=free"),
    "tied head": ("adder_arc", *TABLE),
    "attention by position": ("adder_arc", *TABLE, "model.attention=position"),
    "arc": ("adder_arc", *TABLE, "model.attention=position", "model.embedding=arc"),
    "arc, one step": ("adder_arc",),
    "ramp, one step": ("adder_record",),
    "digits, one step": ("adder_ramp",),
}
"""The config of each size, and the changes to it; largest first."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    results, arguments = take_results(arguments, ROOT / "experiments" / "results")
    given, overrides = own_and_others(arguments, "seeds", "only")
    seeds = whole_numbers(given, "seeds", "0,1,2")
    labels = some_of(LADDER, given.get("only"))
    outputs = [part.removeprefix("output=") for part in overrides if part.startswith("output=")]
    output = Path(outputs[-1] if outputs else "checkpoints")
    for seed in seeds:  # all sizes of a seed before the next one: a ladder that is cut short compares like with like
        for label in labels:
            config, *changes = LADDER[label]
            settings = [*changes, f"name={name(label, seed)}", f"seed={seed}", *overrides, "resume=true"]
            adder(["train", str(ROOT / "configs" / f"{config}.yaml"), *settings])
    report({label: [Run(output / name(label, seed)) for seed in seeds] for label in labels}, results)


def name(label: str, seed: int) -> str:
    return f"adder_sizes_{label.replace(', ', '-').replace(' ', '-')}_{seed}"


def report(runs: dict[str, list[Run]], results: Results) -> None:
    rows, points = [], {}
    for label, groups in runs.items():
        found = [run.read_json("summary") for run in groups]
        shares = [summary["exact_match"]["value"] for summary in found]
        learned = wilson(sum(share >= QUALIFYING for share in shares), len(shares))
        parameters = found[0]["parameters"]
        points[label] = (parameters, learned)
        best, middle = (f"{100 * share:.2f}" for share in (max(shares), median(shares)))
        rows.append((label, f"{parameters:,}", str(len(found)), percent(learned), middle, best))
    title = "Small adders: share of groups of seeds that learn to add two 10-digit integers"
    columns = ("model", "parameters", "groups", "learned", "median exact match", "best")
    results.show(Table(f"{title} (%)", columns, rows, 1), "adder_sizes")
    learned_by_size(points, title, results.file("adder_sizes.png"))


if __name__ == "__main__":
    main(sys.argv[1:])
