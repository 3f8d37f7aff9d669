"""The types of a benchmark's results (samples, readings and summaries), and how they are written as JSON.

    Sample     one question, its completion, and the score of each reading
    Reading    what one reading takes to be the answer, and how good that answer is
    Scores     the metrics over many readings, each an Estimate
    Figures    the scores of a group of samples, in every reading, and how many were asked
    Summary    the content of summary.json: the figures of each benchmark, or those before and after tuning

An Estimate (lab/numbers/statistics.py) is a value with its 95 % interval and its n.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from types import MappingProxyType, NoneType
from typing import Annotated, Any, NamedTuple, Self, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError

from lab.engines.engine import Completion
from lab.errors import RunError, in_one_line, mistakes
from lab.numbers.sampling import Problem
from lab.numbers.statistics import Estimate, bootstrap_mean, mean_share, wilson
from lab.runs import Record, Run
from lab.text.answers import ALL_READINGS, READINGS

SUM_READINGS = (*READINGS, "final")
"""The readings of single sums, in the order in which they are shown. Runs of earlier versions may lack the last one."""

VERSION = 1
"""The version of summary.json; increased if programs that read it must change."""

Item = TypeVar("Item")
Key = TypeVar("Key")


# Samples


class Sum(NamedTuple):
    """A question of the benchmarks that ask for one sum."""

    int1: str
    int2: str

    @property
    def answer(self) -> str:
        return str(int(self.int1) + int(self.int2))

    @property
    def length(self) -> int:
        """How many digits the longer operand has."""
        return max(map(len, self))


class Asked(NamedTuple):
    """A question of a benchmark of the user's own."""

    asked: str
    answer: str

    @property
    def length(self) -> int:
        """How many characters the answer has."""
        return len(self.answer)


Question: TypeAlias = Problem | Sum | Asked


class Scored(NamedTuple):
    """How a benchmark scores an answer."""

    readings: "Mapping[str, Reading]"
    remarks: Mapping[str, Any] = MappingProxyType({})


class Reading(NamedTuple):
    """What one reading takes to be the answer, and how good that answer is."""

    given: str | None
    """The answer as the model wrote it; None if there is none."""
    exact_match: bool
    digit_match: float | None = None
    """Between 0 and 1; None for benchmarks that only compare values."""
    dlength: int | None = None
    error: str | None = None
    """The class of a wrong integer sum or difference (lab/numbers/taxonomy.py)."""

    def to_json(self) -> Record:
        if self.digit_match is None:
            return {"given": self.given, "success": self.exact_match}
        return self._asdict()

    @classmethod
    def from_json(cls, read: Mapping[str, Any]) -> Self:
        """Reads what `to_json` wrote. Raises KeyError, TypeError or AttributeError if it is something else."""
        right = read["success"] if "success" in read else read["exact_match"]
        reading = cls(read["given"], right, read.get("digit_match"), read.get("dlength"), read.get("error"))
        _check_types(reading)
        return reading


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of a samples file."""

    index: int
    """The question's index in the benchmark."""
    question: Question
    prompt: str | list[dict[str, str]]
    completion: Completion
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """The readings by name: strict, loose and others, or "" if there is only one. Empty if the question was not
    answered."""
    remarks: Mapping[str, Any] = field(default_factory=dict)
    """What else the benchmark noted about the answer, such as the kind of a format failure."""
    model: str = ""

    @property
    def answered(self) -> bool:
        """Whether an answer arrived. A question that an endpoint failed to answer has no score."""
        return not self.completion.api_error

    @property
    def problem(self) -> Problem:
        """The question, if the benchmark asks problems of tasks."""
        assert isinstance(self.question, Problem)
        return self.question

    @property
    def task(self) -> str:
        return task_key(self.question)

    @property
    def length(self) -> int:
        return self.question.length

    @property
    def reading(self) -> Reading:
        """The strict reading, or the only one. If the question was not answered, it has no answer and is wrong."""
        return next(iter(self.readings.values()), Reading(None, False, 0.0, 0))

    @property
    def right(self) -> bool:
        """Whether the strict reading, or the only one, is an exact match."""
        return self.reading.exact_match

    def to_json(self) -> Record:
        readings = {name: reading.to_json() for name, reading in self.readings.items()}
        flat = readings.pop("", {})
        return {
            "index": self.index,
            "model": self.model,
            **facts(self.question),
            "prompt": self.prompt,
            **self.completion._asdict(),
            **flat,
            **readings,
            **self.remarks,
        }

    @classmethod
    def from_json(cls, read: Mapping[str, Any]) -> Self:
        """Reads what `to_json` wrote. Raises RunError if the record is not a sample."""
        try:
            return cls._read(read)
        except KeyError as error:
            raise RunError(f"not a sample: it has no {error.args[0]}") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise RunError(f"not a sample: {in_one_line(error)}") from None

    @classmethod
    def _read(cls, read: Mapping[str, Any]) -> Self:
        rest = dict(read)
        kind = Problem if "task" in rest else Sum if "int1" in rest else Asked
        question = kind(*(rest.pop(name) for name in kind._fields))
        _check_types(question)
        for derived in facts(question):
            rest.pop(derived, None)
        index, model, prompt = rest.pop("index"), intern(rest.pop("model", "")), rest.pop("prompt")
        completion = Completion(**{name: rest.pop(name) for name in Completion._fields if name in rest})
        _check_types(completion)
        same: dict[Reading, Reading] = {}  # readings mostly agree, and a million samples should fit in memory
        found = ((name, Reading.from_json(rest.pop(name))) for name in ALL_READINGS if name in rest)
        readings = {name: same.setdefault(reading, reading) for name, reading in found}
        if "given" in rest:
            parts = {name: rest.pop(name) for name in (*Reading._fields, "success") if name in rest}
            readings[""] = Reading.from_json(parts)
        if type(index) is not int:
            raise TypeError(f"index should be a number, not {index!r}")
        return cls(index, question, prompt, completion, readings, dict(rest), model)


