"""Has a small adder learned the known circuit?

    python experiments/adder_circuit.py RUN [RUN ...]

Each RUN is a run directory of `lab.adder train`, either of a tiny model with one head, or of a reduced model whose
attention is by position and whose gates are hinges. The known circuit (hand-built, and found in other authors' trained
models of 19 to 49 parameters) attends to the digits of this place and of the one before in the ratio 10 : 1. It
subtracts the digit written last, so that 10 (s + carry) - (carry before) is left, and subtracts 100 from this if it is
above a step near 94-95. A tiny model normalizes what is left, so the script reads only the direction of it, and no
step. A tiny model's attention weights depend on tokens, so the script shows their means over problems, and the largest
change of a weight.
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from shared.publishing import printed

from lab.config.loading import load
from lab.drawing.tables import Table
from lab.errors import ModelError, exit_cleanly
from lab.runs import Run
from lab.smallest_adder.config import AdderConfig, AdderModelConfig, ReducedAdderConfig, TinyAdderConfig
from lab.smallest_adder.groups import STATE, BatchedModel
from lab.smallest_adder.models import ReducedAdder, TinyAdder, build
from lab.smallest_adder.rows import ANSWERS, batch

KNOWN = ("known", "", "0.455 0.455", "0.045 0.045", "0.000", "10 : 1.00 : -1.00", "94-95")
LAST = 33
"""The position of the last query: the digits that it needs are 10 and 22 tokens before it."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    columns = ("run", "parameters", "this place", "place before", "elsewhere", "s : s before : written", "step")
    table = Table("Trained adders against the known circuit", columns, [KNOWN, *map(row, map(Path, arguments))], 1)
    printed(table)
    print(table.markdown())


@torch.no_grad()
def row(path: Path) -> tuple[str, ...]:
    config = load(AdderConfig, path / "config.yaml").model
    if isinstance(config, TinyAdderConfig) and config.heads == 1:
        return tiny_row(path, config)
    if not isinstance(config, ReducedAdderConfig) or (config.attention, config.gates) != ("position", "hinges"):
        raise ModelError(
            f"{path}: not a reduced adder with attention=position and gates=hinges, nor tiny with one head"
        )
    model = trained(path, config)
    assert isinstance(model, ReducedAdder)

    distances_T = LAST - torch.arange(LAST + 1)
    turns_T = distances_T * (2 * math.pi / config.period)
    weights_T = torch.softmax(8 * (model.query_2[0] * turns_T.cos() + model.query_2[1] * turns_T.sin()), dim=0)
    this, before = ([weights_T[LAST - distance].item() for distance in pair] for pair in ((10, 22), (11, 23)))

    # the input of the hinges, as a linear function of the two sums and of the digit written last
    seen_N, facts_N3 = hinge_inputs(model)
    fitted, *_ = np.linalg.lstsq(np.column_stack([facts_N3, np.ones(len(facts_N3))]), seen_N, rcond=None)
    unit = fitted[0] / 10
    edges = sorted((-bias - fitted[3]) / unit for bias in model.bias_F.tolist())
    shares = (f"{values[0]:.3f} {values[1]:.3f}" for values in (this, before))
    ratio = f"10 : {fitted[1] / unit:.2f} : {fitted[2] / unit:.2f}"
    step = f"{edges[0]:.1f} to {edges[1]:.1f}"
    return (path.name, count_of(model), *shares, f"{1 - sum(this) - sum(before):.3f}", ratio, step)


def trained(path: Path, config: AdderModelConfig) -> torch.nn.Module:
    model = build(config)
    row_P = torch.tensor(Run(path).read_json(STATE)["best_P"])
    model.load_state_dict(BatchedModel(model).state_dict(row_P))
    return model


def count_of(model: torch.nn.Module) -> str:
    return str(sum(parameter.numel() for parameter in model.parameters()))


