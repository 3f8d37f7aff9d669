"""Runs a sweep of models from scratch, and leaves its table and figure where other experiments leave theirs.

    python experiments/scratch_grid.py GRID [seeds=0,1] [only=CELL,...] [tasks=TASK,...] [table=NAME] [publish=true]
        [key=value ...]

GRID names a file of configs/sweeps/; `python -m lab.sweep configs/sweeps/GRID.yaml` does the same and prints more.
Table and figure are named after GRID, or as `table` says; they go to results/ beside the runs, or to
experiments/results/ with publish=true. Other keys belong to the runs' config; `output` is the folder of the sweep and
its runs. Every run is a run of `lab.pretrain`, and finished runs are shown again. Shows mean exact match over seeds
(95 %, the wider of Student's over the seeds and Wilson's over their problems).
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from shared.publishing import take_results

from lab.config.loading import load
from lab.errors import exit_cleanly
from lab.sweep import main as sweep
from lab.sweeping.config import SweepConfig

ROOT = Path(__file__).parents[1]
OWN = ("seeds=", "only=", "tasks=", "table=")
"""Arguments that do not belong to a config."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    results, (grid, *rest) = take_results(arguments, ROOT / "experiments" / "results")
    own = dict(part.split("=", 1) for part in rest if part.startswith(OWN))
    changes = [part if part.startswith("output=") else f"changes.{part}" for part in rest if not part.startswith(OWN)]
    if "seeds" in own:
        changes.append(f"seeds=[{own['seeds']}]")
    if "only" in own:
        changes.append(f"only={json.dumps(own['only'].split(','))}")
    if "tasks" in own:
        changes.append(f"grid={json.dumps({'data.tasks': [[task] for task in own['tasks'].split(',')]})}")
    file = ROOT / "configs" / "sweeps" / f"{grid}.yaml"
    config = load(SweepConfig, file, changes)
    sweep([str(file), *changes])
    table = own.get("table", grid)
    shutil.copy(config.path / "table.md", results.file(f"{table}.md"))
    shutil.copy(config.path / "figures" / "results.png", results.file(f"{table}.png"))


if __name__ == "__main__":
    main(sys.argv[1:])
