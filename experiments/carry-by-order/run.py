"""Do adders carry in a step or in a ramp?

    python -m experiments.carry-by-order.run ["PANEL=MODEL,MODEL,..." ...] [output=checkpoints] [table=carry_step]

For each model, on sums of three digits, where the digit of the hundreds is predicted:

    right      how often this digit is right, without a carry and with one, if the tens or the ones decide about it
    totals     the whole stream at this token comes from a sum whose tens have another total; how far does the answer go
               from "no carry" to "carry"? (experiments/shared/carry_by_total.py)

A model is a run directory or the name of a model. The models of a panel are drawn together; without panels, the adders
of the zoo that TransformerLens can open are measured. Measurements are kept in OUTPUT/carry_step.json and are not
repeated. Leaves tables and a figure.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.shared.arguments import own_and_others
from experiments.shared.carry_by_total import DECIDES, STREAM, Curves, by_total, right_digits, right_table, totals_table
from experiments.shared.estimates import estimated
from experiments.shared.kept import Kept, identified
from experiments.shared.publishing import beside_runs
from lab.drawing import figures
from lab.errors import ConfigError, exit_cleanly
from lab.probing.bridge import Subject, open_model
from lab.progress import quiet_libraries

ZOO = ("adds-1000", "adds-1000-rope", "adds-10-without-locality", "adds-10-rope", "adds-4-digits-nupa")
PAIRS = 100


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, drawn = own_and_others(arguments, "output", "table")
    if wrong := [one for one in drawn if "=" not in one]:
        raise ConfigError(f"{wrong[0]}: should be a panel and its models, such as SmolLM2=checkpoints/smollm2_sums_0")
    panels = {name: models.split(",") for name, models in (one.split("=", 1) for one in drawn)}
    table, kept = given.get("table", "carry_step"), Kept(Path(given.get("output", "checkpoints")) / "carry_step.json")
    right, totals = {}, {}
    for panel, models in (panels or {"the zoo": [f"zoo/{name}" for name in ZOO]}).items():
        for name in models:
            one = kept.once(identified(name), lambda name=name: measured(open_model(name)))
            model = name.removeprefix("checkpoints/").removeprefix("zoo/")
            right[model], totals.setdefault(panel, {})[model] = one["right"], one["totals"]
    results.show(right_table("Digits of the hundreds that are right", "model", right), f"{table}_right")
    every = {model: curves for models in totals.values() for model, curves in models.items()}
    results.show(totals_table("How far the answer goes from no carry to carry", "model", every), table)
    draw(totals, results.file(f"{table}.png"))


def measured(subject: Subject) -> dict[str, Any]:
    right = {part: right_digits(subject, pairs(PAIRS, 2)) for part, pairs in DECIDES.items()}
    return {"right": right, "totals": by_total(subject)}


def draw(totals: Mapping[str, Mapping[str, Curves]], path: Path) -> None:
    """A line for each model and each carry from the ones."""
    with figures.figure_at(path, (2.6 * max(2, len(totals)), 2.8)) as figure:
        panels = figure.subplots(1, len(totals), sharey=True, squeeze=False)[0]
        for axes, (name, models) in zip(panels, totals.items(), strict=True):
            for curves in models.values():
                for carry, points in curves[STREAM].items():
                    label = f"{'with' if carry == '1' else 'without'} a carry from the ones"
                    shares = {int(total): estimated(point).value for total, point in points.items()}
                    axes.plot(shares.keys(), shares.values(), label=label, color=figures.COLORS[int(carry)], lw=1)
            axes.axvline(9.5, color="gray", linewidth=0.6)
            axes.set(title=name, xlabel="total of the donor's tens", xticks=range(0, 19, 3))
        panels[0].set_ylabel("from no carry (0) to carry (1)")
        figures.legend_below(figure, 2)
        figures.headed(figure, "What the answer makes of a stream from a sum with other tens")


if __name__ == "__main__":
    main(sys.argv[1:])
