"""Writes the cases of a split's words, for `measure`.

python -m experiments.wild.cases split=validation out=FILE n=48
"""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from experiments.wild.digits import STRATA, strata_pair
from experiments.wild.problems import Prompt, Style, group
from lab.second_reading.reader import ASKED, ROLES


class Cell(NamedTuple):
    """Prompts of one kind of question."""

    kinds: tuple[str, ...]
    keep: Callable[[Prompt], bool]
    style: Style
    length: int = 0
    """The number of digits of the longest number of a sum from STRATA; 0 for numbers as `style` draws them."""


def terms(one: Prompt) -> int:
    return sum(atom.role > 0 for atom in one.atoms)


def asks(name: str, count: int = 2, minus: bool = False) -> Callable[[Prompt], bool]:
    def keep(one: Prompt) -> bool:
        has_minus = any(atom.role == ROLES.index("minus") for atom in one.atoms)
        return ASKED[one.asked] == name and terms(one) == count and has_minus == minus

    return keep


WORDS = ("people", "plain", "plain", "kinds", "three_people", "table")
BARE = Style(grouped=0, decimals=0, signs=0)


def long(length: int) -> Style:
    return Style((length, length), 0, 0, 0, False)


CELLS = {
    "sums of 8 digits": Cell(WORDS, asks("sum"), BARE, 8),
    "sums of 20 digits": Cell(WORDS, asks("sum"), BARE, 20),
    "sums of 100 digits": Cell(WORDS, asks("sum"), BARE, 100),
    "a - b of 20 digits": Cell(("changes", "leaving", "plain", "people"), asks("sum", 2, True), long(20)),
    "distances of 20 digits": Cell(("people", "plain"), asks("distance"), long(20)),
    "the larger of 20 digits": Cell(("people", "plain"), asks("larger"), long(20)),
    "the smaller of 20 digits": Cell(("people", "plain"), asks("smaller"), long(20)),
    "three terms of 20 digits": Cell(("three_people", "plain"), asks("sum", 3), long(20)),
    "decimals of 20 digits": Cell(("plain", "people"), asks("sum"), Style((20, 20), 0, 1, 0, False)),
    "commas between thousands": Cell(("plain", "people"), asks("sum"), Style((4, 12), 1, 0, 0, False)),
    "nothing is asked": Cell(
        ("people", "plain", "nothing", "nothing", "three_people", "kinds", "changes", "leaving", "chat", "table"),
        lambda one: one.asked == 0,
        Style(),
    ),
}


def cases(split: str, name: str) -> Iterator[Prompt]:
    """The prompts of a cell, without end."""
    cell, index = CELLS[name], 0
    while True:
        rng = Random(f"{split} {name} {index}")
        given = {}
        if cell.length:
            given = dict(zip("ab", strata_pair(STRATA[index % len(STRATA)], cell.length, rng), strict=True))
            given["c"] = str(rng.randrange(10 ** min(8, cell.length)))
        made = group(split, rng, cell.kinds[index % len(cell.kinds)], cell.style, 6, given)
        yield from islice((one for one in made if one.kind != "cut" and cell.keep(one)), 1)
        index += 1


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    with Path(given["out"]).open("w") as file:
        for name in CELLS:
            for one in islice(cases(given["split"], name), int(given["n"]) * (4 if name == "nothing is asked" else 1)):
                answer = None if one.answer is None else str(one.answer)
                text = one.text if one.kind == "text" else one.text.rstrip(" ")
                file.write(json.dumps({"cell": name, "text": text, "answer": answer}) + "\n")
