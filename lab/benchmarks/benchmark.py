"""What every benchmark is, and the one loop that asks, scores and records."""

from collections.abc import Sequence
from typing import Any, Protocol

from lab import processes
from lab.errors import RunError
from lab.inference.engine import GREEDY, Completion, Engine, Request, Sampling
from lab.inference.sharing import generate_together
from lab.progress import progress_bar
from lab.runs import Run
from lab.text.answers import without_thoughts
from lab.text.settings import Prompt

Sample = dict[str, Any]
"""One line of a samples file: index, prompt, what came and its cost, and how it scored."""


class Benchmark(Protocol):
    """Questions in a fixed order, how an answer to one is scored, and what the scores amount to."""

    @property
    def note(self) -> str:
        """What a reader of the figures should know beside them, or nothing."""
        ...

    def __len__(self) -> int: ...

    def requests(self, engine: Engine) -> list[Request]: ...

    def facts(self, index: int) -> Sample:
        """What a sample says of its question: operands, answer."""
        ...

    def score(self, index: int, completion: Completion) -> Sample:
        """What a sample says of its answer; only asked for completions that came."""
        ...

    def summarize(self, samples: Sequence[Sample]) -> dict[str, Any]: ...


def evenly(length: int, size: int) -> list[int]:
    """At most `size` places of a sequence, spread evenly over it."""
    size = min(size, length)
    return [length * number // size for number in range(size)]


class Subset:
    """So many questions of a benchmark, spread evenly over it."""

    def __init__(self, whole: Benchmark, size: int) -> None:
        self.whole = whole
        self.places = evenly(len(whole), size)
        self.note = whole.note

    def __len__(self) -> int:
        return len(self.places)

    def requests(self, engine: Engine) -> list[Request]:
        requests = self.whole.requests(engine)
        return [requests[place] for place in self.places]

    def facts(self, index: int) -> Sample:
        return self.whole.facts(self.places[index])

    def score(self, index: int, completion: Completion) -> Sample:
        return self.whole.score(self.places[index], completion)

    def summarize(self, samples: Sequence[Sample]) -> dict[str, Any]:
        return self.whole.summarize(samples)


def measure(
    benchmark: Benchmark,
    engine: Engine,
    run: Run,
    name: str = "samples",
    sampling: Sampling = GREEDY,
    model: str = "",
    requests: Sequence[Request] | None = None,
) -> list[Sample]:
    """Ask every question that <name>.jsonl does not hold an answer to; what has come is on disk before the rest.

    Questions that an endpoint failed to answer in an earlier start are asked again. `model` is its name, for the
    record. `requests`: those of the benchmark, if the caller has formed them already.

    Returns all samples, in the benchmark's order, in each of the processes that share the questions out. Raises
    RunError when the file is of other questions.
    """
    recorded = processes.from_main(lambda: run.read(name))
    asked = benchmark.requests(engine) if requests is None else requests
    for sample in recorded:
        index = sample.get("index", -1)
        same = 0 <= index < len(benchmark) and benchmark.facts(index).items() <= sample.items()
        if not same or sample["prompt"] != _plain(asked[index].prompt):
            raise RunError(f"{run.path / name}.jsonl: sample {index} is of another question than the run now asks")
    answered = {sample["index"]: sample for sample in recorded if not sample["api_error"]}
    if len(answered) < len(recorded):
        run.rewrite(name, answered.values())
    with progress_bar() as bar:
        item = bar.add_task(name.replace("_", " "), total=len(asked), completed=len(answered), note="")
        for completions in generate_together(engine, asked, sampling, set(answered)):
            batch = [
                {"index": index, "model": model, **_sample(benchmark, index, asked[index], done)}
                for index, done in completions.items()
            ]
            run.append(name, batch)
            answered |= {sample["index"]: sample for sample in batch}
            bar.update(item, completed=len(answered))
    return [answered[index] for index in range(len(asked))]


def _plain(prompt: Prompt) -> str | list[dict[str, str]]:
    return prompt if isinstance(prompt, str) else [message._asdict() for message in prompt]


def _sample(benchmark: Benchmark, index: int, request: Request, completion: Completion) -> Sample:
    text, thoughts = without_thoughts(completion.text)
    completion = completion._replace(text=text, reasoning=completion.reasoning or thoughts)
    scored = {} if completion.api_error else benchmark.score(index, completion)
    return {
        **benchmark.facts(index),
        "prompt": _plain(request.prompt),
        **completion._asdict(),
        **scored,
    }
