"""A published file as evalchemy and MarinSkyRL see it: texts by stratum, which is a task with a number of digits.

Within its stratum, a text is identified by its SHA-256 digest. What they call a length bucket is the paper's range, S,
M, L or XL, except that 21 digits count as XL for tasks that end there.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from lab.errors import TaskError
from lab.numbers.tasks import EASY, HARD
from lab.user_files import read_json

SOURCE = "HaotongYang/NUPA_text"
"""The dataset that both projects read, test.json at revision 01e3831ec00dfd618a77d9f6fe7fc0d327ad16d7: 2,387,501 texts,
44 tasks, 2,391 strata."""

Texts: TypeAlias = Mapping[str, Mapping[str, list[str]]]
"""{task: {digits: [text, ...]}}, in the order of the file."""


class Origin(TypedDict):
    """What both projects record about where a text is from."""

    task_name: str
    """Its published name, such as add_Integer_Integer_Integer."""
    operation: str
    answer_format: str
    digit: int
    """The digits of its stratum."""
    length_bucket: str


class Facts(Origin):
    """What both projects record about a text besides its identity."""

    prompt: str
    answer: str


def read(path: Path) -> Texts:
    """The texts of a published file, unchanged: answers are not computed anew.

    Raises TaskError if the file cannot be read or has another layout.
    """
    texts = read_json(path, TaskError)
    if not isinstance(texts, dict) or not all(map(_are_groups, texts.values())):
        raise TaskError(f"{path}: does not have the layout {{task: {{digits: [text, ...]}}}}")
    return texts


def _are_groups(groups: Any) -> bool:
    return isinstance(groups, dict) and all(
        digits.isdecimal() and isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        for digits, texts in groups.items()
    )


def digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def facts(task: str, digits: int, group: Iterable[str], text: str) -> Facts:
    """The facts of a text.

    Args:
        task: its published name, such as add_Integer_Integer_Integer.
        digits: the digits of its stratum.
        group: the digits of all strata of the task, which decide where its ranges end.
        text: the prompt with its answer.

    Raises TaskError if the text has no "=" before an answer.
    """
    prompt, sign, answer = str(text).partition("=")
    if not sign:
        raise TaskError(f"{task}, {digits} digits: no question and answer: {str(text)[:160]!r}")
    return {
        "task_name": task,
        "operation": _operation(task),
        "answer_format": answer_format(task),
        "digit": digits,
        "length_bucket": _range(digits, max(map(int, group))),
        "prompt": f"{prompt.rstrip()} =",
        "answer": answer.strip(),
    }


def answer_format(task: str) -> str:
    """The last word of a task's name; "int", a short integer, counts as Integer."""
    last = task.rpartition("_")[2]
    return "Integer" if last == "int" else last


def _operation(task: str) -> str:
    """The first word of a task's name, or the first two if one alone would name another operation."""
    first, *rest = task.split("_")
    two = rest and (first in ("digit", "get", "to") or rest[0] in ("easy", "hard"))
    return f"{first}_{rest[0]}" if two else first


def _range(digits: int, longest: int) -> str:
    ranges = (HARD if longest <= 21 else EASY).ranges
    return next((name for name, lengths in ranges.items() if digits <= lengths[-1]), "XL")
