"""The NUPA test (Number Cookbook, section 2): which problems, how an answer is scored, what the scores amount to."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any, Self, TypeAlias

from lab.benchmarks.benchmark import Sample
from lab.benchmarks.nupa.files import read_published
from lab.benchmarks.samples import answered, grouped
from lab.config.evaluation import NupaConfig
from lab.config.notation import FormatConfig
from lab.config.schema import RulesConfig, chosen
from lab.errors import TaskError
from lab.inference.engine import Completion, Engine, Request
from lab.numbers.metrics import (
    METRICS,
    PERFORMANCE_PRESERVING,
    WELL_LEARNED,
    contiguous_passing,
    longest_passing,
    score,
)
from lab.numbers.sampling import Cell, Problem, distinct_problems, problem, task_of
from lab.numbers.splits import unordered
from lab.numbers.statistics import bootstrap_mean, wilson
from lab.numbers.tasks import TASKS, Task
from lab.numbers.taxonomy import classify
from lab.text import rule_following
from lab.text.answers import READINGS, decided, extract
from lab.text.examples import Example, example
from lab.text.formats import TextFormat, opened
from lab.text.settings import Setting, question
from lab.text.trace_errors import first_error

Identity: TypeAlias = tuple[str, str, str]

SURPLUS_TOKENS: dict[Setting, int] = {"base": 8, "chat": 64, "api": 64, "rule_following": 64}
"""Budget beyond the longest answer of a task and length: words before the answer, digits too many, the end."""

DOMAINS = {"S+M": ("S", "M"), "L+XL": ("L", "XL")}
"""In-domain and out-of-domain: the paper trains on S and M, and tests beyond them too."""

SUMS = ("add_integer", "sub_integer")
"""Tasks whose wrong answers have an error class."""

ENOUGH = 20
"""Answers at every length for the longest length that passes a threshold to be more than luck: of 96 lengths with an
answer each, one will be right."""


class Nupa:
    """A `Benchmark`: the same problems, in the same order, for every model and setting."""

    def __init__(
        self,
        problems: Sequence[Problem],
        setting: Setting = "base",
        shots: int = 0,
        surplus_tokens: int | None = None,
        seed: int = 0,
        rules: RulesConfig | None = None,
        written: TextFormat | None = None,
    ) -> None:
        """`rules` are of the setting rule_following: which are followed. `written`: the format of numbers, in the
        setting base without examples."""
        self.problems, self.written = problems, written
        self.rules = (rules or rule_following.LAB_RULES) if setting == "rule_following" else None
        self.left_out: Counter[str] = Counter()
        self.setting: Setting = setting
        self.traced = self.rules is not None and self.rules.detail != "answer"
        self.read_as: Setting = "base" if self.rules and not self.traced else setting
        self.surplus = SURPLUS_TOKENS[self.read_as] if surplus_tokens is None else surplus_tokens
        tasks = {task_of(item).key: task_of(item) for item in problems}
        asked = {_identity(item) for item in problems}
        self.examples = {key: solved_examples(task, shots, seed, asked) for key, task in tasks.items()}

    @classmethod
    def from_config(cls, config: NupaConfig, seed: int, format: FormatConfig | None = None) -> Self:
        """`format`: in which the model is to be asked.

        Raises TaskError when a published file cannot be read or holds none of the config's tasks, and when the format
        cannot carry a task or is not of the setting.
        """
        written = opened(format, chosen(config.tasks)) if format else None
        if written and (config.setting != "base" or config.shots):
            raise TaskError("a model tuned in a number format of its own is asked with benchmark.setting=base, shots=0")
        cells, per_range = config.cells(), config.problems_per_range
        if config.published is None:
            problems = pick_problems(cells, seed, per_range)
        else:
            problems = pick_published(read_published(config.published, {c.task.key for c in cells}), cells, per_range)
        return cls(problems, config.setting, config.shots, config.surplus_tokens, seed, config.rules, written)

    def within_window(self, engine: Engine) -> Self:
        """Itself, without the problems whose rule, followed, needs more tokens than the window; `left_out` counts them
        by task. Where the engine cannot tell, all stay. Raises TaskError when nothing is left.
        """
        if self.rules:
            needs = [engine.tokens_needed(*example(item, self.rules)[:2]) or 0 for item in self.problems]
            fits = [need <= self.rules.window for need in needs]
            if not any(fits):
                raise TaskError(f"no problem fits a window of {self.rules.window} tokens; one needs {min(needs)}")
            pairs = list(zip(self.problems, fits, strict=True))
            self.left_out.update(task_of(item).key for item, fitting in pairs if not fitting)
            self.problems = [item for item, fitting in pairs if fitting]
        return self

    @property
    def note(self) -> str:
        """What a reader of the figures should know beside them; mostly nothing."""
        if not (self.rules and self.left_out):
            return ""
        return f"left out, as they need more than {self.rules.window} tokens: {dict(self.left_out)}"

    def __len__(self) -> int:
        return len(self.problems)

    def requests(self, engine: Engine) -> list[Request]:
        """A group a task, and a budget that the longest answer of the task and length fits in."""
        longest: dict[tuple[str, int], int] = defaultdict(int)
        for item in self.problems:
            cell = task_of(item).key, item.length
            longest[cell] = max(longest[cell], engine.count_tokens(self._example(item).completion))
        return [self._request(item, longest[task_of(item).key, item.length]) for item in self.problems]

    def _example(self, item: Problem) -> Example:
        return self.written.example(item) if self.written else example(item, self.rules)

    def _request(self, item: Problem, answer_tokens: int) -> Request:
        task = task_of(item)
        if self.written:
            done = partial(self.written.decided, representation=task.answer)
            return Request(self._example(item).prompt, answer_tokens + self.surplus, task.key, done)
        asked = question(item, self.setting, self.examples[task.key], self.rules or rule_following.LAB_RULES)
        request = Request(asked, answer_tokens + self.surplus, task.key)
        if isinstance(asked, str):
            return request._replace(decided=partial(decided, representation=task.answer, setting=self.read_as))
        return request

    def facts(self, index: int) -> Sample:
        return self.problems[index]._asdict()

    def score(self, index: int, completion: Completion) -> Sample:
        """The score in both readings; `error` is the class of a sum's error (lab/numbers/taxonomy.py)."""
        item = self.problems[index]
        task = task_of(item)
        readings = {}
        for reading in READINGS:
            if self.written:
                given = self.written.extract(completion.text, task.answer, reading)
            else:
                given = extract(completion.text, task.answer, reading, self.read_as)
            scored = score(given, item.answer, task.answer)
            if task.key in SUMS:
                scored = scored._replace(error="parse_error" if given is None else classify(given, item.answer))
            readings[reading] = {"given": given, **scored._asdict()}
        if self.rules and self.traced:
            expected = rule_following.completion(item, self.rules)
            rule = rule_following.rule(task, self.rules).text
            found = first_error(completion.text, expected, rule, self.rules.detail)
            readings["first_error"] = found and found._asdict()
        return readings

    def summarize(self, samples: Sequence[Sample]) -> dict[str, Any]:
        """Figures by task, in the order of the task table."""
        by_task = grouped(samples, lambda sample: f"{sample['task']}_{sample['representation']}")
        summary = {key: _task_summary(task, by_task[key]) for key, task in TASKS.items() if key in by_task}
        for key in summary.keys() & self.left_out.keys():
            summary[key]["left_out"] = self.left_out[key]
        return summary


