'''Questions of your own: a Python file says what to ask, and how an answer is read.

    """Roman numerals."""
    YEARS = {"MCMXCIX": "1999", "MMXXIV": "2024"}

    def questions(seed):
        for roman, year in YEARS.items():
            yield f"Which year is {roman}? Answer with the number alone.", year

    def read(text):  # may be left out: then all that the model writes, without white space around it, is the answer
        return text.strip().rstrip(".")

`questions` should yield the same pairs whenever it is called with the same seed, so that a killed run can be resumed.
'''

import importlib.util
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from lab.benchmarks.benchmark import Benchmark
from lab.benchmarks.results import Asked, OwnSummary, Reading, Sample, Scored, answered
from lab.config.evaluation import OwnQuestionsConfig
from lab.drawing.tables import Table, percent
from lab.engines.engine import Completion, Request
from lab.errors import TaskError
from lab.numbers.statistics import wilson
from lab.text.examples import Message


class OwnQuestions(Benchmark[Asked]):
    """A benchmark from a file."""

    def __init__(self, config: OwnQuestionsConfig, seed: int) -> None:
        """
        Args:
            config: the file, and how its questions are asked.
            seed: the argument of the file's `questions`.

        Raises TaskError if the file cannot be used.
        """
        self.config = config
        module = read_file(config.file)
        self.problems = _questions(config.file, module, seed)
        self.read: Callable[[str], str | None] = getattr(module, "read", str.strip)

    def requests(self, count_tokens: Callable[[str], int] = len) -> list[Request]:
        chat = self.config.setting == "chat"
        return [
            Request((Message("user", text),) if chat else text, self.config.max_tokens) for text, _ in self.problems
        ]

    def score(self, index: int, completion: Completion) -> Scored:
        """The reading of an answer. Raises TaskError if the file's `read` fails, or returns no text."""
        try:
            given = self.read(completion.text)
        except (Exception, SystemExit) as error:
            raise TaskError(f"{self.config.file}: read({completion.text!r}) failed: {error!r}") from error
        if not isinstance(given, str | None):
            raise TaskError(f"{self.config.file}: read({completion.text!r}) gave {given!r}; it should be text or None")
        return Scored({"": Reading(given, given == self.problems[index].answer)})

    def summarize(self, samples: Sequence[Sample]) -> OwnSummary:
        came = answered(samples)
        right = sum(sample.right for sample in came)
        return OwnSummary(
            asked=len(samples), answered=len(came), exact_match=wilson(right, len(came)) if came else None
        )


def all_tables(summaries: Mapping[str, OwnSummary]) -> dict[str, Table]:
    """All tables, by file name; summaries are side by side, by label."""
    rows = [
        (label, str(found.asked), str(found.answered), percent(found.exact_match)) for label, found in summaries.items()
    ]
    return {"exact_match": Table("Right answers (95 % interval)", ("model", "asked", "answered", "right %"), rows, 1)}


def in_short(summary: OwnSummary) -> list[str]:
    """One line: the share of right answers."""
    if not summary.exact_match:
        return ["right: no question was answered"]
    return [f"right, % (95 % interval), n={summary.answered}: {percent(summary.exact_match)}"]


def read_file(path: Path) -> ModuleType:
    """The file as a module. Raises TaskError if it cannot be used. Does not call its `questions`."""
    if not os.path.isfile(path) or path.suffix != ".py":  # unlike Path.is_file, False for a name that is too long
        raise TaskError(f"benchmark.file={path}: should be a Python file")
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise TaskError(f"benchmark.file={path}: {error!r}") from error
    if not callable(getattr(module, "questions", None)):
        raise TaskError(f"benchmark.file={path}: should have a function questions(seed)")
    return module


def _has_half_a_pair(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _questions(path: Path, module: ModuleType, seed: int) -> list[Asked]:
    try:
        found: Iterable[Any] = list(module.questions(seed))
    except (Exception, SystemExit) as error:
        raise TaskError(f"benchmark.file={path}: questions({seed}) failed: {error!r}") from error
    for pair in found:
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(text, str) for text in pair)):
            raise TaskError(f"benchmark.file={path}: {pair!r} should be a pair of texts, a question and its answer")
        if any(map(_has_half_a_pair, pair)):
            raise TaskError(f"benchmark.file={path}: {pair!r} has half of a surrogate pair, which is no character")
    if not found:
        raise TaskError(f"benchmark.file={path}: questions({seed}) yields no questions")
    return [Asked(*pair) for pair in found]
