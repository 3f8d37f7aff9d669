"""One pretrained model tuned on all 53 tasks of NUPA, with the graft and without: which tasks does it help, and where?

    python experiments/graft_all.py [seed=0] [problems=20] [rows=graft,plain] [bounds=32] [output=checkpoints]
                                    [publish=true] [key=value ...]

Tunes SmolLM2-135M by configs/smollm2_graft_all.yaml, 16,000 problems of the ranges S and M, and once more without the
graft (plain: positions as they were, numbers as people write them), on the same problems. Then it asks the untouched
and both tuned models the same test problems of all four ranges, `problems` for each task and range. The grafted model
is asked once as it was trained, and once for each of `bounds`: then all far digits together weigh at most as much as
that many of them (engine.far_at_most). Other arguments go to `lab.finetune`. Runs that were killed go on, and finished
ones are not repeated.

Shows exact match by range, plain against grafted, and well-learned digits beside those of the paper's tuned
Llama-3.1-8B (Table 8). Leaves tables and a heat map of every task and range.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from shared.arguments import own_and_others
from shared.nupa_runs import asked, by_range, heat_map, nupa, samples

from lab.benchmarks.nupa import tables
from lab.benchmarks.nupa.published import PUBLISHED
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing.publishing import Results, take_results
from lab.finetune import finetune
from lab.progress import quiet_libraries
from lab.runs import Run

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "smollm2_graft_all.yaml"
ROWS = {"graft": [], "plain": ["positions={kind: original}", "format={reverse: none, pad: none}"]}
THEIRS = "Llama-3.1-8B-ft"
TITLE = "SmolLM2-135M tuned on 16,000 problems of 53 tasks, ranges S and M"
NAMES = ("seed", "problems", "rows", "bounds", "output")


def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, arguments = take_results(arguments, ROOT / "experiments" / "results")
    given, changes = own_and_others(arguments, *NAMES)
    seed, problems, output = (
        given.get("seed", "0"),
        given.get("problems", "20"),
        Path(given.get("output", "checkpoints")),
    )
    runs: dict[str, Run] = {}
    for row in given.get("rows", "graft,plain").split(","):
        config = configured(row, seed, output, changes)
        if config.run_status() != "finished":
            finetune(config)
        name, model = f"{config.name}_asked", str(config.path)
        runs[row] = asked(name, model, problems, output)
        for bound in given.get("bounds", "32").split(",") if row == "graft" else ():
            bounded = [f"engine.far_at_most={bound}"]
            runs[f"graft, far digits as {bound}"] = asked(f"{name}_{bound}", model, problems, output, bounded)
    show(runs, results)


def configured(row: str, seed: str, output: Path, changes: Sequence[str]) -> FinetuneConfig:
    name = f"graft_all_{seed}" if row == "graft" else f"graft_all_{row}_{seed}"
    changes = [*ROWS[row], *changes, f"name={name}", f"seed={seed}", f"output={output}", "resume=true"]
    return load(FinetuneConfig, CONFIG, changes)


def show(runs: dict[str, Run], results: Results) -> None:
    """Compares each way to ask the grafted model with the plain model, on the same problems."""
    summaries = {name: nupa(run) for name, run in runs.items()}
    for name, run in runs.items():
        if name == "plain" or "plain" not in runs:
            continue
        rows = tables.changes(samples(runs["plain"]), samples(run))
        file = name.replace(", far digits as ", "_")
        results.show(by_range(rows, TITLE, ("plain", name)), f"graft_all_{file}")
        results.show(tables.change_table(rows, f"{TITLE}: plain against {name}"), f"graft_all_{file}_changes")
    theirs = [row for row in PUBLISHED if row.model == THEIRS]
    results.show(tables.digits(summaries, "digit_match", theirs), "graft_all_digits")
    heat_map(summaries, TITLE, results.file("graft_all.png"))


if __name__ == "__main__":
    main(sys.argv[1:])
