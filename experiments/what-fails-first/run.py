"""What fails first beyond the trained lengths: the alignment of digits, the carry, or what reads both?

    python -m experiments.what-fails-first.run [key=value ...]

Trains the models of configs/sweeps/surgery.yaml; keys change the sweep, such as seeds=[0] or only=[rope]. At untrained
lengths, the script gives each model what it would need: it points the alignment heads at the digits that they look at
in training, or writes the true carry into the stream, along the direction that holds it in training, or does both; or
it removes attention to digits that are not needed. Wrong operations are the controls
(lab/probing/addition/surgery.py). Each digit is predicted after the right digits before it. Finished runs are not
repeated. Prints means over the seeds (95 %) and leaves a table and a figure in results/ beside the runs.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.shared import showing
from experiments.shared.publishing import beside_runs
from lab.config.loading import load
from lab.drawing.tables import NOT_MEASURED, Table, percent
from lab.errors import exit_cleanly
from lab.numbers.statistics import Estimate, seeds_proportion, student_mean
from lab.probe import main as probe
from lab.probing.measured import Measured
from lab.runs import Run
from lab.sweep import main as sweep
from lab.sweeping.config import SweepConfig

ROOT = Path(__file__).parents[2]
SWEEP = ROOT / "configs" / "sweeps" / "surgery.yaml"
TRAINED, LENGTHS, SUMS = 3, [3, 4, 5], 100
HELPING = ("vanilla", "alignment", "carry", "both", "no leak")
IN_WORDS = {
    "rope": "RoPE",
    "nope": "NoPE",
    "nope, no aligned head": "NoPE, no aligned head",
    "alibi": "ALiBi",
    "alibi, no aligned head": "ALiBi, no aligned head",
    "vanilla": "as trained",
    "no leak": "without the leak",
}
"""The models and the operations, as the figure names them."""
Operated = tuple[Measured, Measured]
"""The share of right sums and of right digits, by operation and length."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    results = beside_runs(arguments)
    config = load(SweepConfig, SWEEP, arguments)
    sweep([str(SWEEP), *arguments])
    found: dict[str, list[Operated]] = {}
    for label in config.only or config.cells:
        names = [f"{config.name}_{label.replace(' ', '-')}_{seed}" for seed in config.seeds]
        for exact, digits in [operated(config.output, name) for name in names]:
            # if no head lines digits up, there is no alignment to give: such models are shown separately
            kind = label if "alignment" in exact.axes["operation"] else f"{label}, no aligned head"
            found.setdefault(kind, []).append((exact, digits))
    rows = []
    right: dict[str, dict[str, dict[float, Estimate]]] = {}
    for label, seeds in found.items():
        vanilla = [[share(d, "vanilla", n) for _, d in seeds] for n in LENGTHS]
        for name in seeds[0][0].axes["operation"]:
            exact = [[share(e, name, n) for e, _ in seeds] for n in LENGTHS]
            digits = [[share(d, name, n) for _, d in seeds] for n in LENGTHS]
            shares = [percent(seeds_proportion(values, SUMS)) for values in exact]
            means = [student_mean(values, 0, 1) for values in digits]
            gained = [
                NOT_MEASURED
                if name == "vanilla"
                else showing.difference([mine - its for mine, its in zip(values, plain, strict=True)])
                for values, plain in zip(digits, vanilla, strict=True)
            ]
            rows.append((label, name, *(percent(mean) for mean in means), *gained[1:], *shares))
            if name in HELPING:
                right.setdefault(label, {})[IN_WORDS.get(name, name)] = dict(
                    zip(map(float, LENGTHS), means, strict=True)
                )
    columns = (
        *(f"{n} digits: digits right" for n in LENGTHS),
        *(f"{n} digits: against vanilla" for n in LENGTHS[1:]),
        *(f"{n} digits: exact" for n in LENGTHS),
    )
    count = ", ".join(f"{len(seeds)} of {label}" for label, seeds in found.items())
    title = f"Trained on 1-{TRAINED} digits, after surgery (seeds: {count}; {SUMS} sums a length and seed), %"
    results.show(Table(title, ("model", "operation", *columns), rows, 2), "surgery")
    shown = {
        f"{IN_WORDS[label]} ({len(found[label])} models)": lines
        for label, lines in right.items()
        if len(found[label]) > 2  # a mean of fewer has no useful interval
    }
    if shown:
        title = "Digits right, each after right ones: what would the model have needed?"
        showing.panels(shown, "digits", "right digits", title, results.file("surgery.png"))


def operated(output: Path, model: str) -> Operated:
    """How a model answers after each operation."""
    run = Run(output / f"probe_{model}")
    if not (run.path / "probe_surgery.json").is_file():
        sums = f"sums={{lengths: {LENGTHS}, trained: {TRAINED}, per_length: {SUMS}}}"
        names = [f"name={run.path.name}", f"output={output}", f"subject={output / model}", "resume=true"]
        probe([str(ROOT / "configs" / "probe_scratch.yaml"), "instruments=[surgery]", sums, "examples=0", *names])
    exact, digits = (Measured.from_json(part) for part in run.read_json("probe_surgery"))
    return exact, digits


def share(measured: Measured, operation: str, length: int) -> float:
    return float(measured.at(operation=operation, length=length).value)


if __name__ == "__main__":
    main(sys.argv[1:])
