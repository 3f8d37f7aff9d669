"""Which integer a token gets, from the tokens of its row alone. What attention does with it: `position_encodings`.

A row is `<begin> digits <operator> digits = digits <end>`, or several such problems one after another, with padding on
either side. Digits of k places may be one token. What is written least significant digit first has, in a run of digits,
the place of a digit as its number:

    tokens       <begin>  5  2  1 <add_integer>  7  9  =  2  2  2 <end>       125 + 97 = 222
    plain              0  1  2  3             4  5  6  7  8  9 10    11
    abacus             0  1  2  3             0  1  2  0  1  2  3     0
    coupled            0  1  2  3             0  1  2  0  1  2  3     4      offset 0
    segments           0  1  1  1             2  2  2  3  3  3  3     0

Everything is causal: the number of a token does not depend on later tokens, so it is the same while a row is generated.

- plain: counted from the first token that is not padding.
- randomised: an ordered draw without repetition from 0..largest-1, one for each token (Ruoss et al. 2023, arXiv
  2305.16843). While training it is drawn; elsewhere it is spread evenly, so that a result can be had again.
- abacus: 1 + digits written before in the same run, 0 where there is no digit (McLeish et al. 2024, arXiv 2405.17399).
- coupled: the same for digits, and 0 for what stands between runs, all shifted and taken modulo `largest` (Cho et al.
  2024, arXiv 2405.20671). Several problems in one row have windows of ids of their own.

A run goes on through index hints, whose coupled ids are those of the digits that they stand before. A separator such
as "." ends it; but with `through_point` the point does not, and has the coupled id of the digit before it:

    tokens       <begin>  5  2  .  1 <add_float>  5  7  .  0  =  0  0  .  2 <end>       1.25 + 0.75 = 2.00
    coupled            0  1  2  2  3           0  1  2  2  3  0  1  2  2  3     4       offset 0

While training, all numbers of a problem but that of <begin> are shifted by an amount drawn for it.

Shapes: B rows, T tokens of a row, N problems of a row (or draws for it), V words of the vocabulary.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from lab.config.pretraining import PositionKind
from lab.errors import ModelError
from lab.text.notation import BEGIN, END, EQUALS, PAD

_HINT = re.compile(r"<\d+\.\d+>")
_OPERATOR = re.compile(r"<.+>")


@dataclass(frozen=True)
class TokenFacts:
    """What position ids need to know of every word of a vocabulary; tensors are (V,)."""

    digits: torch.Tensor
    """How many digits the word has; 0 if it is not of digits."""
    is_operator: torch.Tensor
    ends_run: torch.Tensor
    """Whether digits after it are another number, or another part of one. Not so after hints, nor at <end>."""
    has_place: torch.Tensor
    """Digits, hints, and <end>, which is counted like one more digit of the answer."""
    pad: int
    begin: int
    end: int
    equals: int

    @classmethod
    def of(cls, vocabulary: Sequence[str], through_point: bool = False) -> "TokenFacts":
        """Digits are words of digits, hints are like <1.3>, operators are all other words in < > without a role.

        `through_point`: "." ends no run, so that decimals and the integer part after them are counted as one number.
        Raises ModelError when a word that rows cannot do without is missing.
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
        # the device is named because models are loaded where tensors have no data by default
        return cls(
            torch.tensor(counts, device="cpu"),
            torch.tensor(operators, device="cpu"),
            torch.tensor(ends, device="cpu"),
            torch.tensor(places, device="cpu"),
            *(ids[word] for word in (PAD, BEGIN, END, EQUALS)),
        )

    def to(self, device: torch.device) -> "TokenFacts":
        return replace(
            self,
            digits=self.digits.to(device),
            is_operator=self.is_operator.to(device),
            ends_run=self.ends_run.to(device),
            has_place=self.has_place.to(device),
        )


