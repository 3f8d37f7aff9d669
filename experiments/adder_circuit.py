"""Has a small adder learned the known circuit?

    python -m experiments.adder_circuit RUN [RUN ...]

Each RUN is a run directory of `lab adder train`, or a declared adder of one layer and one head, with the templates of
the lab's own configs. The known circuit (hand-built, and found in other authors' trained models of 19 to 49 parameters)
attends to the digits of this place and of the one before in the ratio 10 : 1. It subtracts the digit written last, so
that 10 (s + carry) - (carry before) is left, and subtracts 100 from this if it is above a step near 94-95. If two ReLU
units share their direction, they are this step. In other models a norm follows, so the script reads only the direction
of what is left, and no step. Attention weights are means over problems; the largest change of a weight stands beside
them.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.shared.publishing import printed
from lab.adders.asking import AdderEngine
from lab.adders.count import count
from lab.adders.model import LAYERS, DeclaredModel, Pass, Tensors, Watch
from lab.adders.rows import batch
from lab.adders.spec import Adder
from lab.drawing.tables import Table
from lab.errors import ModelError, exit_cleanly

KNOWN = ("known", "", "0.455 0.455", "0.045 0.045", "0.000", "10 : 1.00 : -1.00", "94-95")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    columns = ("run", "parameters", "this place", "place before", "elsewhere", "s : s before : written", "step")
    table = Table("Trained adders against the known circuit", columns, [KNOWN, *map(row, map(Path, arguments))], 1)
    printed(table)
    print(table.markdown())


@torch.no_grad()
def row(path: Path) -> tuple[str, ...]:
    adder = AdderEngine.of(path).adder
    parts = adder.model.parts()
    if [kind for _, kind, _ in parts] != ["attention", "ffn"] or adder.prompt[1] != "a0" or adder.prompt[13] != "b0":
        raise ModelError(f"{path}: not an adder of one layer whose operands stand twelve tokens apart")
    ids_BT = torch.from_numpy(batch(adder, "valid", 0, 0, 1000)[0])
    weights_BAT, mid_ND, given = opened(adder, ids_BT)
    positions = torch.arange(ids_BT.shape[1])[-len(adder.answer) + 1 :]
    means = [weights_BAT[:, torch.arange(len(positions)), positions - back].mean().item() for back in (10, 22, 11, 23)]
    most = (weights_BAT.amax(0) - weights_BAT.amin(0)).max().item()
    facts_N3 = facts_of(ids_BT)
    ffn: Any = parts[1][2]
    inputs_NF = given.map(given.norm(mid_ND, ffn.norm), ffn.up).numpy()
    is_step = ffn.act == "relu" and inputs_NF.shape[1] == 2 and np.ptp(inputs_NF[:, 0] - inputs_NF[:, 1]) < 1e-3
    seen_N = inputs_NF[:, 0] if is_step else direction(mid_ND)
    fitted, rest, *_ = np.linalg.lstsq(np.column_stack([facts_N3, np.ones(len(facts_N3))]), seen_N, rcond=None)
    unit = fitted[0] / 10
    explained = 1 - rest.item() / ((seen_N - seen_N.mean()) ** 2).sum()
    ratio = f"10 : {fitted[1] / unit:.2f} : {fitted[2] / unit:.2f} (R2 {explained:.2f})"
    shares = (f"{one:.3f} {other:.3f}" for one, other in (means[:2], means[2:]))
    ends = sorted(-(fitted[3] + change) / unit for change in (0, (inputs_NF[:, 1] - inputs_NF[:, 0]).mean()))
    step = f"{ends[0]:.1f} to {ends[1]:.1f}" if is_step else f"a weight changes by up to {most:.2f}"
    return (path.stem, str(count(adder).parameters), *shares, f"{1 - sum(means):.3f}", ratio, step)


def opened(adder: Adder, ids_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, Pass]:
    """At all queries of the answers except the first: attention's weights (B, A, T), and the stream after it (N, D)."""
    model, watch = DeclaredModel(adder), Watch()
    given = Pass(Tensors(model.tables, model.vocabulary), adder, watch)
    given.asked = len(adder.answer) - 1
    x_BTD = given.get(adder.model.embedding)[ids_BT]
    mid_BAD = given.part(x_BTD, adder.model.parts()[0][2], LAYERS["attention"])
    return watch.seen[0][:, 0], mid_BAD.flatten(0, 1), given


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


if __name__ == "__main__":
    main(sys.argv[1:])
