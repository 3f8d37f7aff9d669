"""Whole rows of tokens, as parts read them.

A forward pass may be over parts of rows: a step with a cache, or the nodes of a prefix tree. What a part knows about a
token depends on the whole row, so parts get whole rows, and which of their tokens are in the forward pass.

Shapes: B rows, Q tokens of a forward pass, K tokens of its rows so far.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from lab.text.places import RowSpots, row_spots, row_spots_downward

T = TypeVar("T")


class Words:
    """The vocabulary of a model, one text for each token."""

    def __init__(self, texts: Sequence[str], forbidden: Sequence[int] = ()) -> None:
        """
        Args:
            texts: the texts in the order of the ids. Index hints, such as <1.3>, count as no text.
            forbidden: tokens that the model never writes.
        """
        self.vocabulary = tuple(texts)
        """The texts as they are, with those of hints."""
        hints = [text[:1] == "<" and text[-1:] == ">" and "." in text for text in texts]
        self.texts = tuple("" if hint else text for text, hint in zip(texts, hints, strict=True))
        self.is_hint = np.array(hints, dtype=bool)
        self.counts = np.array([len(text) if text.isascii() and text.isdigit() else 0 for text in self.texts])
        """How many digits each token has; 0 for other tokens."""
        self.forbidden = frozenset(texts[token] for token in forbidden)

    def of(self, tokens: Sequence[int]) -> list[str]:
        return [self.texts[token] for token in tokens]

    def are_digits(self, tokens: Sequence[int]) -> np.ndarray:
        """Whether each token consists of digits, (T,)."""
        return self.counts[np.array(tokens, dtype=np.int64)] > 0

    def digits(self, tokens: Sequence[int]) -> np.ndarray:
        """The digit of each token; 0 for other tokens, (T,)."""
        return np.array([int(self.texts[token]) if self.counts[token] == 1 else 0 for token in tokens], dtype=np.int64)

    @property
    def several(self) -> str | None:
        """A token of several digits that the model may write; None if there is none."""
        texts = (text for text, count in zip(self.texts, self.counts, strict=True) if count > 1)
        return next((text for text in texts if text not in self.forbidden), None)


class Span(NamedTuple):
    """A row of a forward pass: tokens of a whole row up to `end`, of which those from `first` on are in the pass."""

    whole: int
    first: int
    end: int


class Rows:
    def __init__(
        self,
        wholes: Sequence[Sequence[int]] | torch.Tensor,
        words: Words,
        spans: Sequence[Span] | None = None,
        padding: Sequence[int] = (0,),
        written: bool = False,
        supervised: bool = False,
        generator: np.random.Generator | None = None,
    ) -> None:
        """
        Args:
            wholes: the tokens of whole rows, (R, T) if they are a tensor.
            words: the vocabulary.
            spans: the rows of the forward pass; by default, all tokens of all rows.
            padding: how many tokens stand before the text of each row, or one number for all rows.
            written: whether the model itself wrote the tokens of the forward pass.
            supervised: whether the rows have answers, from which a part can compute what an auxiliary loss needs.
            generator: the source of what is drawn for a training batch; None outside of training.
        """
        self._given, self.words, self._spans = wholes, words, spans
        self.padding, self.written, self.supervised, self.generator = padding, written, supervised, generator
        self._known: dict[Hashable, Any] = {}

    @property
    def wholes(self) -> Sequence[Sequence[int]]:
        """The tokens of whole rows."""
        given = self._given
        return self.once("wholes", given.tolist) if isinstance(given, torch.Tensor) else given

    @property
    def tokens_RT(self) -> torch.Tensor:
        """The tokens of whole rows as a tensor, padded on the right with the first word of the vocabulary."""
        given = self._given
        if isinstance(given, torch.Tensor):
            return given
        return self.once("tokens", lambda: pad_sequence([torch.tensor(row) for row in given], batch_first=True))

    @property
    def spans(self) -> Sequence[Span]:
        """The rows of the forward pass."""
        return self._spans or [Span(row, 0, len(whole)) for row, whole in enumerate(self._given)]

    def spots(self, reverse: str, operands: int) -> RowSpots:
        """The spots of the digits of the rows, stacked (lab/text/places.py).

        Args:
            reverse: which numbers are written lowest digit first; see `Part.read`.
            operands: how many numbers come before an answer.
        """
        return self.once(("spots", reverse, operands), lambda: self._stacked(reverse, operands))

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """What `compute` returns, computed once for these rows. `key`: what it depends on besides the rows."""
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    def _stacked(self, reverse: str, operands: int) -> RowSpots:
        firsts = {span.whole: len(self.wholes[span.whole]) for span in self.spans}
        for span in self.spans:
            firsts[span.whole] = min(firsts[span.whole], span.first)
        read = {whole: self._read(whole, first, reverse, operands) for whole, first in firsts.items()}
        return RowSpots.stacked([read[span.whole].part(span.first, span.end) for span in self.spans])

    def _read(self, whole: int, first: int, reverse: str, operands: int) -> RowSpots:
        words = self.words.of(self.wholes[whole])
        if reverse == "none":
            return row_spots_downward(words, len(words) - first, operands)
        return row_spots(words, len(words) - first, reverse == "answer", operands)

    def of_queries(self, values: Sequence[np.ndarray] | torch.Tensor) -> torch.Tensor:
        """From the values (T, ...) of each whole row, the entries of the tokens in the forward pass, (B, Q, ...). Rows
        with fewer tokens repeat their last entry."""
        if isinstance(values, torch.Tensor) and (block := self.block()) is not None:
            return values[:, block]
        parts = [_tensor(values[span.whole])[span.first : span.end] for span in self.spans]
        longest = max(map(len, parts))
        return torch.stack(
            [torch.cat([part, part[-1:].expand(longest - len(part), *part.shape[1:])]) for part in parts]
        )

    def of_keys(self, values: Sequence[np.ndarray] | torch.Tensor) -> torch.Tensor:
        """From the values (T, ...) of each whole row, the entries of the tokens so far, (B, K, ...), padded with 0."""
        if isinstance(values, torch.Tensor) and (block := self.block()) is not None:
            return values[:, : block.stop]
        return pad_sequence([_tensor(values[span.whole])[: span.end] for span in self.spans], batch_first=True)

    def so_far(self) -> "Rows":
        """The same rows, as if the forward pass began at their first token."""
        spans = None if self._spans is None else [span._replace(first=0) for span in self._spans]
        others = self.padding, self.written, self.supervised, self.generator
        return Rows(self._given, self.words, spans, *others)

    @property
    def in_text(self) -> torch.Tensor:
        """Where each token is in the text of its row, from 0, (R, T); 0 for padding before it."""
        at_T = torch.arange(max(map(len, self._given)), device=self.device)
        at_RT = (at_T - torch.tensor(self.padding, device=self.device)[:, None]).clamp(min=0)
        return at_RT.expand(len(self._given), -1)

    @property
    def device(self) -> torch.device:
        return self._given.device if isinstance(self._given, torch.Tensor) else torch.device("cpu")

    def block(self) -> slice | None:
        """The tokens of the forward pass, if they are the same ones of each row of a tensor."""
        if not isinstance(self._given, torch.Tensor):
            return None
        ends = {span[1:] for span in self.spans}
        whole = [span.whole for span in self.spans] == list(range(len(self._given)))
        return slice(*next(iter(ends))) if whole and len(ends) == 1 else None


def _tensor(values: np.ndarray | torch.Tensor) -> torch.Tensor:
    return values if isinstance(values, torch.Tensor) else torch.from_numpy(values)
