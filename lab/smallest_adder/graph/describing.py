"""A few numbers that describe a tensor, if it is a ramp, a wave or a mask. Any other table takes all of its numbers.

Numbers count as equal even if they differ in their last digits, because these depend on rounding. Information that is
hidden in such digits is erased by shaking (graph/program.py).
"""

import math
from collections.abc import Sequence

import torch

from lab.smallest_adder.graph.graph import real_parts
from lab.smallest_adder.graph.program import LOUDEST, SHAKEN

MOST_TO_DESCRIBE = 6
"""The most numbers that the description of a tensor in the code may take."""

ROUNDED = SHAKEN / 2
"""How far a line may be from the wave that describes it, relative to its largest number."""
EQUAL = 4e-7
"""The relative difference up to which numbers count as equal. The last digits of float32 are rounded differently."""


class Unregistered(ValueError):  # noqa: N818
    """A tensor whose numbers are not parameters, and cannot be described by a few numbers."""


def described(tensor: torch.Tensor) -> list[float]:
    """A few numbers that describe a tensor from outside, line by line, along the axis that takes the fewest numbers.

    Raises Unregistered if it takes more than `MOST_TO_DESCRIBE` numbers.
    """
    tensor = real_parts(tensor)
    if tensor.numel() == 1:
        return [float(tensor)]
    tensor = tensor.double().squeeze()
    if _diagonal(tensor):  # from the diagonal on, so that nothing depends on the number of tokens
        ways = [_told([*_lines(tensor[..., 0, :])[0], *_lines(tensor[..., :, 0])[0]], [])]
    else:
        ways = [_told(*_lines(tensor.movedim(axis, -1))) for axis in range(tensor.ndim)]
    numbers, places = min(ways, key=lambda way: len(way[0]))
    if len(numbers) > MOST_TO_DESCRIBE:
        raise Unregistered(f"a tensor of shape {tuple(tensor.shape)} takes {len(numbers)} numbers to describe")
    return [*numbers, *places]


def _told(lines: Sequence[torch.Tensor], order: list[float]) -> tuple[list[float], list[float]]:
    """The numbers of different lines and of the order in which they come, and the places where their pieces begin."""
    rates = _geometric(lines)
    pieces = [(rates, [])] if rates else [_line(line) for line in lines]
    if order != sorted(set(order)):  # some line occurs more than once
        pieces.append(_segments(order))
    return [number for numbers, _ in pieces for number in numbers], [place for _, places in pieces for place in places]


def _lines(tensor: torch.Tensor) -> tuple[list[torch.Tensor], list[float]]:
    """The different lines along the last axis, by first appearance, and which of them stands in each place."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    found, which = torch.unique(rows, dim=0, return_inverse=True)
    order = list(dict.fromkeys(which.tolist()))
    return [found[place] for place in order], [float(order.index(place)) for place in which.tolist()]


def _diagonal(tensor: torch.Tensor) -> bool:
    """Whether the tensor is constant along its diagonals, as masks are."""
    large = tensor.ndim > 1 and min(tensor.shape[-2:]) > 2
    return large and bool((tensor[..., 1:, 1:] == tensor[..., :-1, :-1]).all())


def _line(line: torch.Tensor) -> tuple[list[float], list[float]]:
    """The numbers that describe a line, and the places where its pieces begin."""
    numbers, places = _segments(line.tolist())
    if len(numbers) > 2 and len(line) > 4 and _is_wave(line):
        rate = _rate(line)
        return (line[:4].tolist() if rate is None else [rate]), []  # amplitude, phase, rate and decay
    return numbers, places


def _geometric(lines: Sequence[torch.Tensor]) -> list[float]:
    """The two numbers of sines and cosines whose rates fall by the same factor from 1 on, as in RoPE and sinusoids: the
    first rate, and the base of which the rates are powers (10,000). Empty for other lines."""
    if len(lines) < 4 or len(lines[0]) < 4:
        return []
    sines, cosines = ([line for line in lines if abs(float(line[0]) - start) < 1e-6] for start in (0, 1))
    if len(sines) < 2 or len(sines) + len(cosines) < len(lines) or len(cosines) > len(sines):
        return []
    rates = sorted((rate for line in sines if (rate := _rate(line)) is not None), reverse=True)
    if len(rates) < len(sines):
        return []
    base = float(f"{(rates[0] / rates[1]) ** len(rates):.4g}")
    turns = torch.arange(len(lines[0]), dtype=torch.float64)
    expected = [rates[0] * base ** (-place / len(rates)) * turns for place in range(len(rates))]
    return [rates[0], base] if all(any(_alike(line, wave) for wave in expected) for line in lines) else []


def _rate(line: torch.Tensor) -> float | None:
    """The angle from one number to the next in a plain sine or cosine, to the precision that the line gives."""
    turns = torch.arange(len(line), dtype=torch.float64)
    first, second = line[:2].clamp(-1, 1).tolist()
    begins_at_one = abs(first - 1) < 1e-6
    rate = math.acos(second) if begins_at_one else math.asin(second)
    wave, slope = (torch.cos, lambda x: -torch.sin(x)) if begins_at_one else (torch.sin, torch.cos)
    for last in sorted({4, 8, 16, 32, len(line)}):  # more turns give it more precisely, once it is nearly known
        short = turns[:last]
        for _ in range(3):
            steep = short * slope(rate * short)
            rate += float((steep * (line[:last] - wave(rate * short))).sum() / steep.square().sum().clamp_min(1e-30))
    return rate if _alike(line, rate * turns) else None


def _alike(line: torch.Tensor, angles: torch.Tensor) -> bool:
    return any(bool((line - wave(angles)).abs().max() < ROUNDED * line.abs().max()) for wave in (torch.sin, torch.cos))


def _segments(line: list[float]) -> tuple[list[float], list[float]]:
    """The numbers of a line in pieces: start and step of a ramp, or a single number; and where the pieces begin."""
    told, places, place = [], [], 0
    while place < len(line):
        step = line[place + 1] - line[place] if place + 1 < len(line) else 0.0
        if not math.isfinite(step):
            step = 0.0
        end = place + 1
        while end < len(line) and near(line[end], line[end - 1] + step):
            end += 1
        is_ramp = end - place > 2
        told += [line[place], step] if is_ramp and step else [line[place]]
        places += [float(place)] if place else []
        place = end if is_ramp else place + 1
    return told, places


def near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=EQUAL)  # an infinity is close only to itself


def _is_wave(line: torch.Tensor) -> bool:
    """Whether each number is the same linear function of the two before it, as in sines, exponentials and ramps."""
    if not line.isfinite().all() or not line.any() or line.abs().max() > LOUDEST:
        return False
    before = torch.stack([line[place : place - 2] for place in range(2)], dim=1)
    rule = torch.linalg.lstsq(before, line[2:], driver="gelsd").solution
    nearby = torch.cat([before, line[2:, None]], 1).abs().amax(1)  # so that no small tail hides behind a large number
    return bool(((before @ rule - line[2:]).abs() <= ROUNDED * nearby).all())
