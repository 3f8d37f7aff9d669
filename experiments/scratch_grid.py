"""A grid of models from scratch, each setting with several seeds, and what came of it.

    python experiments/scratch_grid.py GRID [seeds=0,1] [only=LABEL,...] [tasks=TASK,...] [results=DIR] [key=value ...]

GRID names a file of configs/grids/: a config, settings by label, and tasks if each has runs of its own. Every run is a
run of `lab.pretrain` named <grid>_<task>_<label>_<seed>, and resumes; finished ones are shown again. Prints exact match
by length as a table (mean over seeds; 95 %, the wider of Student's over the seeds and Wilson's over their problems)
and leaves table and figure in results, by default experiments/results/.
"""

import itertools
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml
from rich.console import Console

from lab.errors import ConfigError, exit_cleanly
from lab.pretrain import main as pretrain
from lab.reporting import figures, length_curves
from lab.runs import Run

ROOT = Path(__file__).parents[1]
OWN = ("seeds=", "only=", "tasks=", "results=")
"""Arguments that are not of a config."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    grid_name, *rest = arguments
    grid = yaml.safe_load((ROOT / "configs" / "grids" / f"{grid_name}.yaml").read_text())
    own = dict(part.split("=", 1) for part in rest if part.startswith(OWN))
    overrides = [part for part in rest if not part.startswith(OWN)]
    seeds = [int(seed) for seed in own["seeds"].split(",")] if "seeds" in own else grid["seeds"]
    labels = own["only"].split(",") if "only" in own else list(grid["settings"])
    if unknown := set(labels) - grid["settings"].keys():
        raise ConfigError(f"only={','.join(unknown)}: {grid_name} has the settings {', '.join(grid['settings'])}")
    given = [part.removeprefix("output=") for part in overrides if part.startswith("output=")]
    output = Path(given[-1] if given else "checkpoints")

    tasks = own["tasks"].split(",") if "tasks" in own else grid.get("tasks", [""])
    runs: dict[str, list[list[Run]]] = {label: [] for label in labels}
    for seed in seeds:  # all settings of a seed before the next one: a grid that is cut short compares like with like
        found = {label: [] for label in labels}
        for task, label in itertools.product(tasks, labels):
            name = "_".join(part for part in (grid_name, task, label, str(seed)) if part)
            settings = [f"{key}={value}" for key, value in grid["settings"][label].items()]
            settings += [f"data.tasks=[{task}]"] if task else []
            run = Run(output / re.sub("[ ,]+", "-", name))
            config = str(ROOT / "configs" / grid["config"])
            pretrain([config, *settings, f"name={run.path.name}", f"seed={seed}", *overrides, "resume=true"])
            found[label].append(run)
        for label in labels:
            runs[label].append(found[label])
    results = Path(own.get("results", ROOT / "experiments" / "results"))
    report(grid["title"], runs, results / grid_name)


def report(title: str, runs: dict[str, list[list[Run]]], path: Path) -> None:
    """`runs` are those of each label and seed, one a task."""
    curves = {
        label: length_curves.across_seeds([length_curves.together(map(length_curves.of_run, part)) for part in parts])
        for label, parts in runs.items()
    }
    first = next(iter(runs.values()))
    trained = yaml.safe_load(first[0][0].config)["data"]["lengths"]
    title = f"{title} ({len(first)} seed{'s' if len(first) > 1 else ''})"
    table = length_curves.exact_match_table(curves, title)
    Console(width=None if sys.stdout.isatty() else 200).print(table.terminal())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".md").write_text(f"{title}\n\n{table.markdown()}")
    figures.length_curves(curves, tuple(trained), title, path.with_suffix(".png"))


if __name__ == "__main__":
    main(sys.argv[1:])
