"""Run a command over a grid or a list of settings, each with several seeds, and show the results.

Every run is an ordinary run (python -m lab.<command>) with its directory beside the sweep's. The config says how many
run on this machine at a time, or that they run on SLURM. All configs are checked before the first run starts. To
continue a sweep, give the same command again: finished runs are kept, interrupted ones continue, and failed ones are
tried again. Writes table.md, results.csv, figures/ and a log of each run to <output>/<name>.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from lab.command import entry_point, find_config, read_config
from lab.config.loading import dump
from lab.errors import RunError
from lab.runs import Run
from lab.sweeping.cells import Trial, trials
from lab.sweeping.config import SweepConfig
from lab.sweeping.launchers import check_launcher, open_launcher
from lab.sweeping.running import run_trials

_MAY_CHANGE = [key for key in SweepConfig.model_fields if key != "command"]
"""A continued sweep may have more seeds and cells, or another launcher: each run checks its own config."""


@entry_point
def main(arguments: list[str]) -> None:
    config = read_config(SweepConfig, arguments, "lab sweep", __doc__ or "")
    base = os.path.normpath(find_config(arguments[0]).parent / config.config)
    sweep(config.model_copy(update={"config": Path(base)}))


def sweep(config: SweepConfig) -> None:
    """Runs all trials of a sweep that are not finished, and shows the results."""
    check_launcher(config.launcher)
    planned = trials(config)
    with Run.open(config.path, dump(config), resume=True, free=_MAY_CHANGE) as run:
        run.record_environment(command="sweep")
        done = sum(trial.finished for trial in planned)
        print(f"{len(planned)} runs, {done} of them already finished")
        failed = run_trials(planned, open_launcher(config, run), run)
        show(config, planned, run)
        if failed:
            more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
            told = f"{len(failed)} of {len(planned)} runs failed: {', '.join(failed[:3])}{more}"
            raise RunError(f"{told}; their logs are in {run.path / 'logs'}, and the same command tries them again")


def show(config: SweepConfig, planned: Sequence[Trial], run: Run) -> None:
    """Writes and prints the results of the finished runs."""
    from lab.drawing.terminal import end
    from lab.drawing.terminal import show as show_tables
    from lab.sweeping import results as sweeps

    cells = {trial.cell.name: trial.cell for trial in planned}
    finished = [trial for trial in planned if trial.finished]
    rows = [
        sweeps.Row(cell.labels, [Run(trial.config.path) for trial in finished if trial.cell.name == name])
        for name, cell in cells.items()
    ]
    table = sweeps.write(config.results, rows, config.title or config.name, run)
    found = [f"{len(finished)} of {len(planned)} runs finished"]
    if table:
        show_tables([table])
        found += sweeps.in_short(config.results, table)
    end(found, f"{run.path} (table.md, results.csv, figures/)", f"lab report {run.path.parent} out=report")


if __name__ == "__main__":
    main()
