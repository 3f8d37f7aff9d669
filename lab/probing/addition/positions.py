"""Where the digits of a written addition are, for any tokenizer, number format and prompt.

A model reads a sum together with its right answer in one forward pass (teacher forcing); nothing is generated. Greedy
decoding would give this answer if each of its tokens is the most likely one after the right tokens before it.

    tokens     Add : 1 2 + 9 = 2 1 <end>      12 + 9 = 21
    a_at             3 2                      the tokens of the digits of places k = 0, 1
    b_at                 5
    answer_at                8 7
    query_at                 7 6              where s_k is predicted
    end_at                     8              where the end is predicted

Shapes: B sums, T tokens of the longest sum, K columns (place values; column 0 is that of the ones). NOWHERE (-1) means
that there is no such digit. Padding is on the right, where earlier tokens do not see it.
"""

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from numbers import Integral
from typing import NamedTuple, Protocol

import torch
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.notation import FormatConfig
from lab.errors import ModelError, TaskError
from lab.numbers.columns import Columns
from lab.numbers.sampling import Problem
from lab.probing.batching import batches
from lab.probing.contrast import NOWHERE
from lab.probing.readings import NotationReader, Reading, Span, TextReader
from lab.text.examples import IGNORED
from lab.text.notation import BEGIN, END, EQUALS, Notation


class Written(NamedTuple):
    """A solved addition as tokens. The places of digits are listed from the ones digit up."""

    ids: list[int]
    a_at: list[int]
    b_at: list[int]
    answer_at: list[int]
    operator_at: int
    equals_at: int
    """The last token before the answer."""
    ends: bool = True
    """Whether a right answer has to be followed by the end; if not, whatever follows is right."""


class SumWriter(Protocol):
    """How a model is asked for a sum: all that instruments know about its prompt and its tokens.

    `TextSums` and `NotatedSums` are the writers for text models and for models from scratch. For a model with its own
    vocabulary, write a class with these four members. This one writes "12+9=21" with the tokens 0 to 9 for the digits,
    10 for "+", 11 for "=", 12 for the end and 13 for padding:

        class Plain:
            pad = 13

            def write(self, a, b):
                a_text, b_text, answer = str(a), str(b), str(a + b)
                ids = [*map(int, a_text), 10, *map(int, b_text), 11, *map(int, answer), 12]
                plus, equals = len(a_text), len(a_text) + 1 + len(b_text)
                a_at = list(range(plus))[::-1]                      # from the ones up
                b_at = list(range(plus + 1, equals))[::-1]
                answer_at = list(range(equals + 1, len(ids) - 1))[::-1]
                return Written(ids, a_at, b_at, answer_at, plus, equals)

            def words(self, ids):
                return ["0123456789+=$."[token] for token in ids]

            def digit_ids(self):
                return list(range(10))
    """

    pad: int

    def write(self, a: int, b: int) -> Written:
        """The question, the answer and the end as tokens. Raises ModelError if a token contains a digit and something
        else that does not belong to the digit's number."""
        ...

    def words(self, ids: Sequence[int]) -> list[str]:
        """Each token as text, for display."""
        ...

    def digit_ids(self) -> list[int]:
        """The tokens of the digits 0 to 9 in an answer. Raises ModelError if a token may contain several digits."""
        ...


