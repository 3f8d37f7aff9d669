"""Is a digit that is wrong in a long sum wrong in a short one, too? (models that add numbers as they are written)

    python experiments/graft_cuts.py MODEL[,MODEL ...] [digits=100] [problems=48] [right=4] [seed=0] [table=graft_cuts]
                                     [publish=true] [output=FOLDER]

MODEL is a run of the row "as written" of experiments/graft.py, or its exported adapters. Reads `problems` sums of each
stratum (lab/numbers/additions.py) once with the right answer, in NUPA's words. The margin of a digit is how far its
logit lies above that of the best other token; below 0, the digit is wrong. For each wrong digit, and for `right` random
right ones of each sum, cuts both numbers and reads the sum of what is left:

    no higher places    places more than two above the digit's own are cut off
    no lower places     places below those that its computation needs are cut off: below the place that decides about
                        its carry and the next one down, and more than two below its own

    7 9 3 5 8 1 4 6 2 + 6 1 2 4 1 7 9 3 5     at the place of 5 and 4: 8 + 1 is nine, 1 + 7 decides
      9 3 5 8 1 4 6 2 +   1 2 4 1 7 9 3 5     no higher places
    7 9 3 5 8 1 4     + 6 1 2 4 1 7 9         no lower places

What is left never begins with a zero: then fewer places are cut off. Measurements are kept in the output folder. Leaves
a table.
"""

import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from shared.arguments import own
from shared.kept import Kept
from shared.publishing import Results, take_results

from lab.config.schema import ModelConfig
from lab.drawing.tables import NOT_MEASURED, Entry, Table
from lab.errors import ConfigError, exit_cleanly
from lab.models import loading
from lab.models.swaps import swap_of
from lab.numbers.additions import STRATA, addition
from lab.numbers.sampling import Problem
from lab.numbers.tasks import task
from lab.progress import quiet_libraries
from lab.text.examples import encode
from lab.text.formats import TextFormat

ROOT = Path(__file__).parents[1]
PLACES = {"0-2": range(3), "3-9": range(3, 10), "10 or more": range(10, 10**6)}
"""The places of digits, in groups. 0 is that of the ones."""


class Digit(NamedTuple):
    """A digit of an answer, and its margins."""

    place: int
    whole: float
    """In the long sum."""
    without_higher: float
    without_lower: float


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    names, rest = [one for one in rest if "=" not in one], [one for one in rest if "=" in one]
    given = own(rest, "digits", "problems", "right", "seed", "table", "output")
    if len(names) != 1:
        raise ConfigError("give models that add as numbers are written, with commas between them")
    digits, problems, right = (
        int(given.get(key, usual)) for key, usual in (("digits", 100), ("problems", 48), ("right", 4))
    )
    kept = Kept(Path(given.get("output", "checkpoints")) / "graft_cuts.json")
    found: dict[str, list[Digit]] = {}
    for name in names[0].split(","):
        reader = Reader(name, int(given.get("seed", 0)), kept)
        digits_of = [reader.read(stratum, digits, problems, right) for stratum in STRATA]
        found[Path(name).name] = [Digit(int(place), *margins) for part in digits_of for place, *margins in part]
    show(found, problems * len(STRATA), digits, results, given.get("table", "graft_cuts"))


def brief(found: Sequence[Sequence[float]]) -> str:
    return f"wrong at places {[round(one[0]) for one in found if one[1] < 0]}"


