"""One submission on trial: its process, its model as a graph, its codecs as tables, and what has come of them so far.

Shapes: B sequences, T tokens, A positions with logits, V tokens in the vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.smallest_adder.codecs import Reading, Writing
from lab.smallest_adder.graph.flow import Flow
from lab.smallest_adder.graph.graph import Graph
from lab.smallest_adder.graph.program import Program, confirmed, written_after
from lab.smallest_adder.problems import Pair, practice
from lab.smallest_adder.trace.child import Child, Clock, Limits, Misbehaved, integers, plain
from lab.smallest_adder.verdict import Counts

PRACTICE = 1_000

COLLAPSED = 0.1
"""The largest share of right answers that is left of a model whose weights, or whose attention, were taken away."""

FEW = 128
"""Problems for a look at a changed model."""


class Objection(Exception):  # noqa: N818
    """A layer rejects the submission; the text says why."""


class Unusable(Objection):
    """And nothing further can be looked at."""


class Trial:
    """The process that holds the submission is asked for practice alone; problems that count stay in this one."""

    def __init__(self, text: str, pairs: list[Pair], seed: int, limits: Limits, plain_loop: bool = False) -> None:
        self.text, self.pairs, self.seed, self.plain_loop = text, pairs, seed, plain_loop
        self.clock = Clock(limits.seconds)
        self.child = Child(limits, self.clock)
        self.practice = practice(seed, PRACTICE)
        self.sums = np.array([a + b for a, b in self.practice])
        self.vocabulary = self.length = 0
        self.writing: Writing | None = None
        self.prompts = np.empty((0, 0), dtype=np.int64)
        """Of practice, as `outputs` and `good` are: what is written after them, and whether that is right."""
        self.outputs = np.empty((0, 0), dtype=np.int64)
        self.good = np.zeros(0, dtype=bool)
        self.graphs: list[Graph] = []
        """One of the full length, or one for each length of a model that gives the last position's logits alone."""
        self.flows: list[Flow] = []
        self.programs: list[Program] = []
        self.counts: Counts | None = None
        self.reading: Reading | None = None
        self.answers = np.empty(0, dtype=np.int64)
        self.content: float | None = None
        """The most that a weight of attention changes from one problem to another."""
        self.seconds = 0.0
        """That the problems took."""

    def encode(self, pairs: Sequence[Pair]) -> list[Sequence[int]]:
        """Raises Misbehaved."""
        return [integers(prompt) for prompt in _rows(self.child.ask("encode", pairs=list(pairs)), len(pairs))]

    def decode(self, outputs: list[list[int]]) -> list[int | str]:
        """An int, or why there is none. Raises Misbehaved."""
        sent = _rows(self.child.ask("decode", outputs=outputs), len(outputs))
        return [answer if type(answer) is int else plain(answer) for answer in sent]

    def changed(self, **how: Any) -> list[Program]:
        """The programs with something exchanged, as Program says."""
        return [Program(graph, tick=self._tick, **how) for graph in self.graphs]

    def _tick(self) -> float:
        return self.clock.left

    def accuracy(self, programs: Sequence[Program]) -> float:
        """How often other programs are right, on some practice problems that the model answers right."""
        if self.reading is None:
            return 0.0
        some = np.flatnonzero(self.good)[:FEW]
        outputs = written_after(programs, self.prompts[some], self.length)
        return float((self.reading.answers(outputs) == self.sums[some]).mean())

    def written(self, prompts: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """What the model writes after prompts (problems, length).

        A model that gives logits at all positions takes one pass over the answer that is to be expected: it is causal,
        so if it confirms each token of that after those before, the greedy loop would write them (as in speculative
        decoding, Leviathan et al. 2023, arXiv 2211.17192). What is not confirmed goes through the loop.
        """
        drafts = self.drafts(sums)
        if drafts is None:
            return written_after(self.programs, prompts, self.length)
        left = ~self.confirmed(prompts, drafts)
        if left.any():
            drafts[left] = written_after(self.programs, prompts[left], self.length)
        return drafts

    def drafts(self, sums: np.ndarray) -> np.ndarray | None:
        if self.reading is None or self.plain_loop or len(self.programs) > 1:
            return None
        return self.reading.drafts(sums, self.outputs[self.good], self.sums[self.good])

    def confirmed(self, prompts: np.ndarray, drafts: np.ndarray) -> np.ndarray:
        return np.all(confirmed(self.programs[0], prompts, drafts), axis=-1)

    @property
    def right(self) -> int:
        return sum(int(answer) == a + b for (a, b), answer in zip(self.pairs, self.answers, strict=False))

    def sequence(self, place: int) -> np.ndarray:
        """A practice prompt and what was written after it, as long as the model is ever given (T,)."""
        return np.concatenate([self.prompts[place], self.outputs[place, :-1]])


def _rows(sent: Any, count: int) -> list:
    if type(sent) is not list or len(sent) != count:
        raise Misbehaved(f"sent no list of {count} answers")
    return sent