class NotatedSums(NotationReader):
    """Sums as a model from scratch reads and writes them."""

    def __init__(self, notation: Notation, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(notation, tokenizer)
        self._notation: Notation

    def write(self, a: int, b: int) -> Written:
        """See `SumWriter`. Raises TaskError if the notation has no sign for additions."""
        problem = _addition(a, b)
        words = [BEGIN, *self._notation.question(problem), *self._notation.answer(problem), END]
        operator, equals = words.index("<add_integer>"), words.index(EQUALS)
        ends = (1, operator), (operator + 1, equals), (equals + 1, len(words) - 1)
        ids = self._tokenizer.convert_tokens_to_ids(words)
        sides = zip(ends, (a, b, a + b), strict=True)
        # a padded number has more digits than columns
        at = (self._tokens(words, *end)[: len(str(number))] for end, number in sides)
        return Written(ids, *at, operator, equals)  # type: ignore[arg-type]

    def digit_ids(self) -> list[int]:
        """See `SumWriter`."""
        if any(len(word) > 1 for word in self._notation.vocabulary if word.isdigit()):
            raise ModelError("this model writes several digits in one token: tokenizer.digits should be 1 here")
        return self._tokenizer.convert_tokens_to_ids(list(string.digits))  # type: ignore[return-value]

    def _tokens(self, words: list[str], start: int, end: int) -> list[int]:
        at = [index for index in range(start, end) if words[index].isdigit() for _ in words[index]]
        return at if self._notation.ones_first else at[::-1]


class TextSums(TextReader):
    """Sums as a pretrained model reads them: in the lab's own prompt, or in any other."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, template: str = "", format: FormatConfig | None = None
    ) -> None:
        """A writer of sums.

        Args:
            tokenizer: a fast tokenizer.
            template: a text with {a} and {b} in this order, such as "{a} + {b} = "; the NUPA prompt if empty. The
                answer follows the template directly. So it should end in a space if the model writes one before an
                answer, as SmolLM2 does after the lab has tuned it. With a template, anything may follow a right answer.
            format: how numbers are written.

        Raises ModelError for a slow tokenizer.
        """
        super().__init__(tokenizer, template, format)
        reversed_ = format.reverse if format else "none"
        self._ones_first = reversed_ in ("integer", "each", "total")
        self._answer_ones_first = self._ones_first or reversed_ == "answer"
        # many base models have no padding token; padding comes last and nothing attends to it, so any token will do
        known = [token for token in (tokenizer.pad_token_id, tokenizer.eos_token_id, 0) if token is not None]
        self.pad = int(known[0])  # type: ignore[arg-type]
        self.end = self.pad if tokenizer.eos_token_id is None else int(tokenizer.eos_token_id)  # type: ignore[arg-type]
        self._has_template = bool(template)

    def write(self, a: int, b: int) -> Written:
        """See `SumWriter`."""
        one = self.problem(_addition(a, b))
        written = len(one.text) - len(one.text[one.spans[one.start][0] :].lstrip())
        sides = (a, one.parts["a"]), (b, one.parts["b"]), (a + b, (written, len(one.text)))
        orders = (self._ones_first, self._ones_first, self._answer_ones_first)
        at = [_from_the_ones(one, span, number, order) for (number, span), order in zip(sides, orders, strict=True)]
        start, end = one.parts["operator"]
        between = one.text[start:end]
        operator = _token_at(one, end - len(between.lstrip()))
        a_at, b_at, answer_at = at
        ids = [*one.ids, self.end]
        return Written(ids, a_at, b_at, answer_at, operator, one.start - 1, ends=not self._has_template)

    def digit_ids(self) -> list[int]:
        """See `SumWriter`."""
        found = [self.write(digit, 0) for digit in range(10)]
        ids = [written.ids[written.answer_at[0]] for written in found]
        if len(set(ids)) < 10 or len(set(self.write(1234, 1234).answer_at)) < 4:
            raise ModelError("this tokenizer puts several digits in one token; this instrument needs a token per digit")
        return ids


@dataclass(frozen=True)
class Sums:
    """A batch of written additions. All tensors are on the CPU."""

    numbers: tuple[tuple[int, int], ...]
    columns: Columns
    """Digits and carries, (B, K) each."""
    tokens_BT: torch.Tensor
    a_at_BK: torch.Tensor
    b_at_BK: torch.Tensor
    answer_at_BK: torch.Tensor
    query_at_BK: torch.Tensor
    operator_at_B: torch.Tensor
    equals_at_B: torch.Tensor
    end_at_B: torch.Tensor
    ends_B: torch.Tensor
    """Whether a right answer has to be followed by the end."""
    digits_apart: bool = True
    """Whether each digit should have a token of its own."""

    @classmethod
    def of(cls, writer: SumWriter, numbers: Sequence[tuple[int, int]]) -> "Sums":
        """The sums of `numbers`, written by `writer`. Raises the writer's errors, and TaskError if there are no
        numbers, or for anything but pairs of whole numbers from 0."""
        _check_numbers(numbers)
        columns = Columns.of(numbers)
        written = [writer.write(a, b) for a, b in numbers]
        width = columns.sum.shape[1]
        a_at_BK, b_at_BK, answer_at_BK = (
            torch.tensor([[*at, *[NOWHERE] * (width - len(at))] for at in sides])
            for sides in ([w.a_at for w in written], [w.b_at for w in written], [w.answer_at for w in written])
        )
        tokens = list(zip_longest(*(w.ids for w in written), fillvalue=writer.pad))
        return cls(
            tuple(numbers),
            columns,
            torch.tensor(tokens).T.contiguous(),
            a_at_BK,
            b_at_BK,
            answer_at_BK,
            torch.where(answer_at_BK == NOWHERE, NOWHERE, answer_at_BK - 1),
            torch.tensor([w.operator_at for w in written]),
            torch.tensor([w.equals_at for w in written]),
            torch.tensor([len(w.ids) - 2 for w in written]),
            torch.tensor([w.ends for w in written]),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def check_column(self, column: int) -> None:
        """Raises TaskError if no sum has the column."""
        columns = self.has_digit_BK.shape[1]
        if not 0 <= column < columns:
            raise TaskError(f"column {column}: these sums have {columns}, counted from 0")

    def check_digits(self) -> None:
        """Raises ModelError if a token holds several digits of a number, unless `digits_apart` is false."""
        for at_BK in () if not self.digits_apart else (self.a_at_BK, self.b_at_BK, self.answer_at_BK):
            shared_B = ((at_BK[:, 1:] == at_BK[:, :-1]) & (at_BK[:, 1:] != NOWHERE)).any(1)
            if shared_B.any():
                a, b = self.numbers[int(shared_B.nonzero()[0])]
                raise ModelError(f"{a} + {b} has several digits in one token; instruments need a token for each digit")

    def part(self, rows: slice | Sequence[int]) -> "Sums":
        """Some of the sums, with the columns and the padding of the whole batch; rows may be repeated."""
        numbers = self.numbers[rows] if isinstance(rows, slice) else tuple(self.numbers[row] for row in rows)
        tensors = {name: value[rows] for name, value in vars(self).items() if isinstance(value, torch.Tensor)}
        return replace(self, numbers=numbers, columns=Columns(*(array[rows] for array in self.columns)), **tensors)

    @property
    def has_digit_BK(self) -> torch.Tensor:
        """Whether the answer has a digit in each column."""
        return self.answer_at_BK != NOWHERE

    @property
    def next_BT(self) -> torch.Tensor:
        """The right next token, (B, T), at each token that predicts part of the answer or its end; IGNORED at all other
        tokens."""
        after_BT = torch.roll(self.tokens_BT, -1, dims=1)
        places_T = torch.arange(self.tokens_BT.shape[1])
        last_B = self.end_at_B - (~self.ends_B).long()
        asked_BT = (places_T >= self.equals_at_B[:, None]) & (places_T <= last_B[:, None])
        return torch.where(asked_BT, after_BT, IGNORED)

    def read(self, logits_BTV: torch.Tensor) -> "Prediction":
        """What a model with these logits (B, T, V) predicts; each prediction follows the right tokens."""
        next_BT = self.next_BT.to(logits_BTV.device)
        right_BT = (logits_BTV.argmax(-1) == next_BT) | (next_BT == IGNORED)
        at_BK = self.query_at_BK.clamp(min=0).to(logits_BTV.device)
        digits_BK = right_BT.gather(1, at_BK)
        return Prediction(right_BT.all(1).cpu(), torch.where(self.has_digit_BK, digits_BK.cpu().float(), float("nan")))

    def read_all(self, logits: Callable[["Sums"], torch.Tensor], batch_size: int) -> "Prediction":
        """What a model predicts for all sums, in batches. `logits`: returns the logits (B, T, V) of some of them."""
        parts = [self.part(rows) for rows in batches(len(self), batch_size)]
        readings = [part.read(logits(part)) for part in parts]
        return Prediction(*(torch.cat(same) for same in zip(*readings, strict=True)))


class Prediction(NamedTuple):
    """What a model predicts for a batch of sums."""

    exact_B: torch.Tensor
    """Booleans: would greedy decoding give the right answer, and end after it if it has to?"""
    digits_BK: torch.Tensor
    """1 if the right digit is the most likely token after the right tokens before it, 0 if not, nan if there is no
    digit."""


def _check_numbers(numbers: Sequence[tuple[int, int]]) -> None:
    if not len(numbers):
        raise TaskError("there are no sums to ask")
    for pair in numbers:
        if len(pair) != 2 or not all(isinstance(one, Integral) and one >= 0 for one in pair):
            raise TaskError(f"{pair}: should be two whole numbers from 0")


def _addition(a: int, b: int) -> Problem:
    return Problem("add", "integer", str(a), str(b), str(a + b), max(len(str(a)), len(str(b))))


def _from_the_ones(reading: Reading, span: Span, number: int, ones_first: bool) -> list[int]:
    """The tokens of a number's digits from the ones up. `ones_first`: whether the digits are written in this order.
    Zeros that pad the number are left out."""
    at = [index for index in range(*span) if reading.text[index].isdigit()]
    return [_token_at(reading, index) for index in (at if ones_first else at[::-1])][: len(str(number))]


def _token_at(reading: Reading, index: int) -> int:
    """The token that contains a character. Raises ModelError unless exactly one token does."""
    holding = reading.tokens_of((index, index + 1))
    if len(holding) != 1:
        text = reading.text
        raise ModelError(f"{text[index]!r}, character {index} of {text!r}, has {len(holding)} tokens instead of one")
    return holding[0]
