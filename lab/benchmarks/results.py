"""What a benchmark leaves behind, as types: samples, their readings, and summaries, with one way to and from JSON.

    Sample     one question, the completion that came, and how each reading of it scored
    Reading    what a reading took for the answer, and how good that is
    Scores     the metrics of many readings, each an Estimate
    Figures    the scores of a group of samples, in every reading, and how many were asked
    Summary    what summary.json holds: the figures of each benchmark, or before and after a tuning

An Estimate (lab/numbers/statistics.py) is a value with its 95 % interval and its n.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Self, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError

from lab.errors import RunError
from lab.inference.engine import Completion
from lab.numbers.sampling import Problem
from lab.numbers.statistics import Estimate, bootstrap_mean, bootstrap_share, wilson
from lab.runs import Run
from lab.text.answers import READINGS

SUM_READINGS = (*READINGS, "final")
"""The readings of single sums, in the order in which they are shown; not every benchmark has the last one."""

VERSION = 1
"""Version of summary.json; raised when a reader of it would have to change."""

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
        """Digits of the longer operand."""
        return max(map(len, self))


Question: TypeAlias = Problem | Sum


class Scored(NamedTuple):
    """What a benchmark says of an answer."""

    readings: "Mapping[str, Reading]"
    remarks: Mapping[str, Any] = MappingProxyType({})


class Reading(NamedTuple):
    """What one reading takes for the answer, and how good that is."""

    given: str | None
    """The answer as written; None if there is none."""
    exact_match: bool
    digit_match: float | None = None
    """Between 0 and 1; None for benchmarks that compare values."""
    dlength: int | None = None
    error: str | None = None
    """The class of a wrong integer sum (lab/numbers/taxonomy.py)."""

    def to_json(self) -> dict[str, Any]:
        if self.digit_match is None:
            return {"given": self.given, "success": self.exact_match}
        return self._asdict()

    @classmethod
    def from_json(cls, read: Mapping[str, Any]) -> Self:
        if "success" in read:
            return cls(read["given"], read["success"])
        return cls(**{name: read[name] for name in cls._fields if name in read})


@dataclass(frozen=True)
class Sample:
    """One line of a samples file."""

    index: int
    """The question's place in the benchmark."""
    question: Question
    prompt: str | list[dict[str, str]]
    completion: Completion
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By name: strict and loose, or "" where there is one alone; none if the question was never answered."""
    remarks: Mapping[str, Any] = field(default_factory=dict)
    """What else a benchmark saw in the answer, such as the kind of a format failure."""
    model: str = ""

    @property
    def answered(self) -> bool:
        """Whether an answer came; what an endpoint never answered has no score."""
        return not self.completion.api_error

    @property
    def problem(self) -> Problem:
        """The question, of a benchmark that asks problems of tasks."""
        assert isinstance(self.question, Problem)
        return self.question

    @property
    def task(self) -> str:
        """The key of the problem's task."""
        return f"{self.question.task}_{self.question.representation}" if isinstance(self.question, Problem) else "sum"

    @property
    def length(self) -> int:
        return self.question.length

    @property
    def right(self) -> bool:
        """Exact match in the strict reading, or in the only one."""
        return next(iter(self.readings.values())).exact_match

    def to_json(self) -> dict[str, Any]:
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
        """Raises RunError if the record is no sample."""
        try:
            rest = dict(read)
            kind = Problem if "task" in rest else Sum
            question = kind(*(rest.pop(name) for name in kind._fields))
            for derived in facts(question):
                rest.pop(derived, None)
            index, model, prompt = rest.pop("index"), rest.pop("model", ""), rest.pop("prompt")
            completion = Completion(**{name: rest.pop(name) for name in Completion._fields if name in rest})
            readings = {name: Reading.from_json(rest.pop(name)) for name in SUM_READINGS if name in rest}
            if "given" in rest:
                readings[""] = Reading(*(rest.pop(name) for name in Reading._fields))
        except (KeyError, TypeError) as error:
            raise RunError(f"not a sample: {error!r}") from None
        return cls(index, question, prompt, completion, readings, rest, model)


def facts(question: Question) -> dict[str, Any]:
    """What a sample's record says of its question."""
    if isinstance(question, Sum):
        return {**question._asdict(), "answer": question.answer, "digits": question.length}
    return question._asdict()


def read_samples(run: Run, name: str = "samples") -> list[Sample]:
    """The samples of a run, in the order of its file. Raises RunError if a line is damaged."""
    return [Sample.from_json(record) for record in run.read(name)]


def answered(samples: Iterable[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.answered]


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

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_unset=True)


class Scores(Result):
    """The three metrics over a group of answers."""

    exact_match: JsonEstimate
    digit_match: JsonEstimate
    dlength: JsonEstimate

    @classmethod
    def of(cls, readings: Iterable[Reading]) -> Self:
        """Exact match with Wilson's interval, the others bootstrapped. Raises ValueError if there are no readings."""
        found = list(readings)
        return cls(
            exact_match=wilson(sum(r.exact_match for r in found), len(found)),
            digit_match=bootstrap_share([r.digit_match or 0.0 for r in found]),
            dlength=bootstrap_mean([r.dlength or 0 for r in found]),
        )

    def metric(self, name: str) -> Estimate:
        return getattr(self, name)


