"""Position ids: which integer a token gets. They follow from the tokens of the row alone; `position_encodings` says
what attention does with them.

A row is `<begin> digits <operator> digits = digits <end>`, or several such problems one after another, with padding on
either side. One token may hold several digits. If numbers are written least significant digit first, counting the
digits of a run (digits that follow each other) gives the place of each digit:

    tokens       <begin>  5  2  1 <add_integer>  7  9  =  2  2  2 <end>       125 + 97 = 222
    plain              0  1  2  3             4  5  6  7  8  9 10    11
    abacus             0  1  2  3             0  1  2  0  1  2  3     0
    coupled            0  1  2  3             0  1  2  0  1  2  3     4      offset 0
    segments           0  1  1  1             2  2  2  3  3  3  3     0

Numbers as people write them, with an answer that has one digit more than the longest number of the question:

    tokens       <begin>  1  2  5 <add_integer>  9  7  =  0  2  2  2 <end>       125 + 97 = 0222
    countdown          0  3  2  1             0  2  1  5  4  3  2  1     0      offset 0

The id of a token does not depend on later tokens, so it stays the same while a row is generated. Countdown ids of a
question depend on the whole question, but not on the answer.

- plain: counts from the first token that is not padding.
- abacus: 1 + the number of digits before it in the same run; 0 for tokens without digits (McLeish et al. 2024, arXiv
  2405.17399).
- coupled: the same for digits, and 0 for tokens between runs; then all are shifted and taken modulo `largest` (Cho et
  al. 2024, arXiv 2405.20671). If a row has several problems, each has its own window of ids.
- countdown: in the question, 1 + the number of digits after it in the same run; in the answer, counted down from one
  more than the digits of the question's longest run. Shifted like coupled ids.
- counted: like countdown, but the model learns which words are counted (`counted_places`).
- grid: two ids in one, the row of a number in a written calculation and the place of a digit (`grid_places`).

Index hints do not end a run; a hint has the coupled id of the digit after it. A separator such as "." ends a run, but
with `through_point` the point does not, and has the coupled id of the digit before it:

    tokens       <begin>  5  2  .  1 <add_float>  5  7  .  0  =  0  0  .  2 <end>       1.25 + 0.75 = 2.00
    coupled            0  1  2  2  3           0  1  2  2  3  0  1  2  2  3     4       offset 0

In training, all ids of a problem except that of <begin> are shifted by an amount that is drawn for the problem.

Shapes: B rows, T tokens of a row, N problems of a row (or draws for it), V words of the vocabulary.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from lab.config.pretraining import PositionKind
from lab.errors import ModelError
from lab.scratch.grid_places import GridFacts, grid_ids, grid_segments
from lab.scratch.trace_places import TraceFacts, latest
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
    grid: GridFacts | None = None
    """The facts of running totals, if the vocabulary has them."""

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
            grid=GridFacts.of(vocabulary, digits_V),
        )

    def to(self, device: torch.device) -> "TokenFacts":
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, torch.Tensor)}
        return replace(self, **moved)


def position_ids(
    kind: PositionKind, largest: int, ids_BT: torch.Tensor, facts: TokenFacts, drawn_BN: torch.Tensor | None = None
) -> torch.Tensor:
    """The position ids (B, T) of token ids.

    Args:
        kind: the scheme of position ids.
        largest: how many ids there are.
        ids_BT: token ids.
        facts: the facts of the vocabulary.
        drawn_BN: what `draw` returned for a training batch; None outside training.

    Raises ModelError for counted places, which depend on the weights of a model.
    """
    match kind:
        case "plain":
            return plain(ids_BT, facts)
        case "abacus":
            return abacus(ids_BT, facts, drawn_BN)
        case "coupled":
            return coupled(ids_BT, facts, largest, drawn_BN)
        case "countdown":
            return countdown(ids_BT, facts, largest, drawn_BN)
        case "counted":
            raise ModelError("counted places belong to a model: ask its `positions`")
        case "grid":
            if facts.grid is None:
                what = "the vocabulary has no totals"
                raise ModelError(f"model.positions.kind=grid needs data.style=running_totals: {what}")
            return grid_ids(ids_BT, facts.grid, _written_before(ids_BT, facts))


def draw(
    kind: PositionKind, largest: int, ids_BT: torch.Tensor, facts: TokenFacts, generator: np.random.Generator
) -> torch.Tensor | None:
    """The random draws that `position_ids` needs for a training batch (`drawn_BN`); None for ids that are not drawn.

    Raises ModelError if the rows are too long for `largest`, or have too many problems.
    """
    match kind:
        case "plain" | "counted" | "grid":
            return None
        case "abacus":
            return draw_starts(longest_runs(ids_BT, facts), largest, generator)
        case "coupled":
            # one id before the digits, for tokens between runs, and one after them, for <end>
            return draw_offsets(longest_runs(ids_BT, facts) + 2, largest, generator)
        case "countdown":
            # three ids more than the longest run has digits: between runs, for the answer's first digit, and for "="
            return draw_offsets(longest_runs(ids_BT, facts, asked=True) + 3, largest, generator)


def plain(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """0, 1, 2 ... from the first token that is not padding; 0 before it."""
    return (_started(ids_BT, facts).cumsum(-1) - 1).clamp(min=0)


def abacus(ids_BT: torch.Tensor, facts: TokenFacts, starts_BN: torch.Tensor | None = None) -> torch.Tensor:
    """1 + the number of digits before it in the same run, plus the problem's start if given; 0 for other tokens."""
    places_BT = 1 + _written_before(ids_BT, facts)
    if starts_BN is not None:
        places_BT = places_BT + starts_BN.gather(1, _problem(ids_BT, facts))
    return places_BT * (facts.digits[ids_BT] > 0)


