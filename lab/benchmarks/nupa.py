"""The NUPA test (Number Cookbook, section 2): problems out, scored samples in a run directory, summaries of them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lab.inference.engine import Completion, Engine, Request
from lab.numbers.metrics import PERFORMANCE_PRESERVING, WELL_LEARNED, Score, contiguous_passing, longest_passing, score
from lab.numbers.sampling import Cell, Problem, distinct_problems
from lab.numbers.statistics import bootstrap_mean, wilson
from lab.numbers.tasks import TASKS, Task
from lab.progress import progress_bar
from lab.runs import Run
from lab.text.answers import READINGS, decided, extract
from lab.text.prompts import completion, prompt

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase as Tokenizer

SURPLUS_TOKENS = 8
"""Budget beyond the longest answer of a task and length: words before the answer, digits too many, the end."""

METRICS = ("exact_match", "digit_match", "dlength")


def pick_problems(cells: Iterable[Cell], seed: int, per_range: int) -> list[Problem]:
    """The same problems for every model: `per_range` distinct ones of each task's range, evenly over its lengths."""
    ranges: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        ranges[cell.task.key, cell.task.range_of(cell.length)].append(cell)
    problems = []
    for members in ranges.values():
        for place, cell in enumerate(members):
            count = (place + 1) * per_range // len(members) - place * per_range // len(members)
            problems += distinct_problems(cell, "test", seed, count)
    return problems


def task_of(problem: Problem) -> Task:
    return TASKS[f"{problem.task}_{problem.representation}"]


def measure(engine: Engine, problems: Sequence[Problem], tokenizer: "Tokenizer", run: Run, name: str) -> list[dict]:
    """Ask every problem that <name>.jsonl does not hold yet; a batch is on disk before the next one begins.

    Returns all samples, in the order of `problems`.
    """
    samples = {sample["index"]: sample for sample in run.read(name)}
    with progress_bar() as bar:
        item = bar.add_task(name.replace("_", " "), total=len(problems), completed=len(samples), note="")
        for completions in engine.generate(requests(problems, tokenizer), set(samples)):
            batch = [_sample(index, problems[index], done) for index, done in completions.items()]
            run.append(name, batch)
            samples |= {sample["index"]: sample for sample in batch}
            bar.update(item, completed=len(samples))
    return [samples[index] for index in range(len(problems))]


def requests(problems: Sequence[Problem], tokenizer: "Tokenizer") -> list[Request]:
    """A group a task, and a budget that the longest answer of the task and length fits in."""
    tokens = [len(tokenizer.encode(completion(problem), add_special_tokens=False)) for problem in problems]
    longest: dict[tuple[str, int], int] = defaultdict(int)
    for problem, count in zip(problems, tokens, strict=True):
        cell = task_of(problem).key, problem.length
        longest[cell] = max(longest[cell], count)
    return [
        Request(
            prompt(problem),
            longest[task_of(problem).key, problem.length] + SURPLUS_TOKENS,
            task_of(problem).key,
            partial(decided, representation=task_of(problem).answer),
        )
        for problem in problems
    ]


def _sample(index: int, problem: Problem, done: Completion) -> dict[str, Any]:
    """One line of a samples file: the problem, what came, and its score in both readings."""
    answer = task_of(problem).answer
    readings = {}
    for reading in READINGS:
        given = extract(done.text, answer, reading)
        readings[reading] = {"given": given, **score(given, problem.answer, answer)._asdict()}
    return {"index": index, **problem._asdict(), **done._asdict(), **readings}


def summarize(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Figures by task: each range's metrics with n and 95 % interval, and how many digits the model carries."""
    by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for sample in samples:
        by_task[f"{sample['task']}_{sample['representation']}"].append(sample)
    return {key: _task_summary(TASKS[key], members) for key, members in by_task.items()}


def _task_summary(task: Task, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    by_range: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for sample in samples:
        by_range[task.range_of(sample["length"])].append(sample)
    return {
        "ranges": {name: _figures(members) for name, members in by_range.items()},
        "digits": {metric: _digits(samples, metric) for metric in METRICS},
    }


def _figures(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    scores = {reading: [_score(sample[reading]) for sample in samples] for reading in READINGS}
    lengths = sorted({sample["length"] for sample in samples})
    return {
        "lengths": [lengths[0], lengths[-1]],
        **{
            f"exact_match_{reading}": wilson(sum(s.exact_match for s in scores[reading]), len(samples))._asdict()
            for reading in READINGS
        },
        **{metric: bootstrap_mean([getattr(s, metric) for s in scores["strict"]])._asdict() for metric in METRICS[1:]},
    }


def _digits(samples: Sequence[dict[str, Any]], metric: str) -> dict[str, int]:
    """Well-learned and performance-preserving digits (A.1.8), by strict reading."""
    values: dict[int, list[float]] = defaultdict(list)
    for sample in samples:
        values[sample["length"]].append(sample["strict"][metric])
    means = {length: sum(members) / len(members) for length, members in values.items()}
    return {
        "well_learned": longest_passing(means, metric, WELL_LEARNED),
        "well_learned_contiguous": contiguous_passing(means, metric, WELL_LEARNED),
        "performance_preserving": longest_passing(means, metric, PERFORMANCE_PRESERVING),
        "performance_preserving_contiguous": contiguous_passing(means, metric, PERFORMANCE_PRESERVING),
    }


def _score(record: dict[str, Any]) -> Score:
    return Score(record["exact_match"], record["digit_match"], record["dlength"])
