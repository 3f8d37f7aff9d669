"""Tests the model of two readings in wordings that no training has seen.

    python -m experiments.wild.measure second=FILE readers=FILE,FILE out=FOLDER only=none,sums_8

Every cell is a list of prompts that depends on its name alone. Each line of FOLDER/samples.jsonl is a prompt with what
came out; prompts that are there already are not asked again. The table is printed and written to FOLDER/results.csv.
"""

import csv
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch

from experiments.wild import held_out
from experiments.wild.problems import ASKED, Prompt, Style, prompt
from experiments.wild.reader import Reader
from experiments.wild.second_reading import SecondReading
from experiments.wild.two_readings import TwoReadings
from lab.config.schema import ModelConfig
from lab.models.pretrained import load
from lab.numbers.statistics import wilson

SUMS = ("old_sums", "old_sums", "plain", "framed", "table", "two_kinds")
"""The kinds of wordings in which long sums are asked for."""
STRATA = ("uniform", "unequal", "nines and a short number", "long chain")


class Case(NamedTuple):
    prompt: Prompt
    stratum: str


def strata_pair(stratum: str, length: int, rng: Random) -> tuple[str, str]:
    """Two numbers; the longer one has `length` digits."""
    one = rng.randrange(10 ** (length - 1), 10**length)
    other = rng.randrange(10 ** (length - 1), 10**length)
    if stratum == "unequal":
        other = rng.randrange(10 ** rng.randint(1, max(1, length // 2)))
    if stratum == "nines and a short number":
        one, other = 10**length - 1, rng.randint(1, 99)
    if stratum == "long chain":  # all digits add up to nine, but for a carry that starts at the lowest place
        one = int("".join(str(rng.randint(1, 8)) for _ in range(length)))
        other = 10**length - 1 - one + rng.randint(0, 1)
    pair = [str(one), str(other)]
    rng.shuffle(pair)
    return pair[0], pair[1]


def sums(length: int, count: int, split: str = "test") -> Iterator[Case]:
    for index in range(count):
        rng, stratum = Random(f"sums {length} {index}"), STRATA[index % len(STRATA)]
        pair = dict(zip("ab", strata_pair(stratum, length, rng), strict=True))
        numbers = pair | {"c": str(rng.randrange(10 ** min(length, 8)))}
        yield Case(prompt(split, rng, SUMS[index // len(STRATA) % len(SUMS)], PLAIN, "sum", numbers), stratum)


PLAIN = Style(grouped=0, decimals=0, signs=0)


def asked_in(
    kinds: tuple[str, ...], asked: tuple[str, ...], style: Style, count: int, split: str = "test"
) -> Iterator[Case]:
    for index in range(count):
        rng, kind, what = (
            Random(f"{kinds} {asked} {style} {index}"),
            kinds[index % len(kinds)],
            asked[index // len(kinds) % len(asked)],
        )
        yield Case(prompt(split, rng, kind, style, what), f"{kind} {what}")


def signed() -> Iterator[Case]:
    """Sums with a negative number."""
    cases = asked_in(("plain",), ("sum",), Style(grouped=0, decimals=0, signs=0.5), 400)
    return islice((case for case in cases if re.search("-[0-9]", case.prompt.text)), 48)


def ordinary() -> Iterator[Case]:
    for text in held_out.ORDINARY:
        yield Case(Prompt(text, (), 0, None, "ordinary", text), "ordinary")


def long(length: int) -> Style:
    return Style((length, length), 0, 0, 0, False)


NO_SUM = (
    "nothing",
    "nothing",
    "framed",
    "framed",
    "plain",
    "plain",
    "table",
    "chat",
    "changed",
    "two_of_three",
    "three",
    "three_plain",
    "two_kinds",
    "text",
)
OPERATIONS = ("minus", "distance", "larger", "smaller")
CELLS: dict[str, Callable[[], Iterator[Case]]] = {
    "none": partial(asked_in, NO_SUM, ("none",), Style(), 560),
    "ordinary": ordinary,
    "sums_3": partial(sums, 3, 96),
    "sums_8": partial(sums, 8, 96),
    "sums_20": partial(sums, 20, 96),
    "sums_100": partial(sums, 100, 96),
    "sums_1000": partial(sums, 1000, 24),
    "pairs": partial(asked_in, ("framed",), ("sum", "distance", "larger", "smaller"), PLAIN, 96),
    "operations": partial(asked_in, ("plain", "table", "framed"), OPERATIONS[1:], PLAIN, 72),
    "minus": partial(asked_in, ("plain", "table", "changed"), ("minus",), PLAIN, 48),
    "operations_20": partial(asked_in, ("plain", "framed"), OPERATIONS[1:], long(20), 72),
    "minus_20": partial(asked_in, ("plain", "changed"), ("minus",), long(20), 48),
    "three": partial(asked_in, ("three", "three_plain"), ("sum", "larger", "smaller"), PLAIN, 72),
    "three_20": partial(asked_in, ("three", "three_plain"), ("sum",), long(20), 48),
    "two_of_three": partial(asked_in, ("two_of_three",), ("sum", "distance", "larger", "smaller"), PLAIN, 48),
    "two_kinds": partial(asked_in, ("two_kinds",), ("sum",), PLAIN, 48),
    "changed": partial(asked_in, ("changed",), ("sum", "minus"), PLAIN, 48),
    "grouped": partial(asked_in, ("plain", "old_sums", "framed"), ("sum",), Style(grouped=1, decimals=0, signs=0), 48),
    "decimals": partial(asked_in, ("plain", "old_sums", "framed"), ("sum",), Style(grouped=0, decimals=1, signs=0), 48),
    "decimals_20": partial(asked_in, ("plain", "old_sums"), ("sum",), Style((20, 20), 0, 1, 0, False), 48),
    "signs": signed,
    "valid_none": partial(asked_in, NO_SUM, ("none",), Style(), 140, "validation"),
    "valid_sums": partial(sums, 8, 48, "validation"),
    "valid_mixed": partial(asked_in, ("plain", "table", "changed"), ("sum", "minus"), PLAIN, 48, "validation"),
    "chat": partial(asked_in, ("chat",), ("sum", "minus", "distance", "larger", "smaller"), PLAIN, 50),
}


def asked(model: TwoReadings, case: Case, tokens: int) -> dict[str, Any]:
    """What came out of a prompt. A prompt is right if the first number that is computed is the answer; one that asks
    for nothing is continued by so many `tokens`."""
    one = case.prompt
    text = one.text.rstrip(" ") if one.kind != "text" else one.text
    written = model.generate(text, tokens if one.asked == 0 else 28, stop_after_number=True)
    first = written.computed[0] if written.computed else None
    found = {
        "text": text if len(text) < 600 else text[:200] + " ... " + text[-200:],
        "written": written.text[:200],
        "stratum": case.stratum,
        "asked": ASKED[one.asked],
    }
    found |= {
        "question": None
        if first is None
        else [
            first.question.asked,
            *(
                f"{'-' if sign < 0 else ''}{number[:12]}"
                for number, sign in zip(first.question.numbers, first.question.signs, strict=True)
            ),
        ]
    }
    found |= {"chance": round(max(written.chances, default=0), 4)}
    if one.asked == 0:
        return found | {"false": first is not None}
    expected = computed_exactly(first) if first else None
    return found | {
        "computed": first is not None,
        "read": expected == one.answer,
        "right": first is not None and first.answer.value() == one.answer,
    }


def computed_exactly(first: Any) -> Fraction | None:
    """The right answer to the question that was read."""
    values = [
        Fraction(number.replace(",", "")) * sign
        for number, sign in zip(first.question.numbers, first.question.signs, strict=True)
    ]
    return {"sum": sum(values), "distance": abs(values[0] - values[1]), "larger": max(values), "smaller": min(values)}[
        first.question.asked
    ]


def opened(second_file: Path, reader_files: list[Path], threshold: float, likely: float) -> TwoReadings:
    model, tokenizer = load(ModelConfig(name="smollm2-135m-instruct"))
    second = SecondReading(model, tokenizer)
    saved = torch.load(second_file, weights_only=False)
    second.load_state_dict(saved.get("reading", saved))
    readers = []
    for file in reader_files:
        weights = torch.load(file)
        readers.append(Reader(model.config.hidden_size, size=weights["from_end.weight"].shape[1]))
        readers[-1].load_state_dict(weights)
    return TwoReadings(model, tokenizer, readers, second.eval(), threshold, likely)


def table(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for one in samples:
        groups[one["cell"], "all"].append(one)
        groups[one["cell"], one["stratum"]].append(one)
    rows = []
    for (cell, stratum), part in groups.items():
        key = "false" if "false" in part[0] else "right"
        hits, n = sum(one[key] for one in part), len(part)
        found = wilson(hits, n)
        more = {name: sum(one[name] for one in part) for name in ("computed", "read")} if key == "right" else {}
        rows.append(
            {
                "cell": cell,
                "stratum": stratum,
                "counts": key,
                "hits": hits,
                "n": n,
                "share": round(hits / n, 4),
                "low": round(found.low, 4),
                "high": round(found.high, 4),
                **more,
            }
        )
    return rows


def main(given: dict[str, str]) -> None:
    out = Path(given["out"])
    out.mkdir(parents=True, exist_ok=True)
    lines = out / "samples.jsonl"
    samples = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    known = {(one["cell"], one["index"]) for one in samples}
    model = opened(
        Path(given["second"]),
        [Path(name) for name in given["readers"].split(",")],
        float(given.get("threshold", 0.5)),
        float(given.get("likely", 0.5)),
    )
    for cell in given["only"].split(",") if "only" in given else [name for name in CELLS if "valid" not in name]:
        for index, case in enumerate(CELLS[cell]()):
            if (cell, index) not in known and int(given.get("first", 0)) <= index < int(given.get("most", 10**9)):
                samples.append({"cell": cell, "index": index, **asked(model, case, int(given.get("tokens", 12)))})
                with lines.open("a") as file:
                    file.write(json.dumps(samples[-1]) + "\n")
        row = table([one for one in samples if one["cell"] == cell])[0]
        print(json.dumps(row), flush=True)
    with (out / "results.csv").open("w", newline="") as file:
        rows = table(samples)
        writer = csv.DictWriter(
            file, ["cell", "stratum", "counts", "hits", "n", "share", "low", "high", "computed", "read"]
        )
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(dict(word.split("=", 1) for word in sys.argv[1:]))
