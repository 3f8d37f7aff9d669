"""One submission on trial: its processes, the problems it is tried on, and what has come of it so far.

Shapes: B sequences, T tokens, V tokens in the vocabulary.
"""

import random
from functools import cached_property

import numpy as np

from lab.smallest_adder.counting import Counts, Tensor, count
from lab.smallest_adder.harness import Pair, generate, right
from lab.smallest_adder.sandbox import Child, Limits, Misbehaved, integers, plain

COLLAPSED = 0.1
"""The largest share of right answers that is left of a model whose weights, or whose attention, were taken away."""


class Objection(Exception):  # noqa: N818
    """A layer rejects the submission; the text says why."""


class Unusable(Objection):
    """And nothing further can be looked at."""


class Trial:
    """One submission, the problems it is tried on, and what has come of it so far.

    Three processes hold it, one for each function, so that nothing but tokens goes from one function to another; each
    sees the problems in another order. A fourth has a model that has seen none of the others' tokens.
    """

    def __init__(self, text: str, pairs: list[Pair], seed: int, limits: Limits, plain_loop: bool = False) -> None:
        self.text = text
        self.pairs = pairs
        self.seed = seed
        self.limits = limits
        self.plain_loop = plain_loop
        self.causal = False
        self.shuffled = random.Random(seed)
        self._children: list[Child] = []
        self.confinement: list[str] = []
        self.vocabulary = 0
        self.length = 0
        self.prompts = np.empty((0, 0), dtype=np.int64)
        self.outputs = np.empty((0, 0), dtype=np.int64)
        self.answers: list[int | str] = []
        self.tensors: list[Tensor] = []
        self.extra_keys: list[int] = []
        """How many keys attention has beyond the tokens: [0], or [1] with a learned first key."""

    @cached_property
    def encoder(self) -> Child:
        return self._start()

    @cached_property
    def model(self) -> Child:
        return self._start()

    @cached_property
    def decoder(self) -> Child:
        return self._start()

    @cached_property
    def witness(self) -> Child:
        child = self._start()
        child.ask("build")
        child.ask("probe", prompt=self.prompts[0].tolist())
        return child

    def _start(self) -> Child:
        child = Child(self.limits)
        self._children.append(child)
        self.confinement = child.confinement
        child.load(self.text)
        return child

    def close(self) -> None:
        for child in self._children:
            child.close()

    @property
    def counts(self) -> Counts | None:
        return count(self.tensors, self.text) if self.tensors else None

    @property
    def right(self) -> int:
        return right(self.pairs, self.answers) if self.answers else 0

    def encode(self, pairs: list[Pair]) -> list[list[int]]:
        """In an order of its own. Raises Misbehaved."""
        order = list(range(len(pairs)))
        self.shuffled.shuffle(order)
        sent = self.encoder.ask("encode", pairs=[pairs[place] for place in order])
        prompts: list[list[int]] = [[] for _ in pairs]
        for place, prompt in zip(order, _rows(sent, len(pairs)), strict=True):
            prompts[place] = [*integers(prompt)]
        return prompts

    def decode(self, outputs: list[list[int]]) -> list[int | str]:
        """In an order of its own: an int, or why there is none. Raises Misbehaved."""
        order = list(range(len(outputs)))
        self.shuffled.shuffle(order)
        sent = self.decoder.ask("decode", outputs=[outputs[place] for place in order])
        answers: list[int | str] = ["" for _ in outputs]
        for place, answer in zip(order, _rows(sent, len(outputs)), strict=True):
            answers[place] = answer if type(answer) is int else plain(answer)
        return answers

    def generate(self, problems: np.ndarray) -> np.ndarray:
        """What the greedy loop writes after the given prompts (problems, length). Raises Misbehaved."""
        return generate(self.model, self.prompts[problems], self.length, self.vocabulary)

    def accuracy(self, problems: np.ndarray) -> float:
        """Of the model as it now stands, on the given places among the problems; nan counts as wrong."""
        try:
            outputs = self.generate(problems)
        except Misbehaved as error:
            if "nan" in str(error):
                return 0.0
            raise
        answers = self.decode(outputs.tolist())
        return right([self.pairs[place] for place in problems], answers) / len(problems)

    def some(self, count: int) -> np.ndarray:
        """Places of `count` problems, drawn."""
        return np.array(self.shuffled.sample(range(len(self.pairs)), min(count, len(self.pairs))))

    def is_right(self, place: int) -> bool:
        return right([self.pairs[place]], [self.answers[place]]) == 1


def _rows(sent: object, count: int) -> list:
    if type(sent) is not list or len(sent) != count:
        raise Misbehaved(f"sent no list of {count} answers")
    return sent
