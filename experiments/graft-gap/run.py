"""How many words may stand between two numbers that a tuned model adds, and does even spacing help?

    python -m experiments.graft-gap.run MODEL[,MODEL ...] [spacings=0,3] [gaps=2,5,10,20,40,80] [digits=60] [problems=6]
                                    [seed=0] [table=graft_gap] [output=FOLDER]

MODEL is a run of a row "in prose" of experiments/graft.py, its exported adapters, or a model of the zoo. Asks sums
after FRAME, in which some words of documentation stand between the numbers, or, as a control, the same words before the
first one. Reads `problems` sums of each stratum (lab/numbers/additions.py) once with the right answer, so a sum counts
as right if each digit is the likeliest after the right ones before it. With a spacing of 0, the text decides the
distance between the numbers; with any other, numbers are evenly spaced in the test (`parts.even_spacing`).
Measurements are kept in the output folder. Leaves a table and a figure.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from experiments.shared.arguments import own_and_listed, whole_number, whole_numbers
from experiments.shared.kept import Kept, identified
from experiments.shared.publishing import Results, beside_runs
from experiments.shared.sum_reader import SumReader
from lab.drawing import figures
from lab.drawing.tables import Entry, Table, percent
from lab.errors import ConfigError, exit_cleanly
from lab.numbers.additions import STRATA, addition
from lab.numbers.sampling import Problem
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.progress import quiet_libraries
from lab.text.docstrings import HELD_OUT, docstrings
from lab.text.templates import worded

FRAME = "{before}One counter shows {{a}}. {between}The other one shows {{b}}. The sum is"
"""How sums are asked. Without other words, the position ids of {a} and {b} are 7 apart."""
UNWANTED = "0123456789{}"
"""Characters that other words do not contain: digits, and what stands for numbers in a template."""
PLACES = ("between", "before")
"""Where the other words stand: between the numbers, or before the first one."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    keys = ("spacings", "gaps", "digits", "problems", "seed", "table", "output")
    given, names = own_and_listed(arguments, "models that were tuned on sums in prose", *keys)
    spacings, gaps = whole_numbers(given, "spacings", "0,3"), whole_numbers(given, "gaps", "2,5,10,20,40,80")
    digits, problems = whole_number(given, "digits", 60), whole_number(given, "problems", 6)
    seed = whole_number(given, "seed", 0)
    items = [addition(stratum, digits, seed, index) for stratum in STRATA for index in range(problems)]
    kept = Kept(Path(given.get("output", "checkpoints")) / "graft_gap.json")
    found: dict[tuple[int, str, int], list[list[bool]]] = {}
    for name in names:
        reader, model = SumReader(name), identified(name)
        for spacing in spacings:
            for place in PLACES:
                for gap in gaps:
                    key = f"{model} spacing {spacing}, {gap} words {place}, {digits}x{problems} {seed}"
                    answers = kept.once(key, lambda: right(reader, items, place, gap, spacing), sum)  # noqa: B023
                    found.setdefault((spacing, place, gap), []).append(answers)
    show(found, f"{digits} digits", results, given.get("table", "graft_gap"))


def right(reader: SumReader, items: Sequence[Problem], place: str, gap: int, spacing: int) -> list[bool]:
    """Whether each digit of each sum is the likeliest, with `gap` other words between the numbers or before."""
    reader.spacing = spacing
    frame = FRAME.format(**{where: other_words(gap) if where == place else "" for where in PLACES})
    return [not reader.wrong(worded(frame, reader.example(item))) for item in items]


def other_words(count: int) -> str:
    """The first `count` words of documentation that no training saw, without words that contain a digit or a brace."""
    words = [word for word in docstrings(HELD_OUT).split() if not any(map(UNWANTED.__contains__, word))]
    if count > len(words):
        raise ConfigError(f"gaps={count}: the documentation has only {len(words)} words")
    return " ".join([*words[:count], ""])


def show(
    found: Mapping[tuple[int, str, int], Sequence[Sequence[bool]]], what: str, results: Results, name: str
) -> None:
    """A table and a figure. `found`: for each case, which sums each model got right, the same sums for all."""
    shares = {case: seeds_proportion([mean(one) for one in of_models], len(of_models[0]))
              for case, of_models in found.items()}  # fmt: skip
    lines: list[tuple[Entry, ...]] = []
    curves: dict[str, dict[int, Estimate]] = {}
    for spacing in dict.fromkeys(spacing for spacing, _, _ in shares):
        for place in PLACES:
            label = f"{'as in the text' if not spacing else f'evenly spaced ({spacing})'}, words {place}"
            points = {gap: share for (at, where, gap), share in shares.items() if (at, where) == (spacing, place)}
            curves[label] = points
            lines.append((label, *map(percent, points.values())))
    gaps = list(dict.fromkeys(gap for _, _, gap in shares))
    models = next(iter(found.values()))
    asked = f"{len(models)} models, n={len(models[0])} each"
    title = f"Sums of {what} with other words between the numbers or before them: right sums (%, 95 %), {asked}"
    results.show(Table(title, ("numbers", *(f"{gap} words" for gap in gaps)), lines, 1), name)
    with figures.figure_at(results.file(f"{name}.png"), (6.4, 3.4)) as figure:
        axes = figure.subplots()
        for color, (label, points) in zip(figures.COLORS, curves.items(), strict=False):
            figures.line_with_band(axes, points, color=color, label=label)
        axes.set(xscale="log", ylim=(-0.03, 1.03), xlabel="other words", ylabel="exact match")
        axes.set_xticks(gaps, labels=map(str, gaps), minor=False)
        axes.minorticks_off()
        axes.set_title(f"Sums of {what}, SmolLM2-135M tuned in prose")
        axes.legend(loc="lower left", fontsize="small")


if __name__ == "__main__":
    main(sys.argv[1:])
