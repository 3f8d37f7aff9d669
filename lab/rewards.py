"""NUPA as rewards for reinforcement learning, in the form that TRL's trainers take.

    from lab import rewards
    from trl import GRPOConfig, GRPOTrainer

    problems = rewards.problems("add_integer", digits=(1, 4), n=2048)
    GRPOTrainer("HuggingFaceTB/SmolLM2-135M-Instruct", rewards.nupa, GRPOConfig(...), problems).train()

A reward depends only on the completion and on the problem's columns, which TRL passes on by name.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lab.errors import TaskError
from lab.numbers.metrics import Score, score
from lab.numbers.sampling import Cell, Problem, problem, task_of
from lab.numbers.tasks import task as task_named
from lab.text.answers import ReadingName, Setting, without_thoughts
from lab.text.examples import plain
from lab.text.wording import wording_of

if TYPE_CHECKING:
    from datasets import Dataset


def problems(
    task: str | Sequence[str], digits: tuple[int, int], n: int, seed: int = 0, setting: Setting = "base"
) -> "Dataset":
    """Training problems as a dataset: the column `prompt`, and the columns of the problem that the rewards read.

    They come from the lab's training split, so none of the lab's test problems is among them. Tasks and lengths
    alternate.

    Args:
        task: the key of a task, or several, such as add_integer; `lab list tasks` shows all 53.
        digits: the shortest and the longest length.
        n: how many problems.
        seed: the seed from which they are drawn.
        setting: base (raw text to continue), chat or api (messages).

    Raises TaskError for an unknown task or impossible lengths.
    """
    from datasets import Dataset

    if not 1 <= digits[0] <= digits[1]:
        raise TaskError(f"digits={digits}: should be the shortest and the longest length, from 1 up")
    tasks = [task_named(key) for key in ([task] if isinstance(task, str) else task)]
    cells = [Cell(item, length) for length in range(digits[0], digits[1] + 1) for item in tasks]
    wording = wording_of(setting)
    drawn = [problem(cells[index % len(cells)], "train", seed, index // len(cells)) for index in range(n)]
    return Dataset.from_list([{"prompt": plain(wording.prompt(item)), **item._asdict()} for item in drawn])


def nupa(completions: Sequence[Any], **columns: Any) -> list[float]:
    """1 for a right answer, 0 for a wrong one, in the strict reading: the answer comes first and alone.

    Args:
        completions: texts, or conversations that end with the model's message.
        columns: the columns of `problems`.
    """
    return [float(found.exact_match) for found in _scores(completions, columns, "strict")]


def nupa_loose(completions: Sequence[Any], **columns: Any) -> list[float]:
    """1 for each right answer in the loose reading, which finds the answer anywhere in the text."""
    return [float(found.exact_match) for found in _scores(completions, columns, "loose")]


def nupa_final(completions: Sequence[Any], **columns: Any) -> list[float]:
    """1 for each right answer in the final reading, which takes the last number, however it is written."""
    return [float(found.exact_match) for found in _scores(completions, columns, "final")]


def nupa_digits(completions: Sequence[Any], **columns: Any) -> list[float]:
    """The share of right digits (digit match, strict reading): a reward that also grows while answers are still
    wrong."""
    return [found.digit_match for found in _scores(completions, columns, "strict")]


def _scores(completions: Sequence[Any], columns: Mapping[str, Sequence[Any]], reading: ReadingName) -> list[Score]:
    rows = zip(*(columns[name] for name in Problem._fields), strict=True)
    found = []
    for completion, row in zip(completions, rows, strict=True):
        item = Problem(*row)
        wording, text = (_TEXT, completion) if isinstance(completion, str) else (_CHAT, completion[-1]["content"])
        answer = task_of(item).answer
        found.append(score(wording.extract(without_thoughts(text)[0], answer, reading), item.answer, answer))
    return found


_TEXT, _CHAT = wording_of("base"), wording_of("chat")
