"""How fast problems become text and answers become scores, on one core.

    python -m benchmarks.speed_data

The mix is the paper's training mix: all 53 tasks, hard ones at 1-8 digits, easy ones at 1-20. The baseline makes
additions in the four representations, and decides their split, in the obvious way: one at a time, with the standard
library (random, fractions, decimal, hashlib).
"""

import random
import time
from decimal import Decimal, localcontext
from fractions import Fraction
from hashlib import sha256

from lab.config.finetuning import DataConfig, TrainedLengths
from lab.config.schema import Lengths
from lab.errors import exit_cleanly
from lab.numbers.metrics import score
from lab.numbers.sampling import BLOCK, Cell, block
from lab.numbers.tasks import TASKS
from lab.text.answers import extract
from lab.text.examples import Example
from lab.text.wording import Wording

LENGTHS = Lengths(hard=(1, 8), easy=(1, 20))


def per_second(job) -> float:
    """Items per second of a job that returns its items; the best of five runs, since other processes can only slow it
    down."""
    rates = []
    for repetition in range(5):
        began = time.perf_counter()
        items = job(repetition)
        rates.append(len(items) / (time.perf_counter() - began))
    return max(rates)


def examples(cells: list[Cell], seed: int) -> list[Example]:
    return [Wording().example(problem) for cell in cells for problem in block(cell, "train", seed, 0)]


def obvious_additions(cells: list[Cell], seed: int) -> list[str]:
    draw = random.Random(seed)

    def digits(length: int) -> int:
        return draw.randrange(10 ** (length - 1), 10**length)

    def number(representation: str, length: int) -> str:
        whole = str(digits(length))
        if representation == "float":
            return f"{whole}.{digits(length)}"
        if representation == "fraction":
            return str(Fraction(digits(length), digits(length)))
        return whole if representation == "integer" else f"{whole[0]}.{digits(length)}e{draw.randrange(99)}"

    texts = []
    for cell in cells:
        for _ in range(BLOCK):
            a, b = (number(cell.task.representation.name, cell.length) for _ in range(2))
            if cell.task.representation.name in ("integer", "fraction"):
                total = str(Fraction(a) + Fraction(b))
            else:
                with localcontext(prec=250):
                    total = str((Decimal(a) + Decimal(b)).normalize())
            if sha256("|".join(sorted((a, b))).encode()).digest()[0] >= 32:  # one in eight is not for training
                texts.append(f"Add two numbers: {a} + {b} = {total}")
    return texts


@exit_cleanly
def main() -> None:
    cells = DataConfig(lengths=TrainedLengths(hard=LENGTHS.hard, easy=LENGTHS.easy)).cells
    additions = [
        Cell(TASKS[f"add_{name}"], n) for name in ("integer", "float", "fraction", "scientific") for n in range(1, 9)
    ]
    everything = per_second(lambda seed: examples(cells, seed))
    ours = per_second(lambda seed: examples(additions, 10 + seed))
    obvious = per_second(lambda seed: obvious_additions(additions, seed))
    print(f"text samples a second, all 53 tasks:      {everything:>9,.0f}   (released code, as reported: 3,600)")
    print(f"additions a second: lab {ours:,.0f}, standard library {obvious:,.0f}, ratio {ours / obvious:.2f}")

    draw = random.Random(0)
    predictions = []
    for item in examples(cells, 99):
        text = item.completion
        if draw.random() < 0.5:  # half of the answers get one digit wrong
            place = draw.choice([i for i, character in enumerate(text) if character.isdigit()])
            text = text[:place] + draw.choice("0123456789") + text[place + 1 :]
        kind = TASKS[f"{item.problem.task}_{item.problem.representation}"].answer
        predictions.append((text, item.problem.answer, kind))
    extracted = [(extract(text, kind, "strict"), truth, kind) for text, truth, kind in predictions]
    scoring = per_second(lambda _: [score(*item) for item in extracted])
    both = per_second(
        lambda _: [score(extract(text, kind, "strict"), truth, kind) for text, truth, kind in predictions]
    )
    print(f"predictions scored a second:              {scoring:>9,.0f}   (released code, as reported: 91,000)")
    print(f"predictions read and scored a second:     {both:>9,.0f}")


if __name__ == "__main__":
    main()