def position_ids(
    kind: PositionKind,
    largest: int,
    ids_BT: torch.Tensor,
    facts: TokenFacts,
    drawn_BN: torch.Tensor | None = None,
    row_length: int | None = None,
) -> torch.Tensor:
    """The position ids (B, T) of token ids (B, T), as the kind says; with what was drawn for training, or without.

    `row_length` is how many tokens a row has in the end, padding included; T where it is not given. Randomised ids that
    were not drawn depend on it, others do not.
    """
    match kind:
        case "plain":
            return plain(ids_BT, facts)
        case "randomised":
            if drawn_BN is None:
                return evenly_spread(ids_BT, facts, largest, row_length or ids_BT.shape[1])
            return drawn_BN.gather(1, plain(ids_BT, facts))
        case "abacus":
            return abacus(ids_BT, facts, drawn_BN)
        case "coupled":
            return coupled(ids_BT, facts, largest, drawn_BN)


def draw(
    kind: PositionKind, largest: int, ids_BT: torch.Tensor, facts: TokenFacts, generator: np.random.Generator
) -> torch.Tensor | None:
    """What `position_ids` takes for a training batch, all of it from the generator; plain ids have nothing to draw.

    Raises ModelError when the rows are too long for `largest`, or have too many problems.
    """
    rows, tokens = ids_BT.shape
    match kind:
        case "plain":
            return None
        case "randomised":
            return draw_ordered(rows, tokens, largest, generator)
        case "abacus":
            return draw_starts(longest_runs(ids_BT, facts), largest, generator)
        case "coupled":
            # one id before the digits, for what stands between runs, and one after them, for <end>
            return draw_offsets(longest_runs(ids_BT, facts) + 2, largest, generator)


