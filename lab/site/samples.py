"""Writes the samples of a run as side files: a directory of all samples, and chunks of up to 200, which are loaded on
demand.

The directory has the task, length and outcome of each sample, with one character for an outcome, so that hundreds of
thousands of samples can be filtered without loading them. A text of more than LONG characters is shortened in its
chunk, and is complete in a file of its own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from lab.benchmarks.nupa import summary
from lab.numbers.representations import Integer, Representation, split_parts
from lab.numbers.tasks import TASKS
from lab.numbers.taxonomy import INTEGER, classify
from lab.numbers.taxonomy import OUTCOMES as OUTCOMES_OF_SUMS
from lab.site.scripts import write_script
from lab.site.series import SUMS
from lab.text.answers import ALL_READINGS

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

CHUNK = 200
CHUNK_CHARACTERS = 1_000_000
LONG = 10_000
KEPT = 2_000
"""The number of characters of such a long text that its chunk contains."""
FACT = 300
"""The maximum number of characters in a fact, such as an operand."""

_TOLD = {"index", "task", "task_key", "representation", "length", "digits", "prompt", "text", "reasoning", "answer"}
_TOLD |= {*ALL_READINGS, "outcome", "given", "exact_match", "asked", "success", "digit_match", "dlength", "api_error"}
_TOLD |= {"error", "model"}
"""Fields that have a place of their own on a card; the other fields are its facts."""


class Alignment(NamedTuple):
    """The digits of the right answer and of a given one, aligned in columns; a blank stands for a missing digit."""

    truth: str
    given: str


def write(name: str, samples: Iterable[Any], folder: Path, benchmark: str = "") -> dict[str, Any] | None:
    """Writes the samples below `folder`/`name`, and returns what the page should know; None if there are no samples.

    The page should know n, the digest of the problems, how many questions failed at the endpoint, the outcomes by task
    and length, and how many records were not samples.

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
    groups = [[*key, len(list(members))] for key, members in groupby(kept, cell)]
    found = [outcome(sample) for sample in kept]
    letters = {kind: str(index) for index, kind in enumerate(OUTCOMES)}
    starts: list[int] = []
    texts = 0
    chunk: list[dict[str, Any]] = []
    size = 0
    for index, (sample, ended) in enumerate(zip(kept, found, strict=True)):
        if not chunk:
            starts.append(index)
        shown = card(sample, ended)
        for key in ("prompt", "text", "reasoning"):
            if len(shown[key] or "") > LONG:
                write_script(f"{name}/text-{texts}", shown[key], folder)
                shown[key] = {"start": shown[key][:KEPT], "characters": len(shown[key]), "file": f"{name}/text-{texts}"}
                texts += 1
            else:
                size += len(shown[key] or "")
        chunk.append(shown)
        if len(chunk) == CHUNK or size > CHUNK_CHARACTERS or index == len(kept) - 1:
            write_script(f"{name}/{len(starts) - 1}", chunk, folder)
            chunk, size = [], 0
    directory = {"groups": groups, "outcomes": "".join(letters[kind] for kind in found), "starts": starts}
    write_script(f"{name}/directory", directory, folder)
    said = {"n": len(kept), "problems": digest(kept), "failed": found.count("api_error")}
    return said | {"errors": by_length(kept, found), "left_out": len(records) - len(kept)}


def digest(samples: Iterable[Sample]) -> str:
    """A fingerprint of the problems. Two samples files have the same one if they ask the same problems in the same
    order."""
    problems = [
        (*cell(sample), *(str(sample.get(key)) for key in ("index", "a", "b", "asked", "answer"))) for sample in samples
    ]
    return sha256(repr(problems).encode()).hexdigest()[:16]


def by_length(samples: Sequence[Sample], outcomes: Sequence[str]) -> dict[str, dict[int, dict[str, int]]]:
    """How often each outcome occurred, by task and length."""
    counts: dict[str, dict[int, Counter[str]]] = {}
    for sample, ended in zip(samples, outcomes, strict=True):
        task, length = cell(sample)
        counts.setdefault(task, {}).setdefault(length, Counter())[ended] += 1
    return {task: {length: dict(found) for length, found in lengths.items()} for task, lengths in counts.items()}


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


def card(sample: Sample, ended: str) -> dict[str, Any]:
    """What is shown of one sample, with complete texts."""
    read = {name: sample[name] for name in ALL_READINGS if isinstance(sample.get(name), dict)} or {"strict": sample}
    given = {name: found.get("given") for name, found in read.items()}
    reading = next((name for name, text in given.items() if text is not None), None)
    answer = str(sample["answer"])
    aligned = align(str(given[reading]), answer, _answer_form(sample)) if reading else None
    facts = {key: value for key, value in sample.items() if key not in _TOLD and value not in (None, "")}
    strict = read.get("strict", sample)
    facts |= {key: strict[key] for key in ("digit_match", "dlength") if key in strict}
    return {
        "index": sample["index"],
        "place": cell(sample),
        "outcome": ended,
        "prompt": _prompt(sample.get("prompt")),
        "text": str(sample.get("text", "")),
        "reasoning": str(sample.get("reasoning") or ""),
        "error": str(sample.get("api_error") or "")[:FACT],
        "answer": answer[:LONG],
        "given": {name: None if text is None else str(text)[:LONG] for name, text in given.items()},
        "aligned": aligned and {"reading": reading, "truth": aligned.truth[:LONG], "given": aligned.given[:LONG]},
        "facts": {key: _short(value) for key, value in facts.items()},
    }


def align(given: str, truth: str, form: Representation) -> Alignment | None:
    """Aligns two numbers part by part, as digit match does (lab/numbers/metrics.py); None if one is not of this form.

    A sign, which no form allows, gets a column of its own before an integer.
    """
    signs = [text[:1] if form is Integer and text[:1] in "+-" else "" for text in (truth, given)]
    try:
        parts = [split_parts(text[len(sign) :], form) for text, sign in zip((truth, given), signs, strict=True)]
    except ValueError:
        return None
    # both texts have the same separators
    separators = [character for character in truth if character in "./e"]
    columns: list[str] = [sign.rjust(max(map(len, signs))) for sign in signs]
    for index, (true, got) in enumerate(zip(*parts, strict=True)):
        width = max(len(true), len(got))
        if index:
            columns = [text + separators[index - 1] for text in columns]
        pad = str.ljust if form.alignment[index] == "left" else str.rjust
        columns = [text + pad(part, width) for text, part in zip(columns, (true, got), strict=True)]
    return Alignment(*columns)


def _answer_form(sample: Sample) -> Representation:
    key = cell(sample)[0]
    return Integer if key in SUMS or key not in TASKS else TASKS[key].answer


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


def _prompt(prompt: Any) -> str | None:
    if isinstance(prompt, list):
        return "\n\n".join(f"{message.get('role')}: {message.get('content')}" for message in prompt)
    return None if prompt is None else str(prompt)


def _short(value: Any) -> Any:
    return value if isinstance(value, int | float) else str(value)[:FACT]
