"""Asks a trained model NUPA's test questions, and writes results.csv: a row for each seed, task and range.

    python -m experiments.nupa.measure run=checkpoints/nupa [count=50] [ranges=S,M,L,XL] [tasks=a,b] [out=results.csv]

The model writes each line greedily; the tape does what the line says. Lines that follow from the same words are written
once and looked up after that: the model is a function of what it reads. A question is right if its whole answer is.
"""

import csv
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from experiments.nupa.lines import completion, ids, prompt, vocabulary
from experiments.nupa.rules import TASKS, seen, step, worked
from experiments.nupa.tape import Line, Tape, View
from lab.benchmarks.nupa.problems import pick_problems
from lab.config.schema import ModelConfig
from lab.errors import RuleError, exit_cleanly
from lab.models.pretrained import load
from lab.numbers.sampling import Cell, Problem
from lab.numbers.tasks import TASKS as ALL
from lab.text.notation import END, PAD

LONGEST_LINE = 20
PATIENCE = 3
"""A question is given up when its lines are this many times as many as its rule writes."""


class Writer:
    """Writes lines with a model, greedily. Each prompt is answered once and looked up after that."""

    def __init__(self, model: torch.nn.Module, batch: int = 512) -> None:
        self.model, self.batch = model, batch
        self.known: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.asked = 0
        """How many lines were wanted so far; `known` has those that differ."""

    def lines(self, views: Sequence[View]) -> list[Line | None]:
        """The line that follows each view; None where the model writes no line."""
        prompts = [tuple(prompt(view)) for view in views]
        self.asked += len(prompts)
        new = {one: view for one, view in zip(prompts, views, strict=True) if one not in self.known}
        some = sorted(new, key=len)
        for start in range(0, len(some), self.batch):
            self._answer({one: new[one] for one in some[start : start + self.batch]})
        return [_line(self.known[one]) for one in prompts]

    def _answer(self, prompts: Mapping[tuple[int, ...], View]) -> None:
        """Reads the rule's line after each prompt: where each of its words is the likeliest, greedy writing gives it.
        The other lines are written word by word."""
        right = {one: tuple(completion(line)) for one, view in prompts.items() if (line := _by_rule(view))}
        likeliest = self._likeliest([(*one, *words) for one, words in right.items()]) if right else []
        for (one, words), said in zip(right.items(), likeliest, strict=True):
            if said[len(one) - 1 : len(one) + len(words) - 1] == list(words):
                self.known[one] = words
        left = [one for one in prompts if one not in self.known]
        rows, ended = [list(one) for one in left], [False] * len(left)
        for _ in range(LONGEST_LINE if left else 0):
            for index, said in enumerate(self._likeliest(rows)):
                if not ended[index]:
                    rows[index].append(said[len(rows[index]) - 1])
                    ended[index] = rows[index][-1] == ids()[END]
            if all(ended):
                break
        self.known |= {one: tuple(row[len(one) :]) for one, row in zip(left, rows, strict=True)}

    @torch.inference_mode()
    def _likeliest(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """The likeliest word after each word of each row. Rows are padded on the right, which no word before looks at."""
        longest = max(map(len, rows))
        padded = torch.tensor([[*row, *[ids()[PAD]] * (longest - len(row))] for row in rows])
        return self.model(padded).logits.argmax(-1).tolist()


def _by_rule(view: View) -> Line | None:
    """The rule's line; None for a view that no rule leads to."""
    try:
        return step(view)
    except (ValueError, KeyError, IndexError, AttributeError, RuleError):
        return None


def _line(tokens: Sequence[int]) -> Line | None:
    words = [vocabulary()[token] for token in tokens]
    return Line.read(words[:-1]) if words[-1] == END else None


class Asked(NamedTuple):
    problem: Problem
    answer: str
    words: int
    """How many words were written; each line ends in one more."""
    first_wrong: tuple[View, Line | None] | None
    """What the model saw and wrote where it first differed from the rule; None if it never did."""


def asked(writer: Writer, problems: Iterable[Problem]) -> list[Asked]:
    """The model's answers, written side by side."""
    tapes = [(item, Tape(item)) for item in problems]
    words, first = [0] * len(tapes), [None] * len(tapes)
    most = [PATIENCE * len(worked(item).lines) for item, _ in tapes]
    lines = [0] * len(tapes)
    running = list(range(len(tapes)))
    while running:
        views = [seen(tapes[i][1].view()) for i in running]
        for i, view, line in zip(list(running), views, writer.lines(views), strict=True):
            tape = tapes[i][1]
            if first[i] is None and (line is None or completion(line) != completion(step(view))):
                first[i] = (view, line)
            if line is None:
                tape.stopped = True
                continue
            words[i] += len(line.words) + 1
            lines[i] += 1
            tape.write(line)
            tape.stopped = tape.stopped or lines[i] > most[i]
        running = [i for i in running if not tapes[i][1].stopped]
    return [Asked(item, "".join(tape.answer), words[i], first[i]) for i, (item, tape) in enumerate(tapes)]


@exit_cleanly
def main(arguments: list[str]) -> None:
    given = dict(argument.split("=", 1) for argument in arguments)
    run, count = Path(given["run"]), int(given.get("count", "50"))
    names = given["tasks"].split(",") if "tasks" in given else TASKS
    ranges = given.get("ranges", "S,M,L,XL").split(",")
    model, _ = load(ModelConfig(name=str(run / "model"), dtype="float32", device="cpu"))
    writer = Writer(model.eval())
    rows = []
    for name in names:
        task = ALL[name]
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
        print(*shown, f"({len(writer.known):,} of {writer.asked:,} lines differ)", sep="  ", flush=True)
    if "out" in given:
        with Path(given["out"]).open("a", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
