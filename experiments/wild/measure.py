"""Asks a model of two readings every case of a file, and counts.

    python -m experiments.wild.measure model=FOLDER cases=FILE out=FOLDER only=sums,none tokens=12

A case is a line of JSON: its cell, its text, and its answer as a fraction, or null if nothing is asked. A case that
asks is right if the first number that is computed is its answer; one that does not is false if any number is computed
among the next `tokens`. Each line of FOLDER/samples.jsonl says what came out; cases that are there already are not
asked again. The table is printed, and written to FOLDER/results.csv.
"""

import csv
import json
import sys
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from lab.numbers.statistics import wilson
from lab.second_reading.model import Computed, TwoReadings
from lab.second_reading.saving import load

ROOM = 28
"""How many tokens a model may write before it computes the number that is asked for."""


def asked(model: TwoReadings, case: dict[str, Any], tokens: int) -> dict[str, Any]:
    """What came out of a case."""
    prompt = model.tokenizer.encode(case["text"], add_special_tokens=False)
    budget = tokens if case["answer"] is None else ROOM
    found = model.continued(prompt, budget, {model.tokenizer.eos_token_id}, lambda new: bool(new.computed))
    first = found.computed[0] if found.computed else None
    facts = {
        "cell": case["cell"],
        "text": shortened(case["text"]),
        "written": shortened(model.tokenizer.decode(found.tokens)),
        "question": said(first) if first else None,
        "chance": round(max(found.chances, default=0), 4),
    }
    if case["answer"] is None:
        return facts | {"false": first is not None}
    answer = Fraction(case["answer"])
    return facts | {
        "read": first is not None and exactly(first) == answer,
        "right": first is not None and first.answer.value() == answer,
    }


def said(first: Computed) -> list[str]:
    signed = zip(first.question.signs, first.question.numbers, strict=True)
    return [first.question.asked, *(("-" if sign < 0 else "") + shortened(text) for sign, text in signed)]


def shortened(text: str) -> str:
    return text if len(text) < 600 else text[:200] + " ... " + text[-200:]


def exactly(first: Computed) -> Fraction:
    """The right answer to the question that was read."""
    signed = zip(first.question.numbers, first.question.signs, strict=True)
    values = [Fraction(text.replace(",", "")) * sign for text, sign in signed]
    return {"sum": sum, "larger": max, "smaller": min, "distance": lambda pair: abs(pair[0] - pair[1])}[
        first.question.asked
    ](values)


def table(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in samples:
        groups[one["cell"]].append(one)
    return [_row(cell, part) for cell, part in groups.items()]


def _row(cell: str, part: list[dict[str, Any]]) -> dict[str, Any]:
    key = "false" if "false" in part[0] else "right"
    hits, n = sum(one[key] for one in part), len(part)
    found = wilson(hits, n)
    shares = {"share": hits / n, "low": found.low, "high": found.high}
    row = {"cell": cell, "counts": key, "hits": hits, "n": n} | {name: round(one, 4) for name, one in shares.items()}
    return row | ({"read": sum(one["read"] for one in part)} if key == "right" else {"read": ""})


def main(given: dict[str, str]) -> None:
    out = Path(given["out"])
    out.mkdir(parents=True, exist_ok=True)
    lines = out / "samples.jsonl"
    samples = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    known = {(one["cell"], one["index"]) for one in samples}
    cases = [json.loads(line) for line in Path(given["cases"]).read_text().splitlines()]
    model = load(Path(given["model"]), "auto")
    model.threshold = float(given.get("threshold", model.threshold))
    model.likely = float(given.get("likely", model.likely))
    counts: dict[str, int] = defaultdict(int)
    for case in cases:
        index = counts[case["cell"]]
        counts[case["cell"]] += 1
        wanted = "only" not in given or case["cell"] in given["only"].split(",")
        if wanted and (case["cell"], index) not in known and index < int(given.get("most", 10**9)):
            samples.append({"index": index, **asked(model, case, int(given.get("tokens", 12)))})
            with lines.open("a") as file:
                file.write(json.dumps(samples[-1]) + "\n")
    with (out / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["cell", "counts", "hits", "n", "share", "low", "high", "read"])
        writer.writeheader()
        for row in table(samples):
            writer.writerow(row)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(dict(word.split("=", 1) for word in sys.argv[1:]))
