"""Reads and writes files of NUPA problems: the published JSON layout, and a Hugging Face dataset.

Published layout: {task name: {digits: [text, ...]}}. A text is the whole prompt with its answer. The name of a task
combines the task, both operand types and the answer's type: add_Integer_Integer_Integer, length_Float_none_int.
"""

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from lab.errors import TaskError
from lab.numbers.representations import Float, Fraction, Integer, Scientific
from lab.numbers.sampling import Problem, task_of
from lab.numbers.tasks import TASKS, Task
from lab.text.prompts import completion, parse, prompt
from lab.user_files import read_json

Texts: TypeAlias = Mapping[str, Mapping[str, list[str]]]
"""{task: {digits: [text, ...]}}, in the order of the file."""

_TYPES = {Integer: "Integer", Float: "Float", Fraction: "Fraction", Scientific: "ScientificNotation"}


def published_name(task: Task) -> str:
    """A task's name in published files (Tables 4 and 5). A short integer, such as a position or a count, is an int."""
    short_answer = task.name in ("get_digit", "length", "count")
    second = "int" if task.has_parameter else "none" if task.second is None else _TYPES[task.second]
    return f"{task.name}_{_TYPES[task.representation]}_{second}_{'int' if short_answer else _TYPES[task.answer]}"


PUBLISHED_NAMES = {published_name(task): task for task in TASKS.values()}


def read_published(path: Path, tasks: Container[str] = TASKS) -> list[Problem]:
    """The problems of `tasks` in a published file.

    Answers are computed exactly, because some published answers of sig are wrong (55445 as 5.544e4).

    Raises TaskError if the file has another layout, names an unknown task, or contains a text that is not a
    question of its task.
    """
    groups = _texts(path)
    problems = []
    for name, by_digits in groups.items():
        if name not in PUBLISHED_NAMES:
            raise TaskError(f"{path}: no task {name!r}; names are like {', '.join(list(PUBLISHED_NAMES)[:3])}")
        for digits, texts in by_digits.items() if PUBLISHED_NAMES[name].key in tasks else ():
            for text in texts:
                item = parse(str(text), PUBLISHED_NAMES[name], int(digits))
                if item is None:
                    raise TaskError(
                        f"{path}: {name}, {digits} digits: not a question of this task: {str(text)[:160]!r}"
                    )
                problems.append(item)
    return problems


def _texts(path: Path) -> Texts:
    texts = read_json(path, TaskError)
    if not isinstance(texts, dict) or not all(map(_are_groups, texts.values())):
        raise TaskError(f"{path}: does not have the layout {{task: {{digits: [text, ...]}}}}")
    return texts


def _are_groups(groups: Any) -> bool:
    return isinstance(groups, dict) and all(
        digits.isdecimal() and isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        for digits, texts in groups.items()
    )


def write_published(problems: Iterable[Problem], path: Path) -> None:
    """Writes problems, with their answers, in the published layout."""
    texts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for item in problems:
        texts[published_name(task_of(item))][str(item.length)].append(prompt(item) + completion(item))
    path.write_text(json.dumps(texts, indent=1), encoding="utf-8")


def write_dataset(problems: Sequence[Problem], seed: int, folder: Path) -> None:
    """Writes a Hugging Face dataset: data/test.parquet and its card, for `datasets.load_dataset(folder)`."""
    from datasets import Dataset

    rows = [
        {
            **item._asdict(),
            "range": task_of(item).range_of(item.length),
            "prompt": prompt(item),
            "completion": completion(item),
        }
        for item in problems
    ]
    (folder / "data").mkdir(parents=True)
    Dataset.from_list(rows).to_parquet(folder / "data" / "test.parquet")
    size = next(name for limit, name in _SIZES if len(rows) < limit)
    tasks = len({task_of(item).key for item in problems})
    card = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    (folder / "README.md").write_text(card.format(size=size, count=len(rows), tasks=tasks, seed=seed), encoding="utf-8")


_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10**12, "n>1M"))
