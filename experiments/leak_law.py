"""Can the length at which a model fails be told from measurements at training length alone?

    python experiments/leak_law.py [output=checkpoints] [sums=50] [publish=true]

Trains one- and two-layer models on sums of 1-5 digits, as different in reach as packing, locality, encodings and depth
make them, and keeps those that are right there. Reach is the length up to which half of the sums are right, between the
lengths of `LENGTHS`. Predictors are measured on sums of at most five digits:

    leak            attention that the aligned heads give at five digits to digits that s_k does not need
    growth          leak at five digits less leak at three
    extrapolated    leak at fifty digits, if the odds of a foreign digit go on falling with distance as they do within
                    five digits
    tolerance       the leak at which half of the sums of five digits are wrong, given to the aligned heads
    both            extrapolated less tolerance
    margin          logit of the right digit less that of the next best, its lower tenth

The predictor is chosen on one half of the models, by settings and not by seeds, and tested on the other. Leaves a table
and a figure in results/ beside the runs, or in experiments/results/ with publish=true.
"""

# %%
import sys
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr

from lab.drawing import figures
from lab.drawing.publishing import take_results
from lab.drawing.tables import Table
from lab.errors import exit_cleanly
from lab.numbers.additions import addition
from lab.pretrain import main as pretrain
from lab.probing.alignment import aligned_heads, alignment, destinations
from lab.probing.bridge import Subject, open_model
from lab.probing.interventions import take
from lab.probing.positions import NOWHERE, Sums
from lab.probing.surgery import set_leak
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]
TRAINED, FAR = 5, 50
LENGTHS = (5, 6, 8, 10, 14, 20, 30, 50, 70, 100)
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SMALL = [
    f"data.lengths=[1,{TRAINED}]",
    "training.max_steps=900",
    "training.batch_size=64",
    "training.micro_batch_size=64",
    "training.warmup_steps=100",
    "training.evaluate_every=450",
    "training.valid_problems=128",
    f"evaluation.lengths=[{TRAINED}]",
    "evaluation.problems_per_length=50",
]
"""What all models share; the rest is that of configs/locality.yaml."""
SETTINGS: dict[str, list[str]] = {
    "learned": ["model.locality=0"],
    "slope 0.1": ["model.locality=0.1"],
    "packed 8": ["model.locality=0", "data.packing=8"],
    "slope 1": ["model.locality=1"],
    "rope": ["model.encoding=rope", "model.locality=0"],
    "packed 2": ["model.locality=0", "data.packing=2"],
    "slope 0.3": ["model.locality=0.3"],
    "rope, packed 8": ["model.encoding=rope", "model.locality=0", "data.packing=8"],
    "abacus": ["model.positions={kind: abacus, largest: 128}", "model.locality=0"],
    "two layers": ["model.locality=0", "model.layers=2"],
    "packed 4": ["model.locality=0", "data.packing=4"],
    "slope 0.03": ["model.locality=0.03"],
    "rope, slope 0.3": ["model.encoding=rope", "model.locality=0.3"],
    "two layers, slope 0.3": ["model.locality=0.3", "model.layers=2"],
    "packed 16": ["model.locality=0", "data.packing=16"],
    "alibi": ["model.encoding=alibi", "model.locality=0"],
    "two layers, packed 8": ["model.locality=0", "model.layers=2", "data.packing=8"],
    "abacus, packed 8": ["model.positions={kind: abacus, largest: 128}", "model.locality=0", "data.packing=8"],
}
SEEDS = (0, 1)


def train(setting: str, seed: int, folder: Path) -> Path:
    """The run of a setting and a seed, trained unless it is there."""
    name = f"leak_law_{setting.replace(', ', '_').replace(' ', '-')}_{seed}"
    if not (folder / name).exists():
        given = [*SMALL, *SETTINGS[setting], f"name={name}", f"seed={seed}", f"output={folder}"]
        pretrain([str(ROOT / "configs" / "locality.yaml"), *given])
    return folder / name
