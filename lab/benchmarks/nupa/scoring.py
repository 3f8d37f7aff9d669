"""The NUPA test (Number Cookbook, section 2): how its questions are asked in a wording, and how answers are scored."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Self

from lab.benchmarks.benchmark import Benchmark
from lab.benchmarks.nupa import summary
from lab.benchmarks.nupa.problems import problems_of, solved_before
from lab.benchmarks.results import NupaSummary, Reading, Sample, Scored
from lab.config.evaluation import NupaConfig
from lab.config.notation import FormatConfig
from lab.config.schema import chosen
from lab.engines.engine import Completion, Engine, Request
from lab.errors import TaskError
from lab.numbers.metrics import score
from lab.numbers.sampling import Problem, task_of
from lab.numbers.tasks import TASKS, Task
from lab.numbers.taxonomy import classify
from lab.text import formats
from lab.text.answers import ALL_READINGS
from lab.text.notation import Notation
from lab.text.wording import NotatedWording, Wording, wording_of


class Nupa(Benchmark[Problem]):
    """Problems of NUPA. All models and wordings are asked them in the same order."""

    def __init__(
        self, problems: Sequence[Problem], wording: Wording | None = None, surplus_tokens: int | None = None
    ) -> None:
        """
        Args:
            problems: what is asked, in this order.
            wording: how questions are asked and answers are read; raw text if not given.
            surplus_tokens: tokens allowed beyond the longest answer of a task and length; by default, those of the
                wording.
        """
        self.problems, self.wording = problems, wording or Wording()
        self.surplus = self.wording.surplus_tokens if surplus_tokens is None else surplus_tokens
        self.left_out: Counter[str] = Counter()

    @classmethod
    def from_config(cls, config: NupaConfig, seed: int, format: FormatConfig | None = None) -> Self:
        """The benchmark of a config, for a model that expects the number format `format`.

        Raises TaskError if a published file cannot be used, if the format cannot write a task, or if it does not work
        with the config's setting.
        """
        problems = problems_of(config, seed)
        if format is None or format == FormatConfig():
            wording = wording_of(config.setting, config.rules, solved_before(problems, config.shots, seed))
        elif config.setting != "base" or config.shots:
            raise TaskError("a model tuned in its own number format needs benchmark.setting=base and shots=0")
        else:
            wording = formats.written(format, chosen(config.tasks))
        return cls(problems, wording, config.surplus_tokens)

    @classmethod
    def in_notation(cls, config: NupaConfig, seed: int, notation: Notation) -> Self:
        """The benchmark of a config, for a model that reads only its own notation.

        Raises TaskError if the notation cannot write one of the tasks, or if the config asks in another setting.
        """
        known = [task.key for task in notation.tasks if task.key in TASKS]
        if not known:
            raise TaskError("this model knows no task of NUPA: use lab ask, or lab.evaluate in Python")
        if {task.key for task in chosen(config.tasks)} - {*known}:
            raise TaskError(f"this model knows only {', '.join(known)}: use benchmark.tasks=[{','.join(known)}]")
        if config.setting != "base" or config.shots:
            raise TaskError("a model from scratch needs benchmark.setting=base and shots=0")
        return cls(problems_of(config, seed), NotatedWording(notation), config.surplus_tokens)

    def within_window(self, engine: Engine) -> Self:
        """Drops the problems whose prompt and completion need more tokens than `wording.window`, and returns itself.

        `left_out` counts the dropped problems by task. All problems stay if the engine cannot count tokens. Raises
        TaskError if none would be left.
        """
        window = self.wording.window
        if window is not None:
            needs = [engine.tokens_needed(*self.wording.example(item)[:2]) or 0 for item in self.problems]
            if min(needs) > window:
                raise TaskError(f"no problem fits a window of {window} tokens; the shortest needs {min(needs)}")
            fits = [need <= window for need in needs]
            pairs = list(zip(self.problems, fits, strict=True))
            self.left_out.update(task_of(item).key for item, fitting in pairs if not fitting)
            self.problems = [item for item, fitting in pairs if fitting]
        return self

    @property
    def note(self) -> str:
        if not self.left_out:
            return ""
        return f"left out because they need more than {self.wording.window} tokens: {dict(self.left_out)}"

    def requests(self, count_tokens: Callable[[str], int] = len) -> list[Request]:
        """A request per problem, in one group per task. The token budget fits the longest answer of the task and
        length."""
        longest: dict[tuple[str, int], int] = defaultdict(int)
        for item in self.problems:
            cell = task_of(item).key, item.length
            longest[cell] = max(longest[cell], count_tokens(self.wording.completion(item)))
        return [self._request(item, longest[task_of(item).key, item.length]) for item in self.problems]

    def _request(self, item: Problem, answer_tokens: int) -> Request:
        task = task_of(item)
        request = Request(self.wording.prompt(item), answer_tokens + self.surplus, task.key)
        if not self.wording.decides:
            return request
        return request._replace(decided=partial(self.wording.decided, representation=task.answer))

    def score(self, index: int, completion: Completion) -> Scored:
        """The score in every reading; for integer sums and differences, with the class of the error."""
        item = self.problems[index]
        task = task_of(item)
        torn = self.wording.whole and not completion.shows_all_words
        given = {
            reading: None if torn else self.wording.extract(completion.text, task.answer, reading)
            for reading in ALL_READINGS
        }
        counts = completion.ended or not self.wording.whole
        scored = {answer: _reading(answer, item, task, counts) for answer in set(given.values())}
        readings = {reading: scored[answer] for reading, answer in given.items()}
        return Scored(readings, self.wording.remarks(completion.text, item))

    def summarize(self, samples: Sequence[Sample]) -> NupaSummary:
        return summary.summarize(samples, self.left_out)


def _reading(given: str | None, item: Problem, task: Task, counts: bool) -> Reading:
    """The score of an answer; `counts`: whether it can be an exact match."""
    scored = score(given, item.answer, task.answer)
    scored = scored._replace(exact_match=scored.exact_match and counts)
    if task.key in summary.CLASSIFIED:
        scored = scored._replace(error="parse_error" if given is None else classify(given, item.answer))
    return Reading(given, *scored)
