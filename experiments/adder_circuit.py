"""Is the circuit that a small adder has learned the known one?

    python experiments/adder_circuit.py RUN [RUN ...]

Each RUN is a run directory of `lab.adder train` with a reduced model whose attention is by position and whose gates are
hinges. The known circuit (hand-built, and found in others' trained models of 19 to 49 parameters) attends 10 : 1 to the
digits of this place and of the one before, takes the digit last written away, so that 10 (s + carry) - (carry before)
is left, and takes 100 from it where it is beyond a step near 94-95.
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from lab.config.loading import load
from lab.drawing.tables import Table
from lab.errors import ModelError, exit_cleanly
from lab.runs import Run
from lab.smallest_adder.config import AdderConfig, ReducedAdderConfig
from lab.smallest_adder.groups import STATE, BatchedModel
from lab.smallest_adder.models import ReducedAdder, build
from lab.smallest_adder.rows import ANSWERS, batch

KNOWN = ("known", "", "0.455 0.455", "0.045 0.045", "0.000", "10 : 1.00 : -1.00", "94-95")
LAST = 33
"""The last query's position: the digits it needs are 10 and 22 tokens before it."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    columns = ("run", "parameters", "this place", "place before", "elsewhere", "s : s before : written", "step")
    table = Table("Trained adders against the known circuit", columns, [KNOWN, *map(row, map(Path, arguments))], 1)
    Console(width=None if sys.stdout.isatty() else 160).print(table.terminal())
    print(table.markdown())


@torch.no_grad()
def row(path: Path) -> tuple[str, ...]:
    config = load(AdderConfig, path / "config.yaml").model
    if not isinstance(config, ReducedAdderConfig) or (config.attention, config.gates) != ("position", "hinges"):
        raise ModelError(f"{path}: not a reduced adder with attention=position and gates=hinges")
    model = build(config)
    assert isinstance(model, ReducedAdder)
    batched = BatchedModel(model)
    model.load_state_dict(batched.state_dict(torch.tensor(Run(path).read_json(STATE)["best_P"])))

    distances_T = LAST - torch.arange(LAST + 1)
    turns_T = distances_T * (2 * math.pi / config.period)
    weights_T = torch.softmax(8 * (model.query_2[0] * turns_T.cos() + model.query_2[1] * turns_T.sin()), dim=0)
    this, before = ([weights_T[LAST - distance].item() for distance in pair] for pair in ((10, 22), (11, 23)))

    # what the hinges see, as a linear function of the two sums and of the digit written last
    seen_N, facts_N3 = hinge_inputs(model)
    fitted, *_ = np.linalg.lstsq(np.column_stack([facts_N3, np.ones(len(facts_N3))]), seen_N, rcond=None)
    unit = fitted[0] / 10
    edges = sorted((-bias - fitted[3]) / unit for bias in model.bias_F.tolist())
    shares = (f"{values[0]:.3f} {values[1]:.3f}" for values in (this, before))
    ratio = f"10 : {fitted[1] / unit:.2f} : {fitted[2] / unit:.2f}"
    step = f"{edges[0]:.1f} to {edges[1]:.1f}"
    return (path.name, str(batched.parameters), *shares, f"{1 - sum(this) - sum(before):.3f}", ratio, step)


def hinge_inputs(model: ReducedAdder) -> tuple[np.ndarray, np.ndarray]:
    """What the hinges see (N,) at the answers' queries but the first, and s_i, s_(i-1) and the last digit (N, 3)."""
    ids_BT = torch.from_numpy(batch("valid", 0, 0, 1000)[0])
    a_BD, b_BD, written_BD = ids_BT[:, 1:11], ids_BT[:, 13:23], ids_BT[:, 24:]
    sums_BD = torch.nn.functional.pad(a_BD + b_BD, (0, 1))
    facts = torch.stack([sums_BD[:, 1:], sums_BD[:, :-1], written_BD], dim=-1)
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
    return seen_BA.flatten().numpy(), facts.flatten(0, 1).numpy()


if __name__ == "__main__":
    main(sys.argv[1:])
