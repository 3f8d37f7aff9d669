"""How few parameters does gradient descent need to learn addition, and how reliably does it?

    python -m experiments.smallest-adders.run [seeds=0,1,2] [only=LABEL/...] [key=value ...]

A ladder of small adders, each trained in its final form, with several groups of seeds.
Every group is a run of `lab.adder train` named adder_sizes_<label>_<seed>; unfinished runs are resumed, and finished
ones are not repeated. A group has learned if its best seed by validation is right in 99 % of the public test. Prints
the share of groups that have learned (95 % Wilson interval), and leaves a table and a figure in results/ beside the
runs.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import yaml

from experiments.shared.arguments import own_and_others, some_of, whole_numbers
from experiments.shared.learned_by_size import learned_by_size
from experiments.shared.publishing import Results, beside_runs
from lab.adders.config import AdderConfig
from lab.adders.training import train_adder
from lab.config.loading import load
from lab.drawing.tables import Table, percent
from lab.errors import exit_cleanly
from lab.numbers.statistics import wilson
from lab.runs import Run

ROOT = Path(__file__).parents[2]
QUALIFYING = 0.99

Numbers = dict[str, dict[str, object]]


def reduced(width: int = 2, arc: bool = False, attention: str = "content", head: str = "tied") -> dict[str, object]:
    """An adder of one layer and one head with few numbers, as parts of a config: value and output projections are one
    map, each hidden unit has directions of its own, and there are as many units as the stream is wide.

    Args:
        width: of the stream.
        arc: whether the digits are points on a circle, from three numbers, instead of a table.
        attention: content (queries and keys are linear in the tokens) or position (they are the same for all).
        head: tied to the embedding, or free.
    """
    matrix = [width, width]
    embedding = {"arc": "arc"} if arc else "points"
    numbers: Numbers = {
        "arc": {"kind": "normal", "shape": [3], "mean": [1.0, -1.0, 0.2], "std": 0.2, "relative": True},
        "points": {"kind": "arc", "shape": [10, width], "spread": 1},
        "query": {"kind": "normal", "shape": [width, 2]},
        "key": {"kind": "normal", "shape": [width, 2] if attention == "content" else [2]},
        "output": {"kind": "normal", "shape": matrix, "mean": "identity", "std": 0.3},
        "residual": {"kind": "normal", "std": 0.3},
        "gates": {"kind": "normal", "shape": matrix},
        "down": {"kind": "normal", "shape": matrix},
        "bias": {"kind": "normal", "shape": [width]},
        "head": {"kind": "normal", "shape": [width, 10]},
        "scale": {"kind": "normal", "shape": [width], "mean": 1.5, "std": 0.5},
    }
    unused = {
        "points" if arc else "arc",
        *(() if attention == "content" else ("query",)),
        "scale" if head == "free" else "head",
    }
    looks = {"q": "query.T", "k": "key.T"} if attention == "content" else {"q": {"b": [1, 0]}, "k": {"b": "key"}}
    layer = {
        "attention": {**looks, "o": "output.T", "scale": 8, "residual": "residual"},
        "ffn": {"act": "relu", "up": {"w": "gates.T", "b": "bias"}, "down": "down.T"},
    }
    last = {"head": "head.T"} if head == "free" else {"norm": {"kind": "none", "gain": "scale"}, "head": embedding}
    model = {"embedding": embedding, "rope": {"period": 12}, "layers": [layer], **last}
    return {"numbers": {name: own for name, own in numbers.items() if name not in unused}, "model": model}


LADDER: dict[str, str | dict[str, object]] = {
    "gpt": "adder_gpt",
    "tiny": "adder_tiny",
    "free, width 3": reduced(3, head="free"),
    "tied head": reduced(),
    "attention by position": reduced(attention="position"),
    "arc": reduced(arc=True, attention="position"),
    "arc, one step": "adder_arc",
    "ramp, one step": "adder_record",
    "digits, one step": "adder_ramp",
}
"""The config of each size, or what it has instead of the numbers and the model of configs/adder_arc.yaml; largest
first."""


def config_of(label: str, settings: Sequence[str] = ()) -> AdderConfig:
    """The config of a size, with settings key=value."""
    rung = LADDER[label]
    base = ROOT / "configs" / f"{rung if isinstance(rung, str) else 'adder_arc'}.yaml"
    if isinstance(rung, str):
        return load(AdderConfig, base, settings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(base.read_text()) | rung, sort_keys=False))
        return load(AdderConfig, path, settings)


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    results = beside_runs(arguments)
    given, overrides = own_and_others(arguments, "seeds", "only")
    seeds = whole_numbers(given, "seeds", "0,1,2")
    labels = some_of(LADDER, given.get("only"))
    outputs = [part.removeprefix("output=") for part in overrides if part.startswith("output=")]
    output = Path(outputs[-1] if outputs else "checkpoints")
    for seed in seeds:  # all sizes of a seed before the next one: a ladder that is cut short compares like with like
        for label in labels:
            config = config_of(label, [f"name={name(label, seed)}", f"seed={seed}", *overrides, "resume=true"])
            if not (output / config.name / "summary.json").exists():
                train_adder(config)
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