def coupled(
    ids_BT: torch.Tensor, facts: TokenFacts, largest: int, offsets_BN: torch.Tensor | None = None
) -> torch.Tensor:
    """Coupled ids, modulo `largest`.

    Between runs, the id is the offset of the problem; in a run, it is the offset + 1 + the number of digits before it.
    <begin> and padding have 0. Offsets that are not given are 0. Words of traces have the ids of their lines
    (`trace_places`).
    """
    ids = _written_before(ids_BT, facts) + facts.has_place[ids_BT]
    if trace := facts.trace:
        is_lined_BT = trace.in_trace(ids_BT) & ~trace.in_number(ids_BT)
        ids = torch.where(is_lined_BT, trace.lines(ids_BT), ids)
    return _shifted(ids, ids_BT, facts, largest, offsets_BN)


def countdown(
    ids_BT: torch.Tensor, facts: TokenFacts, largest: int, offsets_BN: torch.Tensor | None = None
) -> torch.Tensor:
    """Ids of numbers whose highest digit comes first, modulo `largest`; shifted like coupled ids.

    In the question, the id is 0 between runs, and 1 + the number of digits after it in its run. If the longest of these
    runs has n digits, "=" has n + 2, and the digits of the answer have n + 1, n, n - 1 ... down to 0 for <end>.
    """
    after_BT = _written_before(ids_BT.flip(-1), facts).flip(-1)
    longest_BT = longest_runs(ids_BT, facts, asked=True).gather(1, _problem(ids_BT, facts))
    left_BT = longest_BT + 2 - _written_before(ids_BT, facts) - facts.has_place[ids_BT].long()
    ids = torch.where(answered(ids_BT, facts), left_BT.clamp(min=0), after_BT + facts.has_place[ids_BT])
    return _shifted(ids, ids_BT, facts, largest, offsets_BN)


def _shifted(
    ids: torch.Tensor, ids_BT: torch.Tensor, facts: TokenFacts, largest: int, offsets_BN: torch.Tensor | None
) -> torch.Tensor:
    """The ids plus the offsets of their problems, modulo `largest`; 0 for <begin> and padding."""
    if offsets_BN is not None:
        ids = ids + offsets_BN.gather(1, _problem(ids_BT, facts))
    return ids % largest * ((ids_BT != facts.begin) & (ids_BT != facts.pad))