_KINDS: dict[type[NamedTuple], tuple[type | tuple[type, ...], ...]] = {
    Problem: (str, str, str, (str, NoneType), str, int),
    Sum: (str, str),
    Asked: (str, str),
    Completion: (str, int, int, (int, float), str, str, str),
    Reading: ((str, NoneType), bool, (int, float, NoneType), (int, NoneType), (str, NoneType)),
}
"""The types of the fields of what a sample consists of."""


def _check_types(part: NamedTuple) -> None:
    """Raises TypeError, with the name of the field, if a field has another type than it should have."""
    wrong = _wrong_field(type(part), tuple(map(type, part)))
    if wrong is not None:
        raise TypeError(f"{part._fields[wrong]} should not be {part[wrong]!r}")


@lru_cache(maxsize=1024)
def _wrong_field(part: type[NamedTuple], found: tuple[type, ...]) -> int | None:
    """The first field whose type is not what it should be. Millions of samples consist of a few combinations of
    types."""
    fits = (issubclass(kind, right) for kind, right in zip(found, _KINDS[part], strict=True))
    return next((index for index, right in enumerate(fits) if not right), None)


def task_key(question: Question) -> str:
    """The key of a problem's task; "sum" and "own" for the questions of other benchmarks."""
    match question:
        case Problem():
            return f"{question.task}_{question.representation}"
        case Sum():
            return "sum"
        case Asked():
            return "own"


def facts(question: Question) -> Record:
    """The fields that describe the question in a sample's record."""
    if isinstance(question, Sum):
        return {**question._asdict(), "answer": question.answer, "digits": question.length}
    return question._asdict()


def read_samples(run: Run, name: str = "samples") -> list[Sample]:
    """The samples of a run, in the order of its file. Raises RunError, with file and line, if a line is damaged."""
    return list(stream_samples(run, name))


def stream_samples(run: Run, name: str = "samples") -> Iterator[Sample]:
    """Like `read_samples`, one at a time."""
    for number, record in enumerate(run.stream(name), start=1):
        try:
            yield Sample.from_json(record)
        except RunError as error:
            raise RunError(f"{run.path / name}.jsonl:{number}: {error}") from None


