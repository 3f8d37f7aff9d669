"""The interface of every benchmark, and the loop that asks, scores and records."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from typing import Generic, TypeVar

from lab import distributed
from lab.benchmarks.results import Part, Question, Sample, Scored, stream_samples
from lab.engines.engine import GREEDY, Completion, Engine, Request, Sampling, generate_together
from lab.errors import RunError
from lab.progress import progress_bar
from lab.runs import Run
from lab.text.answers import without_thoughts
from lab.text.examples import plain

Kind = TypeVar("Kind", bound=Question)


class Benchmark(ABC, Generic[Kind]):
    """Questions in a fixed order, how an answer to each is scored, and how the scores are summarized."""

    problems: Sequence[Kind]
    """The questions."""

    @property
    def note(self) -> str:
        """A caveat that readers of the figures should know; empty if there is none."""
        return ""

    def __len__(self) -> int:
        return len(self.problems)

    @abstractmethod
    def requests(self, count_tokens: Callable[[str], int] = len) -> list[Request]:
        """A request for each question. `count_tokens` counts the tokens of a text; by default, one per character."""

    @abstractmethod
    def score(self, index: int, completion: Completion) -> Scored:
        """The readings of an answer, and remarks on it. Only called for completions that arrived."""

    @abstractmethod
    def summarize(self, samples: Sequence[Sample]) -> Part: ...


def evenly(length: int, size: int) -> list[int]:
    """At most `size` indices into a sequence of `length` items, spread evenly."""
    size = min(size, length)
    return [length * index // size for index in range(size)]


class Subset(Benchmark):
    """At most `size` questions of a benchmark, spread evenly over it."""

    def __init__(self, whole: Benchmark, size: int) -> None:
        self.whole, self.indices = whole, evenly(len(whole), size)
        self.problems = [whole.problems[index] for index in self.indices]

    @property
    def note(self) -> str:
        return self.whole.note

    def requests(self, count_tokens: Callable[[str], int] = len) -> list[Request]:
        requests = self.whole.requests(count_tokens)
        return [requests[index] for index in self.indices]

    def score(self, index: int, completion: Completion) -> Scored:
        return self.whole.score(self.indices[index], completion)

    def summarize(self, samples: Sequence[Sample]) -> Part:
        return self.whole.summarize(samples)


def ask(
    benchmark: Benchmark,
    engine: Engine,
    requests: Sequence[Request] | None = None,
    sampling: Sampling = GREEDY,
    model: str = "",
    done: Set[int] = frozenset(),
) -> Iterator[list[Sample]]:
    """The scored samples of a benchmark, in batches, as their answers arrive.

    Args:
        benchmark: the questions.
        engine: the engine that answers them.
        requests: the benchmark's requests, if they have been made already.
        sampling: how tokens are chosen.
        model: the name of the model, for the record.
        done: indices of questions that already have an answer; they are not asked.
    """
    asked = benchmark.requests(engine.count_tokens) if requests is None else requests
    for completions in generate_together(engine, asked, sampling, done):
        yield [_sample(benchmark, index, asked[index], found, model) for index, found in completions.items()]


def measure(
    benchmark: Benchmark,
    engine: Engine,
    run: Run,
    name: str = "samples",
    sampling: Sampling = GREEDY,
    model: str = "",
    requests: Sequence[Request] | None = None,
    arrived: Callable[[], None] | None = None,
) -> list[Sample]:
    """Asks every question that has no answer in <name>.jsonl, and writes answers to disk as they arrive.

    If a run is resumed, questions that an endpoint failed to answer are asked again.

    Args:
        benchmark: the questions.
        engine: the engine that answers them.
        run: the run directory.
        name: the name of the samples file, without .jsonl.
        sampling: how tokens are chosen.
        model: the name of the model, for the record.
        requests: the benchmark's requests, if they have been made already.
        arrived: called whenever answers have arrived, before they are written.

    Returns all samples, in the benchmark's order; if several processes share the questions, each process gets all
    samples. Raises RunError if the file belongs to other questions.
    """
    asked = benchmark.requests(engine.count_tokens) if requests is None else requests
    recorded = distributed.from_main(lambda: _recorded(benchmark, asked, run, name))
    answered = {sample.index: sample for sample in recorded if sample.answered}
    if len(answered) < len(recorded):
        run.rewrite(name, [sample.to_json() for sample in answered.values()])
    with progress_bar() as bar:
        item = bar.add_task(name.replace("_", " "), total=len(asked), completed=len(answered), note="")
        for batch in ask(benchmark, engine, asked, sampling, model, set(answered)):
            if arrived:
                arrived()
            run.append(name, [sample.to_json() for sample in batch])
            answered |= {sample.index: sample for sample in batch}
            bar.update(item, completed=len(answered))
    return [answered[index] for index in range(len(asked))]


def _recorded(benchmark: Benchmark, asked: Sequence[Request], run: Run, name: str) -> list[Sample]:
    """The samples of <name>.jsonl. They share question and prompt with the benchmark, so that a million of them fit in
    memory. Raises RunError if one belongs to other questions."""
    samples = []
    for sample in stream_samples(run, name):
        known = 0 <= sample.index < len(benchmark) and benchmark.problems[sample.index] == sample.question
        if not known or sample.prompt != (prompt := plain(asked[sample.index].prompt)):
            raise RunError(f"{run.path / name}.jsonl: sample {sample.index} belongs to no question of this run")
        samples.append(replace(sample, question=benchmark.problems[sample.index], prompt=prompt))
    return samples


def _sample(benchmark: Benchmark, index: int, request: Request, completion: Completion, model: str) -> Sample:
    text, thoughts = without_thoughts(completion.text)
    completion = completion._replace(text=text, reasoning=completion.reasoning or thoughts)
    scored = Scored({}) if completion.api_error else benchmark.score(index, completion)
    return Sample(
        index, benchmark.problems[index], plain(request.prompt), completion, scored.readings, scored.remarks, model
    )