def segments(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """1 in the first number, 2 from the operator on, 3 from "=" on; 0 for <begin>, from <end> on, and in padding.

    The operator and "=" belong to the number after them, because they predict its first digit. In traces, the words of
    a line have different segments (`trace_places`), and so have the kinds of numbers in running totals (`grid_places`).
    """
    if facts.grid:
        return grid_segments(ids_BT, facts.grid)
    begin_BT = latest(ids_BT == facts.begin)
    operator_BT, equals_BT, end_BT = (
        latest(is_BT) > begin_BT for is_BT in (facts.is_operator[ids_BT], ids_BT == facts.equals, ids_BT == facts.end)
    )
    number_BT = torch.where(
        equals_BT, 3 if facts.trace is None else facts.trace.columns(ids_BT), 1 + operator_BT.long()
    )
    return number_BT * ~(end_BT | (ids_BT == facts.begin) | (ids_BT == facts.pad))


def longest_runs(ids_BT: torch.Tensor, facts: TokenFacts, asked: bool = False) -> torch.Tensor:
    """The number of digits in the longest run of each problem, (B, N); 0 for problems that a row does not have.

    `asked`: look at the question alone.
    """
    problem_BT = _problem(ids_BT, facts)
    written_BT = _written_before(ids_BT, facts) + facts.digits[ids_BT]
    if asked:
        written_BT = written_BT * ~answered(ids_BT, facts)
    runs_BN = written_BT.new_zeros(len(ids_BT), int(problem_BT.max()) + 1)
    return runs_BN.scatter_reduce(1, problem_BT, written_BT, "amax")


def answered(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """Whether a token is its problem's "=" or comes after it."""
    return latest(ids_BT == facts.equals) > latest(ids_BT == facts.begin)


def draw_starts(runs_BN: torch.Tensor, largest: int, generator: np.random.Generator) -> torch.Tensor:
    """For each problem, a start (B, N) of its abacus ids, uniform among those that keep all its ids below `largest`.

    Raises ModelError if a run has more digits than there are ids.
    """
    longest = int(runs_BN.max())
    if longest >= largest:
        raise ModelError(
            f"a number of {longest} digits does not fit into abacus ids below {largest}: "
            f"model.positions.largest should be at least {longest + 1}"
        )
    return torch.from_numpy(generator.integers(0, largest - runs_BN.numpy()))


def draw_offsets(spans_BN: torch.Tensor, largest: int, generator: np.random.Generator) -> torch.Tensor:
    """For each problem, an offset (B, N) of its coupled ids, so that no two problems of a row share an id.

    The cycle of ids is cut into N equal windows, which are shuffled and rotated together. Each problem starts at a
    random id in its window, so that all its ids are inside. A single problem can start anywhere.

    Packing makes coupled ids work at lengths beyond training, because distant ids occur together during training.

    Args:
        spans_BN: how many ids each problem needs.
        largest: how many ids there are.
        generator: the source of randomness.

    Raises ModelError if a problem needs more ids than its window has.
    """
    rows, problems = spans_BN.shape
    window, span = largest // problems, int(spans_BN.max())
    if span > window:
        raise ModelError(
            f"data.packing={problems} leaves each problem {window} of {largest} position ids, but one needs {span}: "
            f"model.positions.largest should be at least {problems * span}, or data.packing at most {largest // span}"
        )
    windows_BN = generator.permuted(np.tile(np.arange(problems), (rows, 1)), axis=1)
    jitter_BN = generator.integers(0, window - spans_BN.numpy(), endpoint=True)
    rotation_B1 = generator.integers(0, largest, (rows, 1))
    return torch.from_numpy((windows_BN * window + jitter_BN + rotation_B1) % largest)


def _started(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    return (ids_BT != facts.pad).cumsum(-1) > 0


def _problem(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """For each token, the number of its problem in the row, from 0."""
    return ((ids_BT == facts.begin).cumsum(-1) - 1).clamp(min=0)


def _written_before(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """The number of digits before a token in its run; 0 for tokens that end a run."""
    digits_BT = facts.digits[ids_BT]
    before_BT = digits_BT.cumsum(-1) - digits_BT
    # the count never falls, so its maximum over all ends of runs so far is its value at the latest one
    return before_BT - (before_BT * facts.ends_run[ids_BT]).cummax(-1).values
