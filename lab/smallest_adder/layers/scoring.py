"""The model as the harness uses it, and whether the sums are right."""

import time

import numpy as np

from lab.smallest_adder.graph.program import written_after
from lab.smallest_adder.trial import Objection, Trial

QUALIFYING = 0.99


def generation(trial: Trial) -> str:
    """Runs the practice problems through the greedy loop. Stops nothing by itself."""
    trial.outputs = written_after(trial.programs, trial.prompts, trial.length)
    return f"{trial.length} tokens for each of {len(trial.outputs):,} problems for practice"


def accuracy(trial: Trial) -> str:
    """Stops models that cannot add: the challenge asks for 99 % of all problems, with every digit right."""
    start = time.perf_counter()
    if trial.writing is None:
        raise Objection("without prompts that copy digits there is nothing to count")
    prompts = trial.writing.of(trial.pairs)
    sums = np.array([a + b for a, b in trial.pairs])
    if trial.reading is not None:
        trial.answers = trial.reading.answers(trial.written(prompts, sums))
    trial.seconds = time.perf_counter() - start
    share = trial.right / len(trial.pairs)
    figure = f"{trial.right:,} of {len(trial.pairs):,} right ({share:.2%})"
    if share < QUALIFYING:
        raise Objection(f"{figure}; at least 99% is asked")
    return figure
