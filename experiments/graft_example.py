"""Does the number in NUPA's instruction, "like 123", disturb a sum that is asked after it?

    python -m experiments.graft_example MODEL[,MODEL ...] [digits=100] [problems=24] [seed=0] [spacing=3]
                                        [table=graft_example] [output=FOLDER]

MODEL is a run of a row "as written" of experiments/graft.py, or its exported adapters. Reads `problems` sums of each
stratum (lab/numbers/additions.py) once with the right answer, so a sum counts as right if each digit is the likeliest
after the right ones before it. Numbers are spaced as in the training; with spacing=3, they are spaced evenly, and with
spacing=0, as in the text. The number in the instruction stays as it is, or is replaced (EXAMPLES). Shows how many sums
are right, and at which places the wrong digits are; place 0 is that of the ones. Measurements are kept in the output
folder. Leaves a table.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.shared.arguments import own_and_listed, whole_number
from experiments.shared.kept import Kept, identified
from experiments.shared.publishing import beside_runs
from experiments.shared.sum_reader import SumReader
from lab.drawing.tables import Entry, Table
from lab.errors import exit_cleanly
from lab.numbers.additions import STRATA, addition
from lab.numbers.sampling import Problem
from lab.progress import quiet_libraries
from lab.text.prompts import EXAMPLE_NUMBER

EXAMPLES = {"like 123": EXAMPLE_NUMBER, "like 7": "7", "like this": "this"}
"""A name for each change of the instruction, and what stands in it instead of EXAMPLE_NUMBER."""
PLACES = {"places 0-3": range(4), "places 4 and higher": range(4, 10**6)}


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    keys = ("digits", "problems", "seed", "spacing", "table", "output")
    given, names = own_and_listed(arguments, "models that add numbers as written", *keys)
    digits, problems = whole_number(given, "digits", 100), whole_number(given, "problems", 24)
    seed = whole_number(given, "seed", 0)
    spacing = whole_number(given, "spacing", 0) if "spacing" in given else None
    spaced = "" if spacing is None else f" spacing {spacing}"
    kept = Kept(Path(given.get("output", "checkpoints")) / "graft_example.json")
    lines: list[tuple[Entry, ...]] = []
    for name in names:
        reader, model = SumReader(name), identified(name)
        reader.spacing = spacing
        for label, example in EXAMPLES.items():
            places_of_sums: list[list[int]] = []
            for stratum in STRATA:
                items = [addition(stratum, digits, seed, index) for index in range(problems)]
                key = f"{model} {label} {stratum} {digits}x{problems} {seed}{spaced}"
                places_of_sums += kept.once(key, lambda: [wrong(reader, item, example) for item in items], str)  # noqa: B023
            right = f"{sum(not places for places in places_of_sums)} of {len(places_of_sums)}"
            at = [sum(place in places for of_sum in places_of_sums for place in of_sum) for places in PLACES.values()]
            lines.append((Path(name).name, label, right, *map(str, at)))
    columns = ("model", "in the instruction", "right sums", *(f"wrong digits, {group}" for group in PLACES))
    results.show(
        Table(f"Sums of {digits} digits after NUPA's instruction", columns, lines, 2),
        given.get("table", "graft_example"),
    )


def wrong(reader: SumReader, item: Problem, example: str) -> list[int]:
    """The places of wrong digits, with `example` instead of the instruction's number."""
    asked = reader.example(item)
    return reader.wrong(asked._replace(prompt=asked.raw.replace(EXAMPLE_NUMBER, example, 1)))


if __name__ == "__main__":
    main(sys.argv[1:])
