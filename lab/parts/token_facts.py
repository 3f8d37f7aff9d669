"""What parts read in the rows of models from scratch: which tokens are digits, where numbers begin and end, and which
problem of a row a token belongs to.

A row is `<begin> digits <operator> digits = digits <end>`, or several such problems one after another, with padding on
either side. One token may hold several digits. Digits that follow each other are a run. Index hints do not end a run. A
separator such as "." ends a run, but with `through_point` the point does not.

Shapes: B rows, T tokens of a row, N problems of a row (or draws for it), V words of the vocabulary.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from lab.config.parts import PartConfig
from lab.errors import ModelError
from lab.parts.part import Part
from lab.parts.rows import Words
from lab.parts.trace_places import TraceFacts, latest
from lab.text.notation import BEGIN, END, EQUALS, PAD

_HINT = re.compile(r"<\d+\.\d+>")
_OPERATOR = re.compile(r"<.+>")


@dataclass(frozen=True)
class TokenFacts:
    """What position ids depend on, for every word of a vocabulary; all tensors are (V,)."""

    digits: torch.Tensor
    """How many digits the word has; 0 if it does not consist of digits."""
    is_operator: torch.Tensor
    ends_run: torch.Tensor
    """Whether digits after the word belong to another number, or another part of it. False for hints and <end>."""
    has_place: torch.Tensor
    """True for digits, hints, and <end>, which counts like one more digit of the answer."""
    pad: int
    begin: int
    end: int
    equals: int
    trace: TraceFacts | None = None
    """The facts of traces, if the vocabulary has them."""

    @classmethod
    def of(cls, vocabulary: Sequence[str], through_point: bool = False) -> "TokenFacts":
        """The facts of a vocabulary. Hints look like <1.3>; operators are all other words in < > except special tokens.

        `through_point`: "." does not end a run, so decimals and the integer part after them count as one number.
        Raises ModelError if the vocabulary lacks a word that every row needs.
        """
        ids = {word: i for i, word in enumerate(vocabulary)}
        missing = [word for word in (PAD, BEGIN, END, EQUALS) if word not in ids]
        if missing:
            raise ModelError(f"the vocabulary of {len(vocabulary)} words has no {', '.join(missing)}")
        counts = [len(word) if re.fullmatch("[0-9]+", word) else 0 for word in vocabulary]
        hints = [bool(_HINT.fullmatch(word)) for word in vocabulary]
        operators = [
            bool(_OPERATOR.fullmatch(word)) and not hint and word not in (PAD, BEGIN, END)
            for word, hint in zip(vocabulary, hints, strict=True)
        ]
        places = [
            bool(count or hint or word == END) for word, count, hint in zip(vocabulary, counts, hints, strict=True)
        ]
        ends = [not (place or (through_point and word == ".")) for word, place in zip(vocabulary, places, strict=True)]
        # the device is explicit because models are loaded on the meta device, where tensors have no data
        digits_V = torch.tensor(counts, device="cpu")
        return cls(
            digits_V,
            torch.tensor(operators, device="cpu"),
            torch.tensor(ends, device="cpu"),
            torch.tensor(places, device="cpu"),
            *(ids[word] for word in (PAD, BEGIN, END, EQUALS)),
            trace=TraceFacts.of(vocabulary, ids[EQUALS], digits_V),
        )

    def to(self, device: torch.device) -> "TokenFacts":
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, torch.Tensor)}
        return replace(self, **moved)


class NotatedPart(Part):
    """A part that reads the rows of models from scratch."""

    def __init__(self, config: PartConfig) -> None:
        super().__init__(config)
        self._facts: dict[torch.device, TokenFacts] = {}

    def read(self, words: Words, reverse: str) -> None:
        facts = TokenFacts.of(words.vocabulary, getattr(self.config, "through_point", False))
        self._facts = {facts.digits.device: facts}

    def facts(self, device: torch.device) -> TokenFacts:
        """The facts of the vocabulary, on the given device."""
        if device not in self._facts:
            self._facts[device] = next(iter(self._facts.values())).to(device)
        return self._facts[device]


def longest_runs(ids_BT: torch.Tensor, facts: TokenFacts, asked: bool = False) -> torch.Tensor:
    """The number of digits in the longest run of each problem, (B, N); 0 for problems that a row does not have.

    `asked`: look at the question alone.
    """
    problem_BT = problem_of(ids_BT, facts)
    written_BT = written_before(ids_BT, facts) + facts.digits[ids_BT]
    if asked:
        written_BT = written_BT * ~answered(ids_BT, facts)
    runs_BN = written_BT.new_zeros(len(ids_BT), int(problem_BT.max()) + 1)
    return runs_BN.scatter_reduce(1, problem_BT, written_BT, "amax")


def answered(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """Whether a token is its problem's "=" or comes after it."""
    return latest(ids_BT == facts.equals) > latest(ids_BT == facts.begin)


def shifted(
    ids: torch.Tensor, ids_BT: torch.Tensor, facts: TokenFacts, largest: int, offsets_BN: torch.Tensor | None
) -> torch.Tensor:
    """The ids plus the offsets of their problems, modulo `largest`; 0 for <begin> and padding."""
    if offsets_BN is not None:
        ids = ids + offsets_BN.gather(1, problem_of(ids_BT, facts))
    return ids % largest * ((ids_BT != facts.begin) & (ids_BT != facts.pad))


def draw_offsets(spans_BN: torch.Tensor, largest: int, generator: np.random.Generator, kind: str) -> torch.Tensor:
    """For each problem, an offset (B, N) of its coupled ids, so that no two problems of a row share an id.

    The cycle of ids is cut into N equal windows, which are shuffled and rotated together. Each problem starts at a
    random id in its window, so that all its ids are inside. A single problem can start anywhere.

    Packing makes coupled ids work at lengths beyond training, because distant ids occur together during training.

    Args:
        spans_BN: how many ids each problem needs.
        largest: how many ids there are.
        generator: the source of randomness.
        kind: the kind of the part, for the error.

    Raises ModelError if a problem needs more ids than its window has.
    """
    rows, problems = spans_BN.shape
    window, span = largest // problems, int(spans_BN.max())
    if span > window:
        raise ModelError(
            f"data.packing={problems} leaves each problem {window} of {largest} position ids, but one needs {span}: "
            f"parts.{kind}.largest should be at least {problems * span}, or data.packing at most {largest // span}"
        )
    windows_BN = generator.permuted(np.tile(np.arange(problems), (rows, 1)), axis=1)
    jitter_BN = generator.integers(0, window - spans_BN.numpy(), endpoint=True)
    rotation_B1 = generator.integers(0, largest, (rows, 1))
    return torch.from_numpy((windows_BN * window + jitter_BN + rotation_B1) % largest)


def problem_of(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """For each token, the number of its problem in the row, from 0."""
    return ((ids_BT == facts.begin).cumsum(-1) - 1).clamp(min=0)


def written_before(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """The number of digits before a token in its run; 0 for tokens that end a run."""
    digits_BT = facts.digits[ids_BT]
    before_BT = digits_BT.cumsum(-1) - digits_BT
    # the count never falls, so its maximum over all ends of runs so far is its value at the latest one
    return before_BT - (before_BT * facts.ends_run[ids_BT]).cummax(-1).values
