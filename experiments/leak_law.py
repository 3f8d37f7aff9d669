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


# %% ANALYSE: reach, and what is measured at training length.
def asked(subject: Subject, length: int, count: int) -> Sums:
    drawn = (addition("uniform", length, 0, index) for index in range(count))
    return subject.sums([(int(one.a), int(str(one.b))) for one in drawn])


@torch.inference_mode()
def exact(subject: Subject, sums: Sums, leak: dict[tuple[int, int], float] | None = None) -> float:
    parts = [sums.part(slice(start, start + 25)) for start in range(0, len(sums), 25)]
    return float(torch.cat([part.read(subject.logits(part, set_leak(part, leak or {}))).exact_B for part in parts]).float().mean())


def reach(right: dict[int, float]) -> float:
    """The length at which half of the sums are right, between lengths on a logarithmic scale."""
    for below, above in zip(LENGTHS, LENGTHS[1:], strict=False):
        if right[above] < 0.5:
            part = (right[below] - 0.5) / max(1e-9, right[below] - right[above])
            return float(below * (above / below) ** np.clip(part, 0, 1))
    return float(LENGTHS[-1])


@torch.inference_mode()
def odds_by_distance(subject: Subject, sums: Sums, heads: set[tuple[int, int]]) -> dict[int, float]:
    """Of the heads together: attention from q_k to one digit of an operand, by its place less k, as a share of what is
    given to digits of the places k and k - 1 and to no digit of an operand."""
    seen: dict[int, list[float]] = {}
    names = {layer: f"blocks.{layer}.attn.hook_pattern" for layer, _ in heads}
    _, found = subject.activations(sums, list(names.values()))
    for layer, head in heads:
        of_query_BKT = take(found[names[layer]][:, head], sums.query_at_BK)
        digits_BKD = torch.stack([of_query_BKT.gather(2, at.clamp(min=0)[:, None].expand(-1, of_query_BKT.shape[1], -1))
                                  for at in (sums.a_at_BK, sums.b_at_BK)])  # fmt: skip
        there_BD = (sums.a_at_BK != NOWHERE) & (sums.b_at_BK != NOWHERE)
        for k in range(TRAINED):
            foreign = [d for d in range(TRAINED) if d - k not in (0, -1)]
            mass = digits_BKD[:, :, k]
            needed_B = 1 - sum((mass[:, :, d] * there_BD[:, d]).sum(0) for d in foreign)
            for d in foreign:
                share_B = mass[:, :, d].mean(0) / needed_B.clamp(min=1e-6)
                seen.setdefault(d - k, []).extend(share_B[there_BD[:, d]].tolist())
    return {distance: float(np.mean(shares)) for distance, shares in seen.items()}


def extrapolated(odds: dict[int, float], length: int) -> float:
    """The leak at a length, if the logarithm of the odds goes on as a straight line with distance on either side."""
    total = 0.0
    for side in (1, -1):
        near = sorted((abs(d), np.log(max(share, 1e-9))) for d, share in odds.items() if d * side > 0)
        distance, level = map(np.array, zip(*near, strict=True))
        slope, start = np.polyfit(distance, level, 1)
        far = np.arange(1 if side > 0 else 2, length)
        # a digit is as often so far below as above: from place k, k below and length - 1 - k above
        total += float((2 * np.exp(start + min(slope, 0.0) * far) * (length - far) / length).sum())
    return total / (1 + total)


def measure(run: Path, count: int) -> dict[str, float] | None:
    """None for a model that is not right at training length, and for one without an aligned head."""
    subject = open_model(str(run))
    sums = {length: asked(subject, length, count) for length in (3, *LENGTHS)}
    right = {length: exact(subject, sums[length]) for length in LENGTHS}
    heads = {(one.layer, one.head) for one in aligned_heads(alignment(subject, {TRAINED: sums[TRAINED]}))}
    if right[TRAINED] < 0.9 or not heads:
        return {"right": right[TRAINED]}
    leaks = destinations(subject, {length: sums[length] for length in (3, TRAINED, FAR)}).leak
    by_head = {n: {h: float(leaks.at(layer=h[0], head=h[1], length=n).value) for h in heads} for n in (3, TRAINED, FAR)}
    mean = {n: float(np.mean(list(levels.values()))) for n, levels in by_head.items()}
    dose = [exact(subject, sums[TRAINED], {h: max(level, own) for h, own in by_head[TRAINED].items()}) for level in LEVELS]
    tolerance = next((level for level, share in zip(LEVELS, dose, strict=True) if share < 0.5), 1.0)
    far = extrapolated(odds_by_distance(subject, sums[TRAINED], heads), FAR)
    with torch.inference_mode():
        two_BT2 = subject.logits(sums[TRAINED]).float().topk(2, dim=-1).values
        margin_BK = (two_BT2[..., 0] - two_BT2[..., 1]).gather(1, sums[TRAINED].query_at_BK.clamp(min=0))
    return {
        "right": right[TRAINED], "reach": reach(right), "leak": mean[TRAINED], "growth": mean[TRAINED] - mean[3],
        "extrapolated": far, "tolerance": tolerance, "both": far - tolerance,
        "margin": float(margin_BK[sums[TRAINED].has_digit_BK].quantile(0.1)),
        f"leak at {FAR}": mean[FAR], f"exact at {FAR}": right[FAR],
        "given": exact(subject, sums[TRAINED], by_head[FAR]), "reset": exact(subject, sums[FAR], by_head[TRAINED]),
        "no aligned leak": exact(subject, sums[FAR], dict.fromkeys(heads, 0.0)),
    }  # fmt: skip


PREDICTORS = {"leak": -1, "growth": -1, "extrapolated": -1, "tolerance": 1, "both": -1, "margin": 1}
"""With the sign that a longer reach should have."""


def correlation(rows: list[dict[str, float]], name: str) -> float:
    return float(spearmanr([PREDICTORS[name] * row[name] for row in rows], [row["reach"] for row in rows]).statistic)


if __name__ == "__main__":
    results, arguments = exit_cleanly(take_results)(sys.argv[1:], ROOT / "experiments" / "results")
    given = dict(part.split("=", 1) for part in arguments)
    folder, count = Path(given.get("output", "checkpoints")), int(given.get("sums", 50))
    quiet_libraries()
    measured = {(name, seed): measure(train(name, seed, folder), count) for seed in SEEDS for name in SETTINGS}
