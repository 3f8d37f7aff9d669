"""Learns `encode` and `decode` as tables, from practice problems. From then on the lab uses only the tables.

A token of the prompt must be a one-to-one function of at most two of the twenty digits, so that it contains no sum and
no carry. A decimal place of the answer must be a function of one generated token. The submission's own functions are
not used after that: they never see a problem that counts.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from lab.smallest_adder.contract import DIGITS, Pair

PLACES = DIGITS + 2
"""The number of decimal places of an answer that are looked at; a right answer has at most eleven."""
BASES = 24
"""Number of generated rows in which one token at a time is replaced, to see which decimal places it changes."""


class NotCopied(ValueError):  # noqa: N818
    """`encode` or `decode` computes something, but may only copy digits."""


def digits_of(pairs: Sequence[Pair]) -> np.ndarray:
    """(problems, 20): the digits of a, from the ones up, then those of b."""
    numbers = np.array(pairs, dtype=np.int64)
    return (numbers[:, :, None] // 10 ** np.arange(DIGITS) % 10).reshape(len(pairs), 2 * DIGITS)


def digit_name(place: int) -> str:
    """The name of a digit of a problem, such as "digit 0 of a"."""
    return f"digit {place % DIGITS} of {'ab'[place // DIGITS]}"


def neighbours(pairs: Sequence[Pair]) -> list[tuple[int, int, Pair]]:
    """(which pair, which digit, the pair with that digit changed), for each digit and its nine other values."""
    changed = []
    for (which, (a, b)), place, digit in product(enumerate(pairs), range(2 * DIGITS), range(10)):
        power = 10 ** (place % DIGITS)
        more = (digit - (a, b)[place // DIGITS] // power % 10) * power
        if more:
            changed.append((which, place, (a + more, b) if place < DIGITS else (a, b + more)))
    return changed


class Writing(NamedTuple):
    """`encode` as tables: for each token of the prompt, the digits that it depends on, and the token for each of their
    values."""

    places: list[tuple[int, ...]]
    tokens: list[dict[int, int]]

    @classmethod
    def learned(cls, pairs: Sequence[Pair], prompts: np.ndarray, reach: Sequence[set[int]]) -> "Writing":
        """The tables, from prompts (problems, tokens) and the digits that were seen to change each token (`reach`).

        Raises NotCopied if a token is not a one-to-one function of at most two digits, or if a digit is in no token.
        """
        digits, places, tables = digits_of(pairs), [], []
        for position, found in enumerate(reach):
            if len(found) > 2:
                raise NotCopied(f"token {position} depends on {len(found)} digits; a token may copy at most two")
            places.append(tuple(sorted(found)))
            named = " and ".join(map(digit_name, places[-1])) or "no digit"
            table = _function(_key(digits, places[-1]).tolist(), prompts[:, position].tolist())
            if table is None:
                raise NotCopied(f"token {position} is not a function of {named} alone")
            if places[-1] and len(set(table.values())) < len(table):
                raise NotCopied(f"token {position} does not determine {named}: it is made of them, and is not a copy")
            tables.append(table)
        missing = set(range(2 * DIGITS)).difference(*places)
        if missing:
            raise NotCopied(f"no token depends on {digit_name(min(missing))}")
        return cls(places, tables)

    def of(self, pairs: Sequence[Pair]) -> np.ndarray:
        """The prompts (problems, tokens)."""
        digits = digits_of(pairs)
        columns = [
            [table[key] for key in _key(digits, places).tolist()]
            for places, table in zip(self.places, self.tokens, strict=True)
        ]
        return np.array(columns, dtype=np.int64).T


def reach(before: np.ndarray, changed: Sequence[tuple[int, int, object]], after: np.ndarray) -> list[set[int]]:
    """For each output column, the inputs that were seen to change it. For `encode`, columns are tokens of the prompt
    and inputs are digits; for `decode`, columns are decimal places and inputs are generated tokens.

    Args:
        before: the outputs (rows, columns) for the unchanged inputs.
        changed: (which row of `before`, which input was changed, anything) for each row of `after`.
        after: the outputs (changes, columns) for the changed inputs.
    """
    found: list[set[int]] = [set() for _ in range(before.shape[1])]
    for (which, place, _), row in zip(changed, after, strict=True):
        for column in np.flatnonzero(before[which] != row):
            found[column].add(place)
    return found


Decode = Callable[[list[list[int]]], list[int | str]]


class Reading(NamedTuple):
    """`decode` as tables: for each decimal place, the position of the generated token that it is read from, and the
    digit for each token there.

    Tokens after a stop token are not read.
    """

    positions: list[int | None]
    digits: list[dict[int, int]]
    stops: set[int]

    @classmethod
    def learned(cls, outputs: np.ndarray, decode: Decode, seed: int) -> "Reading":
        """The tables, from what a model has written (problems, tokens). `seed` draws the rows whose tokens are
        exchanged.

        Raises NotCopied if a decimal place is not a function of one token, or if tokens stand for the same digits.
        """
        drawn = np.random.default_rng(seed)
        stops = _stops(outputs, decode, drawn)
        rows = up_to_stop(outputs, stops)
        bases = rows[drawn.permutation(len(rows))[:BASES]]
        swaps = [(which, *swap) for which, base in enumerate(bases) for swap in _swaps(base, rows, stops)]
        swapped = [row for *_, row in swaps]
        answers, before, after = decode(rows.tolist()), decode(bases.tolist()), decode(swapped)
        told = [k for k, swap in enumerate(swaps) if type(after[k]) is int and type(before[swap[0]]) is int]
        found = reach(places_of(before), [swaps[k] for k in told], places_of([after[k] for k in told]))
        positions, tables = [], []
        seen = list(zip([*rows.tolist(), *swapped], [*answers, *after], strict=True))
        for place, several in enumerate(found):
            if len(several) > 1:
                needed = f"the generated tokens {', '.join(map(str, sorted(several)))}, not on one alone"
                raise NotCopied(f"decimal place {place} of the answer depends on {needed}")
            # a place that no swap has changed is the same in all rows, or zero after a stop token
            position, table = _table(place, [*several] or [None, *range(rows.shape[1])], seen)
            positions.append(position)
            tables.append(dict.fromkeys(stops, 0) | table)
        _one_to_one(positions, tables, stops)
        return cls(positions, tables, stops)

    def answers(self, outputs: np.ndarray) -> np.ndarray:
        """The sums (problems,); -1 if one of the tokens was never seen at its position."""
        rows = up_to_stop(outputs, self.stops)
        total, unknown = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=bool)
        for place, (position, table) in enumerate(zip(self.positions, self.digits, strict=True)):
            tokens = rows[:, position] if position is not None else np.zeros(len(rows), dtype=np.int64)
            digits = np.array([table.get(token, -1) for token in tokens.tolist()])
            unknown |= digits < 0
            total += digits * 10**place
        return np.where(unknown, -1, total)

    def drafts(self, sums: np.ndarray, written: np.ndarray, right: np.ndarray) -> np.ndarray | None:
        """What a model would write (problems, tokens) for right answers `sums`, given that it wrote `written`
        (problems, tokens) for the sums `right`.

        None if it is unknown, because a token's digits do not occur in `right`.
        """
        digits, wanted = places_of(right.tolist()), places_of(sums.tolist())
        columns = []
        for position in range(written.shape[1]):
            places = [place for place, source in enumerate(self.positions) if source == position]
            key, asked = _key(digits, places), _key(wanted, places)
            table = dict(zip(key.tolist(), written[:, position].tolist(), strict=True))
            if not set(asked.tolist()) <= table.keys():
                return None
            columns.append([table[k] for k in asked.tolist()])
        return np.array(columns, dtype=np.int64).T


def _one_to_one(positions: Sequence[int | None], tables: Sequence[dict[int, int]], stops: set[int]) -> None:
    """Raises NotCopied if two tokens at a position stand for the same digits. Several tokens may stand for zeros alone,
    because leading zeros may be written or left out."""
    for position in set(positions) - {None}:
        read = [table for source, table in zip(positions, tables, strict=True) if source == position]
        named = [[table.get(token) for table in read] for token in read[0] if token not in stops]
        codes = [tuple(code) for code in named if any(code)]
        if len(set(codes)) < len(codes):
            raise NotCopied(f"several tokens at {position} name the same digits: decode does arithmetic with them")


def places_of(answers: Sequence[int | str]) -> np.ndarray:
    """Digits of answers, (answers, PLACES), from the ones up. The last column holds all higher digits as one number.

    A text (the reason why `decode` gave no int) and a negative number both count as -1.
    """
    numbers = [min(max(answer, -1), 10**15) if isinstance(answer, int) else -1 for answer in answers]
    values = np.array(numbers, dtype=np.int64)
    low = values[:, None] // 10 ** np.arange(PLACES - 1) % 10
    return np.concatenate([low, (values // 10 ** (PLACES - 1))[:, None]], axis=1)


def up_to_stop(outputs: np.ndarray, stops: set[int]) -> np.ndarray:
    """The rows, with all tokens after a stop token replaced by that token."""
    rows = outputs.copy()
    for position in range(1, rows.shape[1]):
        stopped = np.isin(rows[:, position - 1], list(stops))
        rows[stopped, position] = rows[stopped, position - 1]
    return rows


def _key(digits: np.ndarray, places: Sequence[int]) -> np.ndarray:
    return digits[:, list(places)] @ 10 ** np.arange(len(places))


def _function(keys: Sequence[int], values: Sequence[int]) -> dict[int, int] | None:
    """The value of each key, or None if some key has several."""
    table = dict(zip(keys, values, strict=True))
    return table if all(table[key] == value for key, value in zip(keys, values, strict=True)) else None


def _stops(outputs: np.ndarray, decode: Decode, drawn: np.random.Generator) -> set[int]:
    """Tokens after which nothing changes the answer."""
    found = set()
    for token in np.unique(outputs).tolist():
        rows = outputs[drawn.integers(0, len(outputs), 6)].copy()
        rows[:, 0] = token
        answers = decode(rows.tolist())
        if len(set(map(str, answers))) == 1 and outputs.shape[1] > 1 and len(np.unique(rows, axis=0)) > 1:
            found.add(token)
    return found if len(found) < len(np.unique(outputs)) else set()


def _swaps(base: np.ndarray, rows: np.ndarray, stops: set[int]) -> list[tuple[int, list[int]]]:
    """All rows that differ from `base` in one token: (position, changed row), for each position before a stop token and
    each other token that some row of `rows` has there and that is no stop token."""
    swaps = []
    for position in range(len(base)):
        if base[position] in stops:
            break
        for token in np.unique(rows[:, position]).tolist():
            if token != base[position] and token not in stops:
                row = base.tolist()
                row[position] = token
                swaps.append((position, row))
    return swaps


def _table(
    place: int, positions: Sequence[int | None], seen: Sequence[tuple[list[int], int | str]]
) -> tuple[int | None, dict[int, int]]:
    """The first of `positions` whose token determines the digit of a place, and the digit for each token.

    Raises NotCopied if there is none.
    """
    rows = [(row, answer) for row, answer in seen if type(answer) is int]
    digits = places_of([answer for _, answer in rows])[:, place].tolist()
    for position in positions:
        tokens = [row[position] if position is not None else 0 for row, _ in rows]
        if (table := _function(tokens, digits)) is not None:
            return position, table
    raise NotCopied(f"decimal place {place} of the answer is not a function of one generated token")