def tiny_row(path: Path, config: TinyAdderConfig) -> tuple[str, ...]:
    model = trained(path, config)
    assert isinstance(model, TinyAdder)
    ids_BT = torch.from_numpy(batch("valid", 0, 0, 1000)[0])
    positions_T = torch.arange(ids_BT.shape[1])
    asking_A = positions_T[-ANSWERS + 1 :]
    x_BTD = model.digits_VD[ids_BT]
    normed_BTD = model.normed(x_BTD, 0)
    q_B1A2 = model.rotated(model.split(model.query(normed_BTD[:, asking_A])), asking_A)
    k_B1T2 = model.rotated(model.split(model.key(normed_BTD)), positions_T)
    later_AT = positions_T > asking_A[:, None]
    weights_BAT = (q_B1A2 @ k_B1T2.mT / math.sqrt(2)).masked_fill(later_AT, -math.inf).softmax(-1)[:, 0]
    means = [weights_BAT[:, torch.arange(len(asking_A)), asking_A - back].mean().item() for back in (10, 22, 11, 23)]
    most = (weights_BAT.amax(0) - weights_BAT.amin(0)).max().item()
    mid_BAD = x_BTD[:, asking_A] + model.output(weights_BAT @ model.value(normed_BTD))
    facts_N3 = facts_of(ids_BT)
    fitted, rest, *_ = np.linalg.lstsq(
        np.column_stack([facts_N3, np.ones(len(facts_N3))]), seen := direction(mid_BAD.flatten(0, 1)), rcond=None
    )
    unit = fitted[0] / 10
    explained = 1 - rest.item() / ((seen - seen.mean()) ** 2).sum()
    ratio = f"10 : {fitted[1] / unit:.2f} : {fitted[2] / unit:.2f} (R2 {explained:.2f})"
    shares = (f"{one:.3f} {other:.3f}" for one, other in (means[:2], means[2:]))
    turned = f"period {torch.as_tensor(model.period).item():.2f}, a weight changes by up to {most:.2f}"
    return (path.name, count_of(model), *shares, f"{1 - sum(means):.3f}", ratio, turned)


def direction(x_ND: torch.Tensor) -> np.ndarray:
    """The angle (N,) of each row from the mean direction, in the plane in which rows differ most."""
    units_ND = x_ND / x_ND.norm(dim=1, keepdim=True)
    middle_D = units_ND.mean(0) / units_ND.mean(0).norm()
    across_ND = units_ND - (units_ND @ middle_D)[:, None] * middle_D
    axis_D = torch.linalg.svd(across_ND, full_matrices=False).Vh[0]
    return torch.atan2(units_ND @ axis_D, units_ND @ middle_D).numpy()


def facts_of(ids_BT: torch.Tensor) -> np.ndarray:
    """s_i, s_(i-1) and the digit written last (N, 3), at all queries of the answers except the first."""
    a_BD, b_BD, written_BD = ids_BT[:, 1:11], ids_BT[:, 13:23], ids_BT[:, 24:]
    sums_BD = torch.nn.functional.pad(a_BD + b_BD, (0, 1))
    return torch.stack([sums_BD[:, 1:], sums_BD[:, :-1], written_BD], dim=-1).flatten(0, 1).numpy()


def hinge_inputs(model: ReducedAdder) -> tuple[np.ndarray, np.ndarray]:
    """The inputs of the hinges (N,) at all queries of the answers except the first, and `facts_of` them (N, 3)."""
    ids_BT = torch.from_numpy(batch("valid", 0, 0, 1000)[0])
    positions_T = torch.arange(ids_BT.shape[1])
    turns_AT = (positions_T[-ANSWERS + 1 :, None] - positions_T) * (2 * math.pi / model.period)
    scores_AT = 8 * (model.query_2[0] * turns_AT.cos() + model.query_2[1] * turns_AT.sin())
    scores_AT = scores_AT.masked_fill(positions_T > positions_T[-ANSWERS + 1 :, None], -math.inf)
    x_BTD = model.points()[ids_BT]
    mixed_BAD = torch.softmax(scores_AT, dim=-1) @ x_BTD
    if model.output == "matrix":
        mixed_BAD = mixed_BAD @ model.output_DD
    x_BAD = model.residual * x_BTD[:, -ANSWERS + 1 :] + mixed_BAD
    seen_BA = x_BAD[..., 0] if model.gate_D is None else (x_BAD * model.gate_D).sum(-1)
    return seen_BA.flatten().numpy(), facts_of(ids_BT)


if __name__ == "__main__":
    main(sys.argv[1:])
