"""How many words must a model with a window read for each word that it writes?

    python experiments/rules_window.py RUN[,RUN ...]

Asks each run of rules_window.yaml its test again, with the engine that drops what no head can see (shared/erasing.py).
Prints exact match, and the words that were read with and without it.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from shared.erasing import ErasingEngine

from lab.benchmarks.length_curves.scoring import LengthCurves, unseen_problems
from lab.errors import RunError, exit_cleanly
from lab.models.loading import load_scratch
from lab.progress import quiet_libraries


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    if len(arguments) != 1:
        raise RunError("usage: python experiments/rules_window.py RUN[,RUN ...]")
    for name in arguments[0].split(","):
        print(f"{name}: {measured(Path(name))}")


def measured(folder: Path) -> str:
    run = load_scratch(folder)
    tested = run.config.evaluation
    cells = run.config.data.tested_cells(tested.lengths)
    curves = LengthCurves(unseen_problems(cells, run.config.seed, tested.problems_per_length), run.notation)
    engine = ErasingEngine(run.model, run.tokenizer, tested.batch_size)
    right = [
        curves.score(index, completion).readings[""].exact_match
        for done in engine.generate(curves.requests())
        for index, completion in done.items()
    ]
    read = f"{engine.read:,} words read for {engine.written:,} written; whole rows have {engine.whole_rows:,}"
    return f"{sum(map(bool, right))} of {len(right)} right; {read}"


if __name__ == "__main__":
    main(sys.argv[1:])