def answered(samples: Iterable[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.answered]


def parse_errors(samples: Iterable[Sample]) -> list[Sample]:
    """The answers that could not be read, for benchmarks that record the reason as a remark (`parse_error`)."""
    return [sample for sample in answered(samples) if sample.remarks.get("parse_error")]


def shared_readings(samples: Iterable[Sample]) -> list[str]:
    """The readings that all samples have, in the order in which they are shown; none if there are no samples."""
    found = list(samples)
    return [name for name in ALL_READINGS if found and all(name in sample.readings for sample in found)]


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    groups: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


# Summaries


def _read_estimate(read: Any) -> Any:
    return Estimate.from_json(read) if isinstance(read, Mapping) else read


JsonEstimate = Annotated[Estimate, BeforeValidator(_read_estimate), PlainSerializer(Estimate.to_json)]


class Result(BaseModel):
    """A part of a summary."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    def to_json(self) -> Record:
        return self.model_dump(mode="json", exclude_unset=True)


class Arrivals(Result):
    """What came of the questions of a run, besides right and wrong (lab/benchmarks/arrivals.py)."""

    asked: int
    answered: int
    cut_off: int
    """How many answers were cut off because their budget of tokens ran out."""
    cut_off_before_text: int
    empty: int
    """How many answers are empty although they were not cut off."""
    empty_after_thoughts: int
    reasons: dict[str, int]
    """How often an endpoint gave each reason for no answer; only the most frequent ones."""


class Scores(Result):
    """The three metrics over a group of answers."""

    exact_match: JsonEstimate
    digit_match: JsonEstimate
    dlength: JsonEstimate

    @classmethod
    def of(cls, readings: Iterable[Reading]) -> Self:
        """Exact and digit match with Wilson's interval, dlength bootstrapped.

        Raises ValueError if there are no readings.
        """
        found = list(readings)
        return cls(
            exact_match=wilson(sum(r.exact_match for r in found), len(found)),
            digit_match=mean_share([r.digit_match or 0.0 for r in found]),
            dlength=bootstrap_mean([r.dlength or 0 for r in found]),
        )

    def metric(self, name: str) -> Estimate:
        return getattr(self, name)


class Figures(Result):
    """A group of NUPA samples: what was asked, and the scores in each reading (None if nothing was answered, or if not
    all samples have the reading, as in runs of earlier versions)."""

    lengths: tuple[int, int]
    """The shortest and the longest problem, in digits."""
    asked: int
    api_errors: int
    strict: Scores | None = None
    loose: Scores | None = None
    final: Scores | None = None
    released: Scores | None = None

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Self:
        asked = list(samples)
        came = answered(asked)
        lengths = sorted({sample.length for sample in asked})
        scores = {name: Scores.of(sample.readings[name] for sample in came) for name in shared_readings(came)}
        return cls(lengths=(lengths[0], lengths[-1]), asked=len(asked), api_errors=len(asked) - len(came), **scores)

    @property
    def n(self) -> int:
        """How many questions were answered."""
        return self.asked - self.api_errors

    def metric(self, reading: str, name: str) -> Estimate | None:
        scores: Scores | None = getattr(self, reading)
        return scores and scores.metric(name)


class Digits(Result):
    """The largest lengths that pass a threshold (A.1.8); with `contiguous`, the largest length up to which every
    measured length passes."""

    well_learned: int
    well_learned_contiguous: int
    performance_preserving: int
    performance_preserving_contiguous: int


class TaskSummary(Result):
    """The summary of the answers to one NUPA task."""

    ranges: dict[str, Figures] = {}
    """Figures by range: S, M, L, XL."""
    domains: dict[str, Figures] = {}
    """Figures by domain: S+M (in domain) and L+XL (out of domain)."""
    lengths: dict[int, Figures] = {}
    digits: dict[str, dict[str, Digits | None]] = {}
    """Digits by reading and metric; None if too few problems were asked at some length."""
    errors: dict[str, dict[str, int]] = {}
    """For each range, how often each class of error occurred (integer sums and differences only)."""
    first_errors: dict[str, dict[str, int]] = {}
    """For each range, how often each kind of line was the first to depart from a rule."""
    left_out: int = 0
    """How many problems did not fit the window."""


NupaSummary: TypeAlias = dict[str, TaskSummary]
"""Task summaries by the key of the task, in the order of the task table."""

Curve: TypeAlias = dict[int, Scores]
"""Scores by length, in digits."""
Curves: TypeAlias = dict[str, Curve]
"""Curves by the key of the task."""


class CurvePoint(Scores):
    """A line of curve.jsonl: the scores of one task and length during a training."""

    step: int
    samples: int
    """How many training problems the model had seen."""
    task: str
    length: int
    tokens: float | None = None
    """The mean number of tokens that the model wrote for a problem, including what came before the answer; None in runs
    of earlier versions."""


class Counted(Result):
    """How many questions were asked, how many were answered, and how many failed at the endpoint."""

    asked: int
    answered: int
    api_errors: int


class Rates(Counted):
    """Right sums and outcomes of a group of samples. A rate is None if nothing was answered."""

    outcomes: dict[str, int]
    outcome_shares: dict[str, JsonEstimate | None]
    strict: JsonEstimate | None = None
    loose: JsonEstimate | None = None
    final: JsonEstimate | None = None

    def rate(self, reading: str) -> JsonEstimate | None:
        """The share of right sums in a reading."""
        return getattr(self, reading)


class Seconds(Result):
    """The wall time of the answered questions; mean and median are per question, and None if nothing was answered."""

    mean: JsonEstimate | None
    median: float | None
    total: float


class SumsSummary(Counted):
    """The summary of the answers to a benchmark of single sums."""

    success_rate: dict[str, JsonEstimate | None]
    """By reading, the share of right answers among the answered questions."""
    success_rate_of_asked: dict[str, JsonEstimate | None]
    """By reading, the share of right answers among all questions. API errors count as wrong, so a failing endpoint
    cannot raise this figure."""
    outcomes: dict[str, int]
    outcome_shares: dict[str, JsonEstimate | None]
    seconds: Seconds
    tokens: dict[str, int]
    """The number of prompt tokens and of completion tokens."""
    by_digits: dict[int, Rates]
    format_failures: dict[str, int] | None = None
    wrong_sums: dict[str, int] | None = None
    parse_errors: dict[str, int] | None = None
    flags: dict[str, int] | None = None
    right_in_text: dict[str, int] | None = None
    """Each of these five says how often each kind occurred; None if the benchmark does not count it."""


class OwnSummary(Result):
    """The summary of the answers to a benchmark of the user's own."""

    asked: int
    answered: int
    exact_match: JsonEstimate | None
    """None if nothing was answered."""


class Costs(Result):
    """The average cost of a sample, over those that were answered; None if none was."""

    seconds: JsonEstimate | None
    prompt_tokens: JsonEstimate | None
    completion_tokens: JsonEstimate | None
    cache_bytes: JsonEstimate | None
    """The size of the keys and values at the end of the sample."""
    accuracy: JsonEstimate | None
    seconds_per_correct: JsonEstimate | None
    """The total seconds divided by the number of right answers; None if there are none."""


class TaskCosts(Costs):
    lengths: dict[int, Costs]


class VariantCosts(Result):
    """The costs of one way to answer the problems."""

    batch_size: int
    weight_bytes: int
    cache_bytes: int
    """The size of the keys and values of the fullest batch."""
    peak_bytes: int | None
    """The peak memory on a GPU beyond the weights; None if it was not measured."""
    tokens_per_pass: JsonEstimate | None
    overall: Costs
    tasks: dict[str, TaskCosts]


class CostRatios(Result):
    """The seconds of one variant divided by those of another variant, on the problems that both answered; None if there
    are none."""

    overall: JsonEstimate | None
    tasks: dict[str, JsonEstimate | None]


class CostSummary(Result):
    """All variants by name, and the seconds of each rule-following variant divided by those of each direct one."""

    version: int = VERSION
    left_out: dict[str, int] = {}
    direct: dict[str, VariantCosts]
    rule_following: dict[str, VariantCosts]
    ratios: dict[str, dict[str, CostRatios]]


Part: TypeAlias = NupaSummary | SumsSummary | OwnSummary | Curves
"""What the `summarize` of a benchmark returns."""


class Summary(Result):
    """The content of summary.json; a run has one or two of these parts."""

    version: int = VERSION
    nupa: NupaSummary | None = None
    before: NupaSummary | None = None
    after: NupaSummary | None = None
    """NUPA before and after tuning."""
    two_integers: SumsSummary | None = None
    carry_free: SumsSummary | None = None
    own_questions: OwnSummary | None = None
    lengths: Curves | None = None
    """The curves of a model from scratch."""
    arrivals: Arrivals | None = None
    """Only in evaluations, and not in those of earlier versions."""

    @classmethod
    def of(cls, benchmark: str, part: Part, arrivals: Arrivals | None = None) -> Self:
        """The summary of a run that asked one benchmark; `benchmark` is the name of its part."""
        came = {"arrivals": arrivals} if arrivals else {}
        return cls.model_validate({"version": VERSION, benchmark: part, **came})


def read_summary(run: Run) -> Summary:
    """The summary of a finished run. Raises RunError if there is none, or if another version of the lab wrote it."""
    read = run.read_json("summary")
    if not isinstance(read, dict) or read.get("version") != VERSION:
        raise RunError(f"{run.path}: from another version of the lab; run its command again with resume=true")
    try:
        return Summary.model_validate(read)
    except ValidationError as error:
        raise RunError(f"{run.path}: summary.json: {mistakes(error)[0]}") from None