def pick_problems(cells: Iterable[Cell], seed: int, per_range: int) -> list[Problem]:
    """The same problems for every model: `per_range` distinct ones of each task's range, evenly over its lengths."""
    return _even(cells, per_range, lambda cell, count: distinct_problems(cell, "test", seed, count))


def pick_published(published: Sequence[Problem], cells: Iterable[Cell], per_range: int) -> list[Problem]:
    """As `pick_problems` does, but the first ones of a file, each once; raises TaskError when there is none."""
    distinct = {_identity(item): item for item in reversed(published)}
    found = grouped(reversed(distinct.values()), lambda item: (task_of(item).key, item.length))
    problems = _even(cells, per_range, lambda cell, count: found.get((cell.task.key, cell.length), [])[:count])
    if not problems:
        raise TaskError("the published file holds no problem of benchmark.tasks at benchmark.lengths")
    return problems


def _even(cells: Iterable[Cell], per_range: int, draw: Callable[[Cell, int], list[Problem]]) -> list[Problem]:
    problems = []
    for members in grouped(cells, lambda cell: (cell.task.key, cell.task.range_of(cell.length))).values():
        for place, cell in enumerate(members):
            count = (place + 1) * per_range // len(members) - place * per_range // len(members)
            problems += draw(cell, count)
    return problems


