"""A grid of models from scratch, each setting with several seeds, and what came of it.

    python experiments/scratch_grid.py GRID [seeds=0,1,2] [only=LABEL,...] [key=value ...]

GRID names a file of configs/grids/: a config, and settings by label, each a list of key=value. Every run is a run of
`lab.pretrain` named <grid>_<label>_<seed>, and resumes; finished ones are only read. Prints exact match by length as a
table (mean over seeds, Student's 95 % interval; one seed: Wilson's over its problems) and leaves the table and the
figure in experiments/results/.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import yaml
from rich.console import Console

from lab.pretrain import main as pretrain
from lab.reporting import figures, length_curves
from lab.runs import Run

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"


def main(arguments: Sequence[str]) -> None:
    grid_name, *rest = arguments
    grid = yaml.safe_load((ROOT / "configs" / "grids" / f"{grid_name}.yaml").read_text())
    own = dict(part.split("=", 1) for part in rest if part.startswith(("seeds=", "only=")))
    overrides = [part for part in rest if not part.startswith(("seeds=", "only="))]
    seeds = [int(seed) for seed in own["seeds"].split(",")] if "seeds" in own else grid["seeds"]
    labels = own["only"].split(",") if "only" in own else list(grid["settings"])
    given = [part.removeprefix("output=") for part in overrides if part.startswith("output=")]
    output = Path(given[-1] if given else "checkpoints")

    runs: dict[str, list[Run]] = {label: [] for label in labels}
    for seed in seeds:  # all settings of a seed before the next one: a grid that is cut short compares like with like
        for label in labels:
            name = f"{grid_name}_{label}_{seed}".replace(" ", "-")
            settings = [f"{key}={value}" for key, value in grid["settings"][label].items()]
            run = Run(output / name)
            if not (run.path / "status").is_file() or run.status != "finished":
                config = str(ROOT / "configs" / grid["config"])
                pretrain([config, *settings, f"name={name}", f"seed={seed}", *overrides, "resume=true"])
            runs[label].append(run)
    report(grid_name, grid["title"], runs)


def report(grid_name: str, title: str, runs: dict[str, list[Run]]) -> None:
    curves = {
        label: length_curves.across_seeds([length_curves.of_run(run) for run in found]) for label, found in runs.items()
    }
    first = next(iter(runs.values()))
    trained = yaml.safe_load(first[0].config)["data"]["lengths"]
    title = f"{title} ({len(first)} seed{'s' if len(first) > 1 else ''})"
    table = length_curves.exact_match_table(curves, title)
    Console(width=None if sys.stdout.isatty() else 200).print(table.terminal())
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{grid_name}.md").write_text(f"{title}\n\n{table.markdown()}")
    figures.length_curves(
        curves, tuple(trained), title, RESULTS / f"{grid_name}.png", ("exact_match", "digit_match", "dlength")
    )


if __name__ == "__main__":
    main(sys.argv[1:])
