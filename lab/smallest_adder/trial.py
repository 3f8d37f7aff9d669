"""The trial of one submission: its process, its model as a graph, its codecs as tables, and the results so far.

Shapes: B sequences, T tokens, A positions with logits, V tokens in the vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.smallest_adder.codecs import Reading, Writing
from lab.smallest_adder.contract import Pair, practice
from lab.smallest_adder.graph.flow import Flow
from lab.smallest_adder.graph.graph import Graph
from lab.smallest_adder.graph.program import Program, confirmed, written_after
from lab.smallest_adder.trace.child import Child, Limits, Misbehaved, integers
from lab.smallest_adder.verdict import Counts, plain

PRACTICE = 1_000
COLLAPSED = 0.1
"""The largest share of right answers that a model may keep when its weights or its attention are taken away."""
FEW = 128
"""Problems on which a changed model is tried."""


class Objection(Exception):  # noqa: N818
    """A layer rejects the submission; the text says why."""


class Unusable(Objection):
    """A layer rejects the submission, and the layers after it cannot be tried."""


class Trial:
    """The trial of one submission. The process that holds it is only asked practice problems; the problems that count
    stay in this process."""

    def __init__(self, text: str, pairs: list[Pair], seed: int, limits: Limits, plain_loop: bool = False) -> None:
        self.text, self.pairs, self.seed, self.plain_loop = text, pairs, seed, plain_loop
        self.child = Child(limits)
        self.practice = practice(seed, PRACTICE)
        self.sums = np.array([a + b for a, b in self.practice])
        self.vocabulary = self.length = 0
        self.writing: Writing | None = None
        self.prompts = np.empty((0, 0), dtype=np.int64)
        """The prompts of the practice problems. `outputs` is what the model writes after them, `good` whether that is
        right."""
        self.outputs = np.empty((0, 0), dtype=np.int64)
        self.good = np.zeros(0, dtype=bool)
        self.graphs: list[Graph] = []
        """One graph of the full length; or, if the model gives only the last position's logits, one for each length."""
        self.flows: list[Flow] = []
        self.programs: list[Program] = []
        self.counts: Counts | None = None
        self.reading: Reading | None = None
        self.answers = np.empty(0, dtype=np.int64)
        self.content: float | None = None
        """The largest change of an attention weight from one problem to another."""
        self.seconds = 0.0
        """Seconds that the problems took."""

    def encode(self, pairs: Sequence[Pair]) -> list[Sequence[int]]:
        """The prompt of each pair, by the submission's `encode`. Raises Misbehaved."""
        return [integers(prompt) for prompt in _rows(self.child.ask("encode", pairs=list(pairs)), len(pairs))]

    def decode(self, outputs: list[list[int]]) -> list[int | str]:
        """For each output an int, by the submission's `decode`, or the reason why there is none. Raises Misbehaved."""
        sent = _rows(self.child.ask("decode", outputs=outputs), len(outputs))
        return [answer if type(answer) is int else plain(answer) for answer in sent]

    def program(self, graph: Graph, **how: Any) -> Program:
        """A program that stops when the trial's time is up. `how`: other arguments of `Program`."""
        return Program(graph, tick=lambda: self.child.seconds_left, **how)

    def changed(self, **how: Any) -> list[Program]:
        """The programs with numbers or values replaced. `how`: as in `program`."""
        return [self.program(graph, **how) for graph in self.graphs]

    def accuracy(self, programs: Sequence[Program]) -> float:
        """The share of right answers of changed programs, on some practice problems that the model itself answers
        right."""
        if self.reading is None:
            return 0.0
        some = np.flatnonzero(self.good)[:FEW]
        outputs = written_after(programs, self.prompts[some], self.length)
        return float((self.reading.answers(outputs) == self.sums[some]).mean())

    def written(self, prompts: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """What the model writes after prompts (problems, length).

        A model that gives logits at all positions needs one pass over the expected answer. It is causal, so if it
        confirms each token after the tokens before it, the greedy loop would write the same (as in speculative
        decoding, Leviathan et al. 2023, arXiv 2211.17192). Problems whose answer is not confirmed go through the loop.
        """
        drafts = self.drafts(sums)
        if drafts is None:
            return written_after(self.programs, prompts, self.length)
        left = ~confirmed(self.programs[0], prompts, drafts)
        if left.any():
            drafts[left] = written_after(self.programs, prompts[left], self.length)
        return drafts

    @property
    def in_use(self) -> np.ndarray:
        """The tokens that occur. A model need not be able to read others."""
        return np.union1d(self.prompts, self.outputs)

    def drafts(self, sums: np.ndarray) -> np.ndarray | None:
        if self.reading is None or self.plain_loop or len(self.programs) > 1:
            return None
        return self.reading.drafts(sums, self.outputs[self.good], self.sums[self.good])

    @property
    def right(self) -> int:
        return sum(int(answer) == a + b for (a, b), answer in zip(self.pairs, self.answers, strict=False))

    def sequence(self, places: int | Sequence[int] | np.ndarray) -> np.ndarray:
        """A practice prompt and all tokens that the model wrote after it except the last, which no pass reads, (T,); or
        those of several practice problems, (B, T)."""
        return np.concatenate([self.prompts[places], self.outputs[places, :-1]], axis=-1)


def _rows(sent: Any, count: int) -> list:
    if type(sent) is not list or len(sent) != count:
        raise Misbehaved(f"sent no list of {count} answers")
    return sent