class Figures(Result):
    """A group of NUPA samples: what was asked, and its scores in both readings, left out if nothing was answered."""

    lengths: tuple[int, int]
    """Shortest and longest."""
    asked: int
    api_errors: int
    strict: Scores | None = None
    loose: Scores | None = None

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Self:
        asked = list(samples)
        came = answered(asked)
        lengths = sorted({sample.length for sample in asked})
        scores = {name: Scores.of(sample.readings[name] for sample in came) for name in READINGS} if came else {}
        return cls(lengths=(lengths[0], lengths[-1]), asked=len(asked), api_errors=len(asked) - len(came), **scores)

    @property
    def n(self) -> int:
        """How many were answered."""
        return self.asked - self.api_errors

    def metric(self, reading: str, name: str) -> Estimate | None:
        scores: Scores | None = getattr(self, reading)
        return scores and scores.metric(name)


class Digits(Result):
    """The largest lengths that pass a threshold (A.1.8), and the largest up to which every measured length passes."""

    well_learned: int
    well_learned_contiguous: int
    performance_preserving: int
    performance_preserving_contiguous: int


class TaskSummary(Result):
    """What the answers to one NUPA task amount to."""

    ranges: dict[str, Figures] = {}
    """By S, M, L, XL."""
    domains: dict[str, Figures] = {}
    """By S+M (in domain) and L+XL (out of domain)."""
    lengths: dict[int, Figures] = {}
    digits: dict[str, dict[str, Digits | None]] = {}
    """By reading and metric; None where too few were asked at some length."""
    errors: dict[str, dict[str, int]] = {}
    """By range, how often each class of error came (integer sums alone)."""
    first_errors: dict[str, dict[str, int]] = {}
    """By range, how often each kind of line was the first where a rule was left."""
    left_out: int = 0
    """Problems that did not fit the window of their rule."""


NupaSummary: TypeAlias = dict[str, TaskSummary]
"""By the key of the task, in the order of the task table."""

Curve: TypeAlias = dict[int, Scores]
"""By length."""
Curves: TypeAlias = dict[str, Curve]
"""By the key of the task."""


class Rates(Result):
    """Right sums and outcomes of a group of samples. A rate of nothing is None."""

    asked: int
    answered: int
    api_errors: int
    outcomes: dict[str, int]
    outcome_shares: dict[str, JsonEstimate | None]
    strict: JsonEstimate | None = None
    loose: JsonEstimate | None = None
    final: JsonEstimate | None = None

    def rate(self, reading: str) -> JsonEstimate | None:
        """The share of right sums in that reading."""
        return getattr(self, reading)


class Seconds(Result):
    mean: JsonEstimate | None
    median: float | None
    total: float


class SumsSummary(Result):
    """What the answers to a benchmark of single sums amount to."""

    asked: int
    answered: int
    api_errors: int
    success_rate: dict[str, JsonEstimate | None]
    """By reading, of what was answered."""
    success_rate_of_asked: dict[str, JsonEstimate | None]
    """By reading; an API error is no success, so that errors cannot raise a figure unseen."""
    outcomes: dict[str, int]
    outcome_shares: dict[str, JsonEstimate | None]
    seconds: Seconds
    tokens: dict[str, int]
    """By prompt and completion."""
    by_digits: dict[int, Rates]
    format_failures: dict[str, int] | None = None
    wrong_sums: dict[str, int] | None = None
    parse_errors: dict[str, int] | None = None
    flags: dict[str, int] | None = None
    right_in_text: dict[str, int] | None = None
    """How often each kind came, of what the benchmark counts."""


class Costs(Result):
    """What a sample costs, on average."""

    seconds: JsonEstimate
    prompt_tokens: JsonEstimate
    completion_tokens: JsonEstimate
    cache_bytes: JsonEstimate
    """Keys and values at the end of the sample."""
    accuracy: JsonEstimate
    seconds_per_correct: JsonEstimate | None
    """All seconds over all right answers; None without any."""


class TaskCosts(Costs):
    lengths: dict[int, Costs]


class VariantCosts(Result):
    """What one way to answer the problems costs."""

    batch_size: int
    weight_bytes: int
    cache_bytes: int
    """Keys and values of the fullest batch."""
    peak_bytes: int | None
    """A GPU's peak beyond the weights."""
    tokens_per_pass: JsonEstimate
    overall: Costs
    tasks: dict[str, TaskCosts]


class CostRatios(Result):
    """Seconds of one variant in times those of another."""

    overall: JsonEstimate
    tasks: dict[str, JsonEstimate]


class CostSummary(Result):
    """Every variant by name, and the seconds of each that follows rules over those of each that answers directly."""

    version: int = VERSION
    left_out: dict[str, int] = {}
    direct: dict[str, VariantCosts]
    rule_following: dict[str, VariantCosts]
    ratios: dict[str, dict[str, CostRatios]]


class Summary(Result):
    """What summary.json holds; a run has one or two of these."""

    version: int = VERSION
    nupa: NupaSummary | None = None
    before: NupaSummary | None = None
    after: NupaSummary | None = None
    """NUPA before and after a tuning."""
    two_integers: SumsSummary | None = None
    carry_free: SumsSummary | None = None
    lengths: Curves | None = None
    """Of a model from scratch."""


def read_summary(run: Run) -> Summary:
    """The summary of a finished run. Raises RunError if there is none, or one of another version of the lab."""
    read = run.read_json("summary")
    if not isinstance(read, dict) or read.get("version") != VERSION:
        raise RunError(f"{run.path}: of another version of the lab; run its command again with resume=true")
    try:
        return Summary.model_validate(read)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise RunError(f"{run.path}: summary.json: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
