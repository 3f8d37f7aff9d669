"""Does a tuned model add less well if the number comes first in the text, with no word before it?

    python experiments/graft_first_word.py MODEL[,MODEL ...] [digits=100] [problems=12] [seed=0]
                                           [table=graft_first_word] [publish=true] [output=FOLDER]

MODEL is a run of experiments/graft.py, or its exported adapters. In a graft, a digit sees the first token of the text,
to which heads attend when there is nothing to look for. If this token is itself a digit, it is hidden from most other
tokens.

Reads sums with the right answer, so that a sum counts as right if each digit is the likeliest after the right ones
before it. The script asks all test wordings (lab/text/templates.py) that begin with a number, and as many that begin
with a word, each after every one of BEGINNINGS. In every cell, the sums are the same: `problems` of each stratum
(lab/numbers/additions.py). Measurements are kept in the output folder. Leaves a table.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from shared.arguments import own_and_listed, whole_number
from shared.kept import Kept, identified
from shared.publishing import take_results
from shared.sum_reader import SumReader

from lab.drawing.tables import Entry, Shown, Table
from lab.errors import exit_cleanly
from lab.numbers.additions import STRATA, addition
from lab.numbers.statistics import seeds_proportion
from lab.progress import quiet_libraries
from lab.text.templates import FRESH, HELD_OUT, VALIDATION, worded

ROOT = Path(__file__).parents[1]
BEGINNINGS = {"nothing": "", "a line break": "\n", "a word": "Note: ", "a sentence": "The letter was short. "}
"""What stands before the question."""
ASKED = (*VALIDATION, *HELD_OUT, *FRESH)
WITH_A_NUMBER = [wording for wording in ASKED if wording.startswith("{")]
WITH_A_WORD = [
    next(wording for wording in part if not wording.startswith("{")) for part in (VALIDATION, HELD_OUT, FRESH)
]
QUESTIONS = {"begins with a number": WITH_A_NUMBER, "begins with a word": WITH_A_WORD}


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    keys = ("digits", "problems", "seed", "table", "output")
    given, names = own_and_listed(rest, "models that were tuned by experiments/graft.py", *keys)
    digits, problems = whole_number(given, "digits", 100), whole_number(given, "problems", 12)
    seed = whole_number(given, "seed", 0)
    kept = Kept(Path(given.get("output", "checkpoints")) / "graft_first_word.json")
    right: dict[tuple[str, str], list[list[int]]] = {}
    for name in names:
        reader, model = SumReader(name), identified(name)
        for question, wordings in QUESTIONS.items():
            for label, beginning in BEGINNINGS.items():
                of_model = []
                for wording in wordings:
                    key = f"{model} {label} {wording} {digits}x{problems} {seed}"
                    asked = beginning + wording
                    of_model += kept.once(key, lambda: read(reader, asked, digits, problems, seed), sum)  # noqa: B023
                right.setdefault((question, label), []).append(of_model)
    results.show(summary(right, digits), given.get("table", "graft_first_word"))


def read(reader: SumReader, wording: str, digits: int, problems: int, seed: int) -> list[int]:
    """1 for each sum that is right, 0 for each that is not."""
    items = [addition(stratum, digits, seed, index) for stratum in STRATA for index in range(problems)]
    return [int(not reader.wrong(worded(wording, reader.example(item)))) for item in items]


def summary(right: dict[tuple[str, str], list[list[int]]], digits: int) -> Table:
    """`right`: for each kind of question and beginning, the sums of each model."""
    lines: list[tuple[Entry, ...]] = []
    for (question, label), models in right.items():
        share = Shown(
            seeds_proportion([sum(one) / len(one) for one in models], len(models[0]) // len(WITH_A_NUMBER)),
            "{:.1f} ({:.1f}-{:.1f})",
            100,
        )
        lines.append((question, label, share, *(f"{sum(one)} of {len(one)}" for one in models)))
    columns = ("question", "before it", "right, % (95 %)", *(f"model {place}" for place in range(len(lines[0]) - 3)))
    return Table(f"Sums of {digits} digits, read with the right answer", columns, lines, 2)


if __name__ == "__main__":
    main(sys.argv[1:])
