"""Writes the cases of the test, for `measure`: templates by an author who saw no word of training.

python -m experiments.wild.blind asks=FILE no_asks=FILE out=FILE

Each template of `asks` has an operation and its operands, in order; {x} and {y} are numbers that no question is about.
"""

import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import yaml

from experiments.wild.digits import STRATA, strata_pair
from lab.second_reading.arithmetic import Signed

RIGHT = {
    "add": sum,
    "subtract": lambda numbers: numbers[0] - numbers[1],
    "distance": lambda numbers: abs(numbers[0] - numbers[1]),
    "maximum": max,
    "minimum": min,
}
Case = dict[str, Any]


def asking(template: dict[str, Any], cell: str, length: int, turn: int, decimals: bool = False) -> Case:
    """A case of a template with numbers of `length` digits. In a difference, the first number is the larger one."""
    rng = Random(f"{cell} {template['prompt']} {turn}")
    operands = template["operands"]
    if template["operation"] == "add":
        numbers = list(strata_pair(STRATA[(turn + rng.randrange(4)) % 4], length, rng))
    else:
        numbers = [str(rng.randrange(10 ** (length - 1), 10**length)) for _ in range(2)]
    numbers += [str(rng.randrange(10 ** (length - 1), 10**length)) for _ in operands[2:]]
    if template["operation"] == "subtract":
        numbers.sort(key=lambda digits: (len(digits), digits), reverse=True)
    if decimals:
        numbers = [Signed(1, digits, rng.randint(1, 3)).written(False) for digits in numbers]
    values = dict(zip(operands, numbers, strict=True))
    values |= {"x": str(rng.randint(2, 99)), "y": str(rng.randint(1900, 2020))}
    answer = Fraction(RIGHT[template["operation"]]([Fraction(values[slot]) for slot in operands]))
    text = template["prompt"]
    for slot, digits in values.items():
        text = text.replace("{" + slot + "}", digits)
    return {"cell": cell, "text": text, "answer": str(answer)}


def cases(asks: list[dict[str, Any]], no_asks: list[dict[str, Any]]) -> Iterator[Case]:
    of = {name: [one for one in asks if one["operation"] == name and len(one["operands"]) == 2] for name in RIGHT}
    for length, turns in ((3, 1), (8, 1), (20, 2), (100, 2), (1000, 1)):
        for turn in range(turns):
            yield from (asking(one, f"sums of {length} digits", length, turn) for one in of["add"])
    for turn in range(2):
        for name in ("subtract", "distance", "maximum", "minimum"):
            yield from (asking(one, f"{name}, 20 digits", 20, turn) for one in of[name])
    for turn in range(3):
        yield from (asking(one, "three terms, 20 digits", 20, turn) for one in asks if len(one["operands"]) == 3)
    yield from (asking(one, "decimals, 20 digits", 20, 0, True) for one in of["add"])
    yield from ({"cell": "nothing is asked", "text": one["prompt"], "answer": None} for one in no_asks)


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    asks, no_asks = (yaml.safe_load(Path(given[name]).read_text()) for name in ("asks", "no_asks"))
    with Path(given["out"]).open("w") as file:
        for case in cases(asks, no_asks):
            file.write(json.dumps(case) + "\n")