def solved_examples(task: Task, count: int, seed: int, asked: Set[Identity] = frozenset()) -> list[Problem]:
    """Training problems of as many lengths, evenly spaced from the shortest that is tested to the longest of M.

    None is among those `asked`, as a published question might be.
    """
    shortest, longest = task.tested_lengths[0], task.difficulty.ranges["M"][-1]
    lengths = [shortest + (longest - shortest) * place // max(1, count - 1) for place in range(count)]
    examples = []
    for place, length in enumerate(lengths):
        drawn = (problem(Cell(task, length), "train", seed, index) for index in itertools.count(place))
        examples.append(next(item for item in drawn if _identity(item) not in asked))
    return examples


def _identity(item: Problem) -> Identity:
    """What makes two problems the same question; swapped operands do."""
    return task_of(item).key, *unordered(item.a, item.b)


def _task_summary(task: Task, samples: Sequence[Sample]) -> dict[str, Any]:
    by_range = grouped(samples, lambda sample: task.range_of(sample["length"]))
    domains = {name: [s for part in parts for s in by_range.get(part, [])] for name, parts in DOMAINS.items()}
    by_length = grouped(samples, lambda sample: sample["length"])
    return {
        "ranges": {name: figures(members) for name, members in by_range.items()},
        "domains": {name: figures(members) for name, members in domains.items() if members},
        "lengths": {str(length): figures(by_length[length]) for length in sorted(by_length)},
        "digits": {
            reading: {metric: _digits(by_length, reading, metric) for metric in METRICS} for reading in READINGS
        },
        **({"errors": _errors(by_range)} if task.key in SUMS else {}),
        **({"first_errors": _first_errors(by_range)} if any("first_error" in s for s in samples) else {}),
    }


def figures(samples: Sequence[Sample]) -> dict[str, Any]:
    """Lengths, counts, and each metric in each reading with n and 95 % interval.

    What an endpoint never answered is counted apart; without any answer the metrics are left out.
    """
    scored = answered(samples)
    lengths = sorted({sample["length"] for sample in samples})
    counts = {"lengths": [lengths[0], lengths[-1]], "asked": len(samples), "api_errors": len(samples) - len(scored)}
    if not scored:
        return counts
    return counts | {
        reading: {
            "exact_match": wilson(sum(s[reading]["exact_match"] for s in scored), len(scored))._asdict(),
            **{metric: bootstrap_mean([s[reading][metric] for s in scored])._asdict() for metric in METRICS[1:]},
        }
        for reading in READINGS
    }


def _digits(by_length: Mapping[int, Sequence[Sample]], reading: str, metric: str) -> dict[str, int] | None:
    """Well-learned and performance-preserving digits (A.1.8); None where some length has too few answers to tell."""
    values = {
        length: [sample[reading][metric] for sample in answered(members)] for length, members in by_length.items()
    }
    if min(map(len, values.values())) < ENOUGH:
        return None
    means = {length: sum(members) / len(members) for length, members in values.items()}
    return {
        "well_learned": longest_passing(means, metric, WELL_LEARNED),
        "well_learned_contiguous": contiguous_passing(means, metric, WELL_LEARNED),
        "performance_preserving": longest_passing(means, metric, PERFORMANCE_PRESERVING),
        "performance_preserving_contiguous": contiguous_passing(means, metric, PERFORMANCE_PRESERVING),
    }


def _first_errors(by_range: Mapping[str, Sequence[Sample]]) -> dict[str, dict[str, int]]:
    """How often each kind of line was the first where a rule was left, in each range; "none" where it was not."""
    return {
        name: dict(Counter((sample["first_error"] or {"kind": "none"})["kind"] for sample in answered(members)))
        for name, members in by_range.items()
    }


def _errors(by_range: Mapping[str, Sequence[Sample]]) -> dict[str, dict[str, int]]:
    """How often each class of error came in each range, by strict reading."""
    return {
        name: dict(Counter("api_error" if sample["api_error"] else sample["strict"]["error"] for sample in members))
        for name, members in by_range.items()
    }
