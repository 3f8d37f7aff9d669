"""Runs a sweep, and writes its table and figure where other experiments write theirs.

    python -m experiments.sweep SWEEP [seeds=0,1] [only=CELL,...] [tasks=TASK,...] [table=NAME]
        [key=value ...]

SWEEP names a file of configs/sweeps/; `python -m lab.sweep configs/sweeps/SWEEP.yaml` does the same and prints more.
Table, figure and rows (NAME.csv: one for each run, task and length) are named after SWEEP, or as `table` says, and go
to results/ beside the runs. Other keys change the runs' config; `output` is the folder of the sweep and its runs.
Finished runs are not repeated. Shows means over seeds with 95 % intervals (lab/sweeping/results.py).
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.shared.arguments import own_and_others
from experiments.shared.curve_rows import write_curve_rows
from experiments.shared.publishing import beside_runs
from lab.config.loading import load
from lab.errors import ConfigError, exit_cleanly
from lab.sweep import main as sweep
from lab.sweeping.config import SweepConfig

ROOT = Path(__file__).parents[1]


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    results = beside_runs(arguments)
    own, others = own_and_others(arguments, "seeds", "only", "tasks", "table")
    named = [part for part in others if "=" not in part]
    if len(named) != 1:
        known = ", ".join(sorted(file.stem for file in (ROOT / "configs" / "sweeps").glob("*.yaml")))
        raise ConfigError(f"give one SWEEP: {known}")
    (name,) = named
    keys = [part for part in others if part != name]
    changes = [part if part.startswith("output=") else f"changes.{part}" for part in keys]
    if "seeds" in own:
        changes.append(f"seeds=[{own['seeds']}]")
    if "only" in own:
        changes.append(f"only={json.dumps(own['only'].split(','))}")
    if "tasks" in own:
        changes.append(f"grid={json.dumps({'data.tasks': [[task] for task in own['tasks'].split(',')]})}")
    file = ROOT / "configs" / "sweeps" / f"{name}.yaml"
    config = load(SweepConfig, file, changes)
    sweep([str(file), *changes])
    table = own.get("table", name)
    shutil.copy(config.path / "table.md", results.file(f"{table}.md"))
    shutil.copy(config.path / "figures" / "results.png", results.file(f"{table}.png"))
    config = config.model_copy(update={"config": file.parent / config.config})
    write_curve_rows(config, results.file(f"{table}.csv"))


if __name__ == "__main__":
    main(sys.argv[1:])
