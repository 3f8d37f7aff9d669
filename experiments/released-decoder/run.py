"""What explains Table 16's columns of floats with reversed decimals: answers that are right, but read as the released
code reads them.

    python -m experiments.released-decoder.run [folder of the runs of sweep.py formats_float]

The released decoder reverses decimals again for each token, so three or more decimals come out scrambled. It reads the
question in the same way, and takes the sum of the scrambled numbers as the right answer. Shows the exact match of each
run's answers, of the same answers in this reading, and of a perfect model in this reading.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.shared.publishing import printed
from lab.drawing.tables import Table, percent
from lab.errors import exit_cleanly
from lab.numbers.representations import Float
from lab.numbers.sampling import Cell, distinct_problems
from lab.numbers.statistics import Estimate, wilson
from lab.numbers.tasks import task
from lab.runs import Run

REVERSED = ("decimals", "each", "total")
"""Settings whose decimals are written in reverse."""


def scrambled(number: str) -> str:
    """A decimal as the released decoder reads it after it was written with reversed decimals, one digit a token.

    1.234 is written 1.432 and read 4, 34, 243: 1.243. Two decimals come out as they went in.
    """
    whole, decimals = number.split(".")
    read = ""
    for digit in reversed(decimals):
        read = (read + digit)[::-1]
    return f"{whole}.{read}"


def is_right_there(a: str, b: str, given: str, pad: bool) -> bool:
    """Whether an answer counts as right when everything is read scrambled; `pad`: operands have equally many decimals.

    An answer that is no decimal at all is wrong.
    """
    if not Float.pattern.fullmatch(given):
        return False
    decimals = max(len(number.split(".")[1]) for number in (a, b)) if pad else 0
    first, second = (Float.parse(_cut(scrambled(_padded(number, decimals)))) for number in (a, b))
    return str(first + second) == _cut(scrambled(given))


def _padded(number: str, decimals: int) -> str:
    whole, rest = number.split(".")
    return f"{whole}.{rest.ljust(decimals, '0')}"


def _cut(number: str) -> str:
    """The number without the zeros that scrambling has moved to its end."""
    whole, rest = number.split(".")
    return f"{whole}.{rest.rstrip('0') or '0'}"


def by_length(run: Run) -> dict[int, list[dict[str, Any]]]:
    """The samples of each trained length."""
    samples = run.read("samples")
    return {length: [sample for sample in samples if sample["length"] == length] for length in (2, 3, 4)}


def share(right: Sequence[bool]) -> Estimate:
    return wilson(sum(right), len(right))


@exit_cleanly
def main(folder: Path) -> None:
    rows = []
    for label in [f"{name}{padded}" for name in REVERSED for padded in ("", "-padded")]:
        runs = [Run(path) for path in sorted(folder.glob(f"formats_float_add_float_{label}_*"))]
        for run in (run for run in runs if run.status == "finished"):
            for length, samples in by_length(run).items():
                pad = label.endswith("padded")
                answers = share([sample["exact_match"] for sample in samples])
                read = share([is_right_there(s["a"], s["b"], s["given"] or "", pad) for s in samples])
                perfect = share([is_right_there(s["a"], s["b"], s["answer"], pad) for s in samples])
                rows.append((run.path.name, str(length), *map(percent, (answers, read, perfect))))
    columns = ("run", "digits", "answers", "read as released", "perfect, read as released")
    show(Table("Floats with reversed decimals: exact match (%)", columns, rows, 2))

    rows = []
    for length in (3, 4, 6, 8, 9, 10):
        problems = distinct_problems(Cell(task("add_float"), length), "test", 0, 2000)
        cells = (
            percent(share([is_right_there(p.a, str(p.b), p.answer, pad) for p in problems])) for pad in (False, True)
        )
        rows.append((str(length), *cells))
    show(Table("A perfect model, read as released (%)", ("digits", "unpadded", "padded"), rows, 1))


def show(table: Table) -> None:
    printed(table)
    print(table.markdown())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "checkpoints"))
