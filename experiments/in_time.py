"""When in training do heads line digits up, and when is there a direction that is the carry?

    python experiments/in_time.py [output=checkpoints] [seeds=0,1,2,3] [publish=true]

Trains a one-layer model on sums of 1-4 digits (configs/locality.yaml, made small) with each seed, and opens it every 50
steps, with sums of four digits: exact match; the attention that the best head gives to the digits to be added, and to
those that the carry comes from, above what another column's query gives them (lab/probing/alignment.py); and the share
of cross-digit pairs whose carry is exchanged along the difference of means in the stream after attention
(lab/probing/interchange.py), less the share of the other neighbour. Leaves a table and a figure in results/ beside the
runs, or in experiments/results/ with publish=true.
"""

# %%
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from lab.config.loading import load
from lab.config.pretraining import PretrainConfig
from lab.config.schema import chosen
from lab.drawing import figures
from lab.drawing.publishing import take_results
from lab.drawing.tables import Table
from lab.errors import exit_cleanly
from lab.models import pretrained, scratch
from lab.numbers.additions import addition
from lab.numbers.statistics import Estimate
from lab.probing import interchange
from lab.probing.alignment import alignment
from lab.probing.bridge import bridge
from lab.probing.interchange import Place, pairs_for
from lab.probing.positions import NotatedSums
from lab.probing.probes import read_queries
from lab.probing.subspaces import difference_of_means
from lab.progress import quiet_libraries
from lab.runs import Run
from lab.text.notation import Notation
from lab.text.scratch_tokenizer import build_tokenizer
from lab.training.from_scratch import train_from_scratch
from lab.training.sequences import SequenceCollator, sequence_sets

ROOT = Path(__file__).parents[1]
DIGITS, COLUMN, SUMS, PAIRS = 4, 2, 64, 64
SMALL = [
    f"data.lengths=[1,{DIGITS}]",
    "training.max_steps=700",
    "training.batch_size=64",
    "training.micro_batch_size=64",
    "training.warmup_steps=100",
    "training.evaluate_every=50",
    "training.valid_problems=64",
]
MEASURES = {"exact match": 0.5, "digits to add": 0.2, "digits of the carry": 0.2, "carry direction": 0.5}
"""What is measured, and the level from which on it counts as there; 0.2 is the threshold of `aligned_heads`."""


# %% A model, opened while it is trained.
@torch.no_grad()
def watch(model: scratch.NumberLlama, writer: NotatedSums) -> dict[str, float]:
    fresh = type(model)(model.config).eval()  # the trainer has wrapped the model's own forward pass
    fresh.load_state_dict(model.state_dict())
    subject = bridge("in training", fresh, writer)
    drawn = (addition("uniform", DIGITS, 0, index) for index in range(SUMS))
    sums = subject.sums([(int(one.a), int(str(one.b))) for one in drawn])
    looks = alignment(subject, {DIGITS: sums})
    excess = (looks.attention.value - looks.permuted.value)[..., :2, :, 0]  # layer, head, a or b, offset
    offsets = list(looks.attention.axes["offset"])
    best = {offset: float(np.nanmax(excess[..., offsets.index(offset)])) for offset in (0, -1)}
    return {
        "exact match": float(sums.read(subject.logits(sums)).exact_B.float().mean()),
        "digits to add": best[0],
        "digits of the carry": best[-1],
        "carry direction": max(0.0, exchanged(subject)),
    }


def exchanged(subject: Any) -> float:
    train, test = pairs_for(DIGITS, COLUMN, 2 * PAIRS, PAIRS, seed=0)
    place = Place(subject.layers - 1, "mid", COLUMN)
    sides = [subject.sums(side) for side in (train.base, train.source)]
    stream_ND = torch.cat([read_queries(subject, side, [place[:2]], [COLUMN], 128)[0, :, 0] for side in sides])
    carry_N = np.concatenate([side.columns.carry[:, COLUMN] for side in sides])
    found = interchange.interchange(subject, test, place, difference_of_means(stream_ND, carry_N))
    rate = found.at(change="interchange", direction="both")
    return float(rate.at(outcome="target").value - rate.at(outcome="other neighbour").value)


class Seen(NamedTuple):
    """What was seen after so many steps and training problems."""

    step: int
    samples: int
    values: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        return {"step": self.step, "samples": self.samples, **self.values}


def trained(seed: int, folder: Path) -> list[dict[str, Any]]:
    """What was seen every 50 steps. Trains the model unless it is there."""
    given = [*SMALL, f"name=in_time_{seed}", f"seed={seed}", f"output={folder}"]
    config = load(PretrainConfig, ROOT / "configs" / "locality.yaml", given)
    if (config.path / "status").is_file():
        return list(Run(config.path).read("curve"))
    notation = Notation(config.tokenizer, config.format, chosen(config.data.tasks))
    tokenizer = build_tokenizer(notation.vocabulary)
    model = scratch.build(config.model, notation.vocabulary, seed)
    sets = sequence_sets(config.data, config.training, seed, notation, tokenizer)
    collate = SequenceCollator(notation.vocabulary, config.data.packing, config.model.positions, seed)
    writer = NotatedSums(notation, tokenizer)
    with config.open_run() as run:
        dtype = pretrained.resolve_dtype(config.model)
        train_from_scratch(
            model, tokenizer, config.training, sets, collate, seed, run, dtype,
            lambda step, samples: [Seen(step, samples, watch(model, writer))],
        )  # fmt: skip
        return list(run.read("curve"))


if __name__ == "__main__":
    results, arguments = exit_cleanly(take_results)(sys.argv[1:], ROOT / "experiments" / "results")
    given = dict(part.split("=", 1) for part in arguments)
    folder = Path(given.get("output", "checkpoints"))
    quiet_libraries()
    seen = {int(seed): trained(int(seed), folder) for seed in given.get("seeds", "0,1,2,3").split(",")}

    # %% The first step from which on each is there, and the curves.
    rows = []
    for seed, curve in seen.items():
        first = []
        for name, level in MEASURES.items():
            below = [row["step"] for row in curve if row[name] < level]
            steps = [row["step"] for row in curve if row["step"] > max(below, default=0)]
            first.append(str(steps[0]) if steps else "never")
        rows.append((str(seed), *first, f"{100 * curve[-1]['exact match']:.0f}"))
    title = f"Step of 64 problems from which on each is there ({SUMS} sums, {PAIRS} pairs of {DIGITS} digits)"
    results.show(Table(title, ("seed", *MEASURES, "exact match at the end, %"), rows, 1), "in_time")
    panels = {
        name: {
            f"seed {seed}": {float(row["step"]): Estimate(row[name], row[name], row[name], SUMS) for row in curve}
            for seed, curve in seen.items()
        }
        for name in MEASURES
    }
    figures.panels(panels, "step", "What comes first in training", results.file("in_time.png"))
