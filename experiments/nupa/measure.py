"""Asks a trained model NUPA's test questions, and writes results.csv: a row for each seed, task and range.

    python -m experiments.nupa.measure run=checkpoints/nupa [count=50] [ranges=S,M,L,XL] [tasks=a,b] [out=results.csv]

The model writes each line greedily; the tape does what the line says. Lines that follow from the same words are written
once and looked up after that: the model is a function of what it reads. A question is right if its whole answer is.
"""

import csv
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from experiments.nupa.rules import TASKS, seen, step, worked
from experiments.nupa.tape import Line, Tape, View, Written
from lab.benchmarks.nupa.problems import pick_problems
from lab.errors import RuleError, exit_cleanly
from lab.numbers.sampling import Cell, Problem
from lab.numbers.tasks import TASKS as ALL
from lab.scratch.llama import NumberLlama
from lab.text.notation import BEGIN, END, EQUALS, PAD

LONGEST_LINE = 20
LONGEST = 5_000
"""A question with a wrong line is given up after so many lines."""


class Writer:
    """Writes lines with a model, greedily. Each view is answered once and looked up after that."""

    def __init__(self, model: Any, batch: int = 512) -> None:
        self.model, self.batch = model, batch
        self.words: list[str] = model.config.vocabulary
        self.ids = {word: index for index, word in enumerate(self.words)}
        self.prompts: dict[View, list[int]] = {}
        self.known: dict[View, WrittenLine] = {}

    def learn(self, views: Iterable[View]) -> None:
        """Writes the lines that follow these views, many at a time."""
        new = [view for view in set(views) if view not in self.known]
        self.prompts |= {view: [self.ids[word] for word in (BEGIN, *view.words, EQUALS)] for view in new}
        new.sort(key=lambda view: len(self.prompts[view]))
        for start in range(0, len(new), self.batch):
            self._write(new[start : start + self.batch])

    def line(self, view: View) -> "WrittenLine":
        """The line that follows a view."""
        if view not in self.known:
            self.learn([view])
        return self.known[view]

    def _write(self, views: Sequence[View]) -> None:
        """Reads the rule's line after each view: where each of its words is the likeliest, greedy writing gives it. The
        other lines are written word by word."""
        lines = {view: line for view in views if (line := _by_rule(view)) is not None}
        wanted = {view: [self.ids[word] for word in (*line.words, END)] for view, line in lines.items()}
        likeliest = self._likeliest([[*self.prompts[view], *words] for view, words in wanted.items()]) if wanted else []
        for (view, words), said in zip(wanted.items(), likeliest, strict=True):
            start = len(self.prompts[view]) - 1
            if said[start : start + len(words)] == words:
                self.known[view] = WrittenLine(lines[view], len(words), True)
        self._write_word_by_word([view for view in views if view not in self.known])

    def _write_word_by_word(self, views: Sequence[View]) -> None:
        rows, end = [list(self.prompts[view]) for view in views], self.ids[END]
        for _ in range(LONGEST_LINE if views else 0):
            for row, said in zip(rows, self._likeliest(rows), strict=True):
                if row[-1] != end:
                    row.append(said[len(row) - 1])
            if all(row[-1] == end for row in rows):
                break
        for view, row in zip(views, rows, strict=True):
            words = [self.words[token] for token in row[len(self.prompts[view]) :]]
            self.known[view] = WrittenLine(Line.read(words[:-1]) if words[-1] == END else None, len(words), False)

    @torch.inference_mode()
    def _likeliest(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """The likeliest word after each word of each row. Rows are padded on the right, where no word looks."""
        longest = max(map(len, rows))
        padded = torch.tensor([[*row, *[self.ids[PAD]] * (longest - len(row))] for row in rows])
        return self.model(padded).logits.argmax(-1).tolist()


def _by_rule(view: View) -> Line | None:
    """The rule's line; None for a view that no rule leads to."""
    try:
        return step(view)
    except (ValueError, KeyError, IndexError, TypeError, RuleError):
        return None


class WrittenLine(NamedTuple):
    line: Line | None
    words: int
    right: bool
    """Whether it is the rule's line."""


class Asked(NamedTuple):
    problem: Problem
    answer: str
    words: int
    """How many words were written; each line ends in one more."""
    first_wrong: tuple[View, Line | None] | None
    """What the model saw and wrote where it first differed from the rule; None if it never did."""


def asked(writer: Writer, problems: Sequence[Problem]) -> list[Asked]:
    """The model's answers. Where each line of the rule is what the model writes, so is the answer."""
    paths = [worked(item) for item in problems]
    writer.learn(view for path in paths for view, _ in path.lines)
    return [followed(writer, item, path) for item, path in zip(problems, paths, strict=True)]


def followed(writer: Writer, item: Problem, path: Written) -> Asked:
    words = 0
    for view, line in path.lines:
        written = writer.line(view)
        if not written.right:
            return strayed(writer, item, (view, written.line))
        words += len(line.words) + 1
    return Asked(item, path.answer, words, None)


def strayed(writer: Writer, item: Problem, first: tuple[View, Line | None]) -> Asked:
    """What the model writes for a question with a wrong line."""
    tape, words = Tape(item), 0
    for _ in range(LONGEST):
        written = writer.line(seen(tape.view()))
        words += written.words
        if written.line is None:
            break
        tape.write(written.line)
        if tape.stopped:
            break
    return Asked(item, "".join(tape.answer), words, first)


@exit_cleanly
def main(arguments: list[str]) -> None:
    given = dict(argument.split("=", 1) for argument in arguments)
    run, count = Path(given["run"]), int(given.get("count", "50"))
    names = given["tasks"].split(",") if "tasks" in given else TASKS
    ranges = given.get("ranges", "S,M,L,XL").split(",")
    writer = Writer(NumberLlama.from_pretrained(run / "model").eval())
    for name in names:
        task, rows = ALL[name], []
        shown = [name]
        for of in ranges:
            cells = [Cell(task, n) for n in task.difficulty.ranges[of] if n in task.tested_lengths]
            start = time.perf_counter()
            found = asked(writer, pick_problems(cells, 0, count))
            right = [one.answer == one.problem.answer for one in found]
            words = sum(one.words for one in found) / len(found)
            rows.append(
                (run.name, name, of, len(found), sum(right), round(words), round(time.perf_counter() - start, 1))
            )
            shown.append(f"{of} {sum(right)}/{len(found)} {words:.0f}w")
            for one, fine in zip(found, right, strict=True):
                if not fine and one.first_wrong:
                    view, line = one.first_wrong
                    wrote = "no line" if line is None else " ".join(line.words)
                    print(f"  {one.problem.a} {one.problem.b}: {' '.join(view.words)} = {wrote}, not "
                          f"{' '.join(step(view).words)}")  # fmt: skip
                    break
        if "out" in given:
            with Path(given["out"]).open("a", newline="") as file:
                csv.writer(file).writerows(rows)
        print(*shown, f"({len(writer.known):,} different lines)", sep="  ", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
