"""How many words a model with a window reads again for each word that it writes, if it drops what no head can see.

    python -m experiments.rules-through-a-window.run RUN[,RUN ...]

Each RUN is a run of `lab pretrain` with parts.window, such as that of configs/rules_window.yaml. It is asked its own
test problems once more (evaluation.lengths). Without a cache, each word is computed from the words that it can still
see (experiments/shared/erasing.py).
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.shared.erasing import ErasingEngine
from lab.benchmarks.benchmark import ask
from lab.benchmarks.length_curves.scoring import LengthCurves, unseen_problems
from lab.drawing.tables import Table
from lab.errors import RunError, exit_cleanly
from lab.models import loading
from lab.progress import quiet_libraries


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    if len(arguments) != 1:
        raise RunError("give run directories of lab pretrain, with commas between them")
    rows = [row(Path(name)) for name in arguments[0].split(",")]
    columns = ("run", "answers", "right", "written", "read again", "read if rows were read whole")
    print(Table("Words", columns, rows, 1).markdown(), end="")


def row(path: Path) -> tuple[str, ...]:
    """What one model wrote and read."""
    run = loading.load_scratch(path)
    tested = run.config.evaluation
    cells = run.config.data.tested_cells(tested.lengths)
    problems = unseen_problems(cells, run.config.seed, tested.problems_per_length)
    engine = ErasingEngine(run.model, run.tokenizer, tested.batch_size)
    samples = [sample for batch in ask(LengthCurves(problems, run.notation), engine) for sample in batch]
    right = sum(sample.right for sample in samples)
    counts = len(samples), right, engine.written, engine.read, engine.whole_rows
    return path.name, *(f"{count:,}" for count in counts)


if __name__ == "__main__":
    main(sys.argv[1:])