class Reader:
    """A model that reads sums with their right answers. It is loaded when it is first needed."""

    def __init__(self, name: str, seed: int, kept: Kept) -> None:
        self.name, self.seed, self.kept = name, seed, kept
        self._loaded: Any = None

    def read(self, stratum: str, digits: int, problems: int, right: int) -> Sequence[Sequence[float]]:
        """The wrong digits of sums, and some right ones: the fields of `Digit` of each."""
        key = f"{self.name} {stratum} {digits}x{problems} {right} {self.seed}"
        return self.kept.once(key, lambda: self._read(stratum, digits, problems, right), brief)

    def _read(self, stratum: str, digits: int, problems: int, right: int) -> list[Digit]:
        found = []
        for index in range(problems):
            item = addition(stratum, digits, self.seed, index)
            margins = self.margins(item)
            wrong = [place for place, margin in margins.items() if margin < 0]
            others = sorted(margins.keys() - {*wrong})
            for place in wrong + random.Random(index).sample(others, min(right, len(others))):
                low, high = bounds(item.a, str(item.b), place)
                above, below = cut(item, 0, high), cut(item, low, digits)
                found.append(Digit(place, margins[place], self.margins(above)[place], self.margins(below)[place - low]))
        return found

    @torch.inference_mode()
    def margins(self, item: Problem) -> dict[int, float]:
        """The margin of each digit of the answer, by its place."""
        if self._loaded is None:
            model, tokenizer = loading.load(ModelConfig(name=self.name))
            self._loaded = model, tokenizer, TextFormat(swap_of(model).format, [task("add_integer")])
        model, tokenizer, written = self._loaded
        prompt, completion = encode(written.example(item), tokenizer)
        answer = completion[:-1]  # the end would finish the number, whose places are those of an unfinished one
        ids_1T = torch.tensor([[*prompt, *answer]], device=model.device)
        logits_AV = model(input_ids=ids_1T).logits[0, len(prompt) - 1 : -1].float()
        right_A1 = ids_1T[0, len(prompt) :, None]
        others_AV = logits_AV.scatter(1, right_A1, float("-inf"))
        margins_A = logits_AV.gather(1, right_A1)[:, 0] - others_AV.amax(1)
        digits_A = [tokenizer.decode([token]).isdigit() for token in answer]
        of_digits = [margin for margin, digit in zip(margins_A.tolist(), digits_A, strict=True) if digit]
        return dict(enumerate(reversed(of_digits)))


def bounds(a: str, b: str, place: int) -> tuple[int, int]:
    """The lowest and the highest place of a cut around a place."""

    def digit(number: str, at: int) -> int:
        return int(number[-1 - at]) if at < len(number) else 0

    longest = max(len(a), len(b))
    decides = next((at for at in range(place - 1, -1, -1) if digit(a, at) + digit(b, at) != 9), 0)
    high = min(place + 2, longest - 1)
    while high < longest - 1 and any(high < len(number) and digit(number, high) == 0 for number in (a, b)):
        high += 1
    return max(0, min(decides - 1, place - 2)), high


def cut(item: Problem, low: int, high: int) -> Problem:
    """The sum of the digits from place `low` to place `high`."""
    a, b = (str(int(number) // 10**low % 10 ** (high + 1 - low)) for number in (item.a, str(item.b)))
    return item._replace(a=a, b=b, answer=str(int(a) + int(b)), length=max(len(a), len(b)))


def show(found: dict[str, list[Digit]], sums: int, digits: int, results: Results, name: str) -> None:
    lines: list[tuple[Entry, ...]] = []
    for model, read in found.items():
        for group, places in PLACES.items():
            some = [one for one in read if one.place in places]
            wrong, right = [one for one in some if one.whole < 0], [one for one in some if one.whole >= 0]
            everything = sums * len(range(places.start, min(places.stop, digits + 1)))
            cells = [f"{len(wrong)} of {everything}"]
            for which in ("without_higher", "without_lower"):
                cells.append(f"{sum(getattr(one, which) < 0 for one in wrong)} of {len(wrong)}")
                off = [abs(getattr(one, which) - one.whole) for one in right]
                cells.append(f"{statistics.median(off):.2f}" if off else NOT_MEASURED)
            whole = f"{statistics.median(one.whole for one in right):.2f}" if right else NOT_MEASURED
            lines.append((model, group, whole, *cells))
    columns = (
        "model",
        "places",
        "median margin of right digits",
        "wrong digits",
        "still wrong without higher places",
        "median change of right digits",
        "still wrong without lower places",
        "median change of right digits ",
    )
    title = f"Wrong digits of {sums} sums of {digits} digits, and of what is left if places are cut off"
    results.show(Table(title, columns, lines, 2), name)


if __name__ == "__main__":
    main(sys.argv[1:])
