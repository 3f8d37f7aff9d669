"""Rows in batches."""

from lab.errors import TaskError


def batches(count: int, size: int) -> list[slice]:
    """The slices that cut `count` rows into batches of `size`; the last one may be shorter. Raises TaskError for a size
    below 1."""
    check_positive("batch_size", size)
    return [slice(start, start + size) for start in range(0, count, size)]


def check_positive(name: str, number: int) -> None:
    """Raises TaskError unless the number is 1 or more."""
    if number < 1:
        raise TaskError(f"{name}={number}: should be 1 or more")
