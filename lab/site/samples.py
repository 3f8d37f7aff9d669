"""Writes the samples of a run as side files: a directory of all samples, and chunks, which are loaded on demand.

The directory has the task, length and outcome of each sample, with one character for an outcome, so that a million
samples can be filtered without loading them. A chunk has the samples as the run recorded them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from lab.benchmarks.nupa import summary
from lab.drawing.tables import counted
from lab.numbers.taxonomy import INTEGER, classify
from lab.numbers.taxonomy import OUTCOMES as OUTCOMES_OF_SUMS
from lab.site.scripts import as_json, write_literal, write_script

Sample = Mapping[str, Any]

OUTCOMES = {
    "correct": "right",
    "carry_1d": "a run of digits too high",
    "sub_1d": "a run of digits too low",
    "order_2d": "two digits swapped",
    "value_nd": "several digits wrong",
    "other_form": "right value, other form",
    "wrong": "wrong",
    "parse_error": "no number found",
    "api_error": "endpoint failed",
}
assert set(OUTCOMES_OF_SUMS) <= set(OUTCOMES)

CHUNK_CHARACTERS = 200_000
"""A chunk ends with the sample that makes it longer than this."""


class Written(NamedTuple):
    """What the page knows of a set of samples without loading it."""

    n: int
    problems: str
    """The digest of the problems."""
    outcomes: dict[str, dict[int, dict[str, int]]]
    """How often each outcome occurred, by task and length."""
    notes: list[str]


def write(name: str, samples: Iterable[Any], folder: Path, benchmark: str = "") -> Written | None:
    """Writes the samples below `folder`/`name`; None if there are none.

    Args:
        name: the name of the side files.
        samples: the records of a samples file.
        folder: the folder of the site.
        benchmark: used as the task of samples that do not name one.
    """
    records = list(samples)
    kept = [_with_task(record, benchmark) for record in records if _is_sample(record)]
    if not kept:
        return None
    kept.sort(key=lambda sample: (*cell(sample), sample["index"]))
    found = [outcome(sample) for sample in kept]
    starts = []
    for start, literals in _chunks(kept):
        write_literal(f"{name}/{len(starts)}", f"[{','.join(literals)}]", folder)
        starts.append(start)
    letters = {kind: str(index) for index, kind in enumerate(OUTCOMES)}
    groups = [[*key, len(list(members))] for key, members in groupby(kept, cell)]
    directory = {"groups": groups, "outcomes": "".join(letters[kind] for kind in found), "starts": starts}
    write_script(f"{name}/directory", directory, folder)
    return Written(len(kept), digest(kept), by_length(kept, found), _notes(len(records) - len(kept), found))


def _chunks(samples: Sequence[Sample]) -> Iterator[tuple[int, list[str]]]:
    """The index of the first sample of each chunk, and its samples as literals."""
    start, size, literals = 0, 0, list[str]()
    for index, sample in enumerate(samples):
        literals.append(as_json(sample))
        size += len(literals[-1])
        if size > CHUNK_CHARACTERS or index == len(samples) - 1:
            yield start, literals
            start, size, literals = index + 1, 0, []


def _notes(left_out: int, outcomes: Sequence[str]) -> list[str]:
    notes = [f"{counted(left_out, 'line')} without a sample"] if left_out else []
    if failed := outcomes.count("api_error"):
        notes.append(f"{failed} of {counted(len(outcomes), 'question')} have no answer")
    return notes


def digest(samples: Iterable[Sample]) -> str:
    """A fingerprint of the problems. Two samples files have the same one if they ask the same problems in the same
    order."""
    problems = [
        (*cell(sample), *(str(sample.get(key)) for key in ("index", "a", "b", "asked", "answer"))) for sample in samples
    ]
    return sha256(repr(problems).encode()).hexdigest()[:16]


def by_length(samples: Sequence[Sample], outcomes: Sequence[str]) -> dict[str, dict[int, dict[str, int]]]:
    """How often each outcome occurred, by task and length."""
    counts: dict[str, dict[int, dict[str, int]]] = {}
    for (task, length, ended), n in Counter(zip(*zip(*map(cell, samples), strict=True), outcomes, strict=True)).items():
        counts.setdefault(task, {}).setdefault(length, {})[ended] = n
    return counts


def cell(sample: Sample) -> tuple[str, int]:
    """The task and the length of a sample."""
    return sample["task_key"], sample["length"]


def outcome(sample: Sample) -> str:
    """The outcome of a sample in the strict reading, one of OUTCOMES.

    For integer sums and differences, it is the class of the error (lab/numbers/taxonomy.py); for other tasks, it is
    right or wrong. A sum with the right value but another text, such as 007, is not an exact match and has an outcome
    of its own.
    """
    if sample.get("api_error"):
        return "api_error"
    if "outcome" in sample:
        return sample["outcome"] if sample["outcome"] in OUTCOMES else "wrong"
    read = sample["strict"] if isinstance(sample.get("strict"), dict) else sample
    given = read.get("given")
    if read.get("exact_match") or read.get("success"):
        return "correct"
    if given is None:
        return "parse_error"
    texts = str(given), str(sample["answer"])
    if cell(sample)[0] in summary.CLASSIFIED and all(map(INTEGER.fullmatch, texts)):
        kind = classify(*texts)
        return "other_form" if kind == "correct" else kind
    return "wrong"


def _with_task(sample: Sample, benchmark: str) -> dict[str, Any]:
    """The sample with the key of its task. Samples of the sums benchmarks name no task, and their length is called
    `digits`. Those of own questions have neither; their length is the number of digits in the answer."""
    if "task" in sample:
        return {**sample, "task_key": f"{sample['task']}_{sample['representation']}"}
    digits = sum(map(str.isdigit, str(sample["answer"]))) if "asked" in sample else sample["digits"]
    return {**sample, "task_key": benchmark, "length": digits}


def _is_sample(record: Any) -> bool:
    """Whether a record has the fields of a sample. A file on disk may contain anything."""
    if not isinstance(record, dict) or not isinstance(record.get("index"), int) or "answer" not in record:
        return False
    if "asked" in record:  # one of the user's own questions
        return True
    size = record.get("length" if "task" in record else "digits")
    return isinstance(size, int) and ("task" not in record or "representation" in record)
