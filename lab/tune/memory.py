"""Estimates the memory of a training step before the training starts, and refuses one that does not fit.

What a step keeps for its backward pass grows with the number of tokens and, where attention keeps a score for each pair
of tokens, with their square. So it is measured on two short rows and extrapolated to the longest ones.

Shapes: R rows of a forward pass, T tokens of the longest one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from accelerate.utils import send_to_device

from lab.drawing.tables import counted
from lab.models.free_memory import OPTIMIZER, check_free, free_memory, in_words, kept_by
from lab.tune.problem_sets import Row
from lab.tune.trainer import Training

_MEASURED = 400
"""Rows of more tokens are not measured: one of them might already need too much."""


class Need(NamedTuple):
    """What a training step needs."""

    rows: int
    """Rows of a forward pass, R."""
    tokens: int
    """Tokens of the longest row, T."""
    a_row: float
    """Bytes that are kept for each row until the backward pass."""
    fixed: float
    """Bytes for gradients and for the optimizer's state, whatever the rows are."""

    @property
    def bytes(self) -> float:
        return self.fixed + self.rows * self.a_row

    def __str__(self) -> str:
        return f"a training step ({counted(self.rows, 'row')} of up to {self.tokens:,} tokens at a time)"


def check_memory(training: Training, rows: Sequence[Row], packing: int = 1, trained: int | None = None) -> None:
    """Refuses a training whose steps need more memory than is free, and says in one line if they need much of it.

    Args:
        training: the training; its model may still be without the adapters that will be trained.
        rows: some of its rows, the longest among them.
        packing: how many of them make one row of a forward pass.
        trained: how many weights are trained; by default, those of the model that have gradients.

    Raises ModelError, in one line, if a step needs more than is free.
    """
    free, need = free_memory(training.model.device), needed(training, rows, packing, trained)
    check_free(need.bytes, free, str(need), lambda: _advice(training, need, free, packing))


def needed(training: Training, rows: Sequence[Row], packing: int = 1, trained: int | None = None) -> Need:
    """What a step of the training needs if its rows are as long as the longest of `rows`; see `check_memory`."""
    by_length, size = sorted(rows, key=_tokens), training.config.micro_batch_size
    worst = by_length[-min(len(by_length) // packing * packing, size) :]
    together = training.collate(worst)["input_ids"].numel() * size / len(worst)  # rows may share their beginnings
    longest = packing * _tokens(by_length[-1])
    samples = [by_length[:packing], *([short[-packing:]] if (short := _short(by_length, packing)) else [])]
    if longest > _MEASURED:
        # shares of a row, because long rows have more answer tokens, whose logits weigh most in a large vocabulary
        shares = _MEASURED / 4 / longest, _MEASURED / longest
        samples = [[cut(row, share) for row in by_length[-packing:]] for share in shares]
    a, b = _fitted([(packing * _tokens(sample[-1]), kept_bytes(training, sample)) for sample in samples])
    if trained is None:
        trained = sum(weight.numel() for weight in training.model.parameters() if weight.requires_grad)
    in_all = together * (a + b * longest)
    return Need(size // packing, longest, in_all * packing / size, OPTIMIZER * trained)


def kept_bytes(training: Training, rows: Sequence[Row]) -> int:
    """The bytes that a forward pass over these rows keeps for the backward pass, without the weights."""
    inputs: Any = send_to_device(training.collate(list(rows)), training.model.device)
    return kept_by(lambda: training.answer_loss(training.model, inputs), list(training.model.parameters()))


def _advice(training: Training, need: Need, free: float, packing: int) -> str:
    """What to change so that a step fits, at a peak of twice what it keeps."""
    batch, fits = training.config.batch_size, int((free / 2 - need.fixed) / need.a_row)
    smaller = [size for size in range(packing, fits * packing + 1, packing) if batch % size == 0]
    if smaller:
        return f"use training.micro_batch_size={smaller[-1]} or less"
    return f"one row alone needs {in_words(need.a_row)}, so use shorter data.lengths or other data.tasks"


def cut(row: Row, share: float) -> Row:
    """The beginnings of a row's prompt and of its completion: so large a share of each, and at least one token."""
    prompt, completion = (row[key][: max(1, round(share * len(row[key])))] for key in ("prompt_ids", "completion_ids"))
    return {"index": row["index"], "prompt_ids": prompt, "completion_ids": completion}


def _short(by_length: Sequence[Row], packing: int) -> Sequence[Row]:
    """The rows that are short enough to be measured and longer than the shortest ones."""
    return [row for row in by_length if _tokens(by_length[0]) < _tokens(row) <= _MEASURED // packing]


def _fitted(points: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """a and b of bytes = a T + b T^2 through one or two points (T, bytes); neither is negative."""
    (first, low), (last, high) = points[0], points[-1]
    if first == last:
        return low / first, 0.0
    b = max(0.0, (high / last - low / first) / (last - first))
    return max(0.0, high / last - b * last), b


def _tokens(row: Row) -> int:
    return len(row["prompt_ids"]) + len(row["completion_ids"])
