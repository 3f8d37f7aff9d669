"""How often the second reading alone is right, by operation and length, over numbers of its own kinds and strata.

python -m experiments.wild.long_digits model=FOLDER digits=20x64,100x64,1000x16
"""

import json
import sys
from pathlib import Path
from random import Random

from experiments.wild.digits import STRATA, Pair, drawn, strata_pair
from experiments.wild.train_digits import exact
from lab.second_reading.adapted import OPERATIONS
from lab.second_reading.saving import load


def pairs(operation: str, length: int, count: int) -> list[Pair]:
    """Half of the sums are of STRATA, all others as in training, half of them hard."""
    found = []
    for index in range(count):
        rng = Random(f"long {operation} {length} {index}")
        if operation == "add" and index % 2:
            first, second = strata_pair(STRATA[index // 2 % len(STRATA)], length, rng)
            found.append((operation, int(first), int(second)))
        else:
            found.append(drawn(operation, length, rng))
    return found


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    second = load(Path(given["model"]), "auto").second
    for item in given["digits"].split(","):
        length, count = map(int, item.split("x"))
        for operation in OPERATIONS:
            asked = pairs(operation, length, count)
            right = sum(sum(exact(second, asked[start : start + 8])) for start in range(0, count, 8))
            print(json.dumps({"operation": operation, "digits": length, "right": right, "n": count}), flush=True)