def plain(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """0, 1, 2 ... from the first token on that is not padding; 0 before it."""
    return (_started(ids_BT, facts).cumsum(-1) - 1).clamp(min=0)


def evenly_spread(ids_BT: torch.Tensor, facts: TokenFacts, largest: int, row_length: int) -> torch.Tensor:
    """Randomised ids that are not random: the middles of as many equal slices of 0..largest-1 as the row has tokens.

    Padding on the left is not counted: a row has the same ids whatever it is generated beside.
    Raises ModelError when a row has more tokens than there are ids.
    """
    _check_room(row_length, largest)
    tokens_B1 = row_length - (~_started(ids_BT, facts)).sum(-1, keepdim=True)
    return (2 * plain(ids_BT, facts) + 1) * largest // (2 * tokens_B1.clamp(min=1))


def abacus(ids_BT: torch.Tensor, facts: TokenFacts, starts_BN: torch.Tensor | None = None) -> torch.Tensor:
    """1 + digits written before in the same run, and the start of the problem if one is given; 0 for other tokens."""
    places_BT = 1 + _written_before(ids_BT, facts)
    if starts_BN is not None:
        places_BT = places_BT + starts_BN.gather(1, _problem(ids_BT, facts))
    return places_BT * (facts.digits[ids_BT] > 0)


def coupled(
    ids_BT: torch.Tensor, facts: TokenFacts, largest: int, offsets_BN: torch.Tensor | None = None
) -> torch.Tensor:
    """Modulo `largest`: the problem's offset between runs, 1 more and the digits written before it in a run.

    0 for <begin> and padding. Without offsets they are 0.
    """
    ids = _written_before(ids_BT, facts) + facts.has_place[ids_BT]
    if offsets_BN is not None:
        ids = ids + offsets_BN.gather(1, _problem(ids_BT, facts))
    return ids % largest * ((ids_BT != facts.begin) & (ids_BT != facts.pad))


def segments(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """1 in the first number, 2 from the operator on, 3 from "=" on; 0 for <begin>, from <end> on, and in padding.

    The operator and "=" are of the number after them, as they predict its first digit.
    """
    begin_BT = _latest(ids_BT == facts.begin)
    operator_BT, equals_BT, end_BT = (
        _latest(is_BT) > begin_BT for is_BT in (facts.is_operator[ids_BT], ids_BT == facts.equals, ids_BT == facts.end)
    )
    number_BT = torch.where(equals_BT, 3, 1 + operator_BT.long())
    return number_BT * ~(end_BT | (ids_BT == facts.begin) | (ids_BT == facts.pad))


def longest_runs(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """Digits of the longest run of each problem, (B, N), N being the problems of the fullest row; 0 where is none."""
    problem_BT = _problem(ids_BT, facts)
    written_BT = _written_before(ids_BT, facts) + facts.digits[ids_BT]
    runs_BN = written_BT.new_zeros(len(ids_BT), int(problem_BT.max()) + 1)
    return runs_BN.scatter_reduce(1, problem_BT, written_BT, "amax")


def draw_ordered(rows: int, tokens: int, largest: int, generator: np.random.Generator) -> torch.Tensor:
    """For each row an ordered draw without repetition of `tokens` out of 0..largest-1, (rows, tokens).

    Raises ModelError when there are more tokens than ids.
    """
    _check_room(tokens, largest)
    shuffled = generator.random((rows, largest)).argsort(axis=1)
    return torch.from_numpy(np.sort(shuffled[:, :tokens], axis=1))


def draw_starts(runs_BN: torch.Tensor, largest: int, generator: np.random.Generator) -> torch.Tensor:
    """For each problem a start (B, N) of its abacus ids, uniform among those that keep its ids below `largest`.

    Raises ModelError when a run has no room.
    """
    longest = int(runs_BN.max())
    if longest >= largest:
        raise ModelError(
            f"a number of {longest} digits has no room in abacus ids below {largest}: "
            f"model.positions.largest should be at least {longest + 1}"
        )
    return torch.from_numpy(generator.integers(0, largest - runs_BN.numpy()))


def draw_offsets(spans_BN: torch.Tensor, largest: int, generator: np.random.Generator) -> torch.Tensor:
    """For each problem an offset (B, N) of its coupled ids, so that no two problems of a row have an id in common.

    The cycle of ids is cut in N equal windows, which are shuffled and rotated together; a problem, whose ids span so
    many, begins anywhere in its window that keeps it inside. One problem alone begins anywhere.
    Packing is what makes coupled ids work at lengths that were not trained on: ids that are far apart meet in training.
    Raises ModelError when a span does not fit.
    """
    rows, problems = spans_BN.shape
    window, span = largest // problems, int(spans_BN.max())
    if span > window:
        raise ModelError(
            f"data.packing={problems} leaves each problem {window} of {largest} position ids, and one needs {span}: "
            f"model.positions.largest should be at least {problems * span}, or data.packing at most {largest // span}"
        )
    windows_BN = generator.permuted(np.tile(np.arange(problems), (rows, 1)), axis=1)
    jitter_BN = generator.integers(0, window - spans_BN.numpy(), endpoint=True)
    rotation_B1 = generator.integers(0, largest, (rows, 1))
    return torch.from_numpy((windows_BN * window + jitter_BN + rotation_B1) % largest)


def _started(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    return (ids_BT != facts.pad).cumsum(-1) > 0


def _problem(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """Which problem of its row a token is of, from 0 up."""
    return ((ids_BT == facts.begin).cumsum(-1) - 1).clamp(min=0)


def _written_before(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """Digits before a token in its run; 0 for what ends a run."""
    digits_BT = facts.digits[ids_BT]
    before_BT = digits_BT.cumsum(-1) - digits_BT
    # digits only become more, so the most at any end of a run is what was there at the latest
    return before_BT - (before_BT * facts.ends_run[ids_BT]).cummax(-1).values


def _latest(is_BT: torch.Tensor) -> torch.Tensor:
    """The latest place up to a token where something was so, -1 if nowhere."""
    places_T = torch.arange(is_BT.shape[1], device=is_BT.device)
    return torch.where(is_BT, places_T, -1).cummax(-1).values


def _check_room(tokens: int, largest: int) -> None:
    if tokens > largest:
        raise ModelError(
            f"a row of {tokens} tokens has no ordered draw of {largest} randomised ids: "
            f"model.positions.largest should be at least {tokens}"
        )
