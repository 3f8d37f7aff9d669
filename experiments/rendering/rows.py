"""The rows of a results file, and the one statistic that all findings use.

A results file is CSV. A row is one measurement, in one of three forms; all its other columns say of what.

    right, n              how many of n problems are right. `seed` tells trainings apart. `problems` is "own" if a seed
                          was asked its own problems; otherwise, all seeds were asked the same
    value, low, high      a share in percent with its 95 % interval, as it was published, where single seeds were not
                          kept; `seeds` says how many there were
    any other numbers     such as tokens or steps
"""

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lab.errors import RunError
from lab.numbers.statistics import Estimate, seeds_proportion, student_mean

Row = dict[str, str]


class Rows(NamedTuple):
    """Some rows of a file."""

    file: Path
    columns: tuple[str, ...]
    rows: Sequence[Row]

    def where(self, **settings: object) -> "Rows":
        """The rows with these settings. A setting is a value, or a list of the allowed values.

        Raises RunError if the file has no such column, or no such row.
        """
        for name in settings:
            self.check(name)
        allowed = {name: _texts(value) for name, value in settings.items()}
        found = [row for row in self.rows if all(row[name] in values for name, values in allowed.items())]
        if not found:
            raise RunError(f"{self.file}: no row with {_said(settings)}")
        return self._replace(rows=found)

    def check(self, column: str) -> None:
        """Raises RunError unless the file has this column."""
        if column not in self.columns:
            raise RunError(f"{self.file}: no column {column}; it has {', '.join(self.columns)}")

    def distinct(self, column: str) -> list[str]:
        """The values of a column, each once, in the order of the rows."""
        self.check(column)
        return list(dict.fromkeys(row[column] for row in self.rows))

    def by(self, column: str) -> dict[str, "Rows"]:
        """The rows of each value of a column."""
        return {value: self.where(**{column: value}) for value in self.distinct(column)}

    def seeds(self) -> list["Rows"]:
        """The rows of each seed; all rows together if there are no seeds."""
        return list(self.by("seed").values()) if "seed" in self.columns and self.rows[0]["seed"] else [self]

    def whole(self, column: str) -> int:
        """The sum of a column of whole numbers."""
        return sum(self.numbers(column, int))

    def numbers(self, column: str, read: Callable[[str], float] = float) -> list:
        """A column as numbers. Raises RunError if a cell is none."""
        self.check(column)
        try:
            return [read(row[column]) for row in self.rows]
        except ValueError:
            raise RunError(f"{self.file}: a cell of {column} is not a number") from None

    def number(self, column: str) -> float:
        """The cell of a column, as a number. Raises RunError unless there is one row."""
        self.single()
        return self.numbers(column)[0]

    def single(self) -> Row:
        """The only row. Raises RunError if there are several."""
        if len(self.rows) != 1:
            raise RunError(f"{self.file}: {len(self.rows)} rows where one is needed")
        return self.rows[0]

    def share(self) -> Estimate:
        """The share of right answers over seeds and problems; as it was published where no counts were kept."""
        if not self.counted():
            return self.published()
        seeds = self.seeds()
        return seeds_proportion(
            [seed.proportion() for seed in seeds], min(seed.whole("n") for seed in seeds), self.same_problems()
        )

    def counted(self) -> bool:
        """Whether the rows have counts, and not a published share."""
        return bool(self.rows[0].get("right"))

    def published(self) -> Estimate:
        """The share of the only row, with its interval if it has one.

        Where n and seeds say how many answers there were, it is the share of a whole number of them that is written so.
        """
        row = self.single()
        value, low, high = (row.get(name) or "nan" for name in ("value", "low", "high"))
        limits = (float(low) / 100, float(high) / 100) if low != "nan" else (-math.inf, math.inf)
        return Estimate(_exact(value, int(row.get("n") or 0) * int(row.get("seeds") or 0)), *limits, 1)

    def trainings(self) -> int:
        """The number of seeds. Raises RunError if the rows do not agree about it."""
        if "seeds" not in self.columns or not self.rows[0]["seeds"]:
            return len(self.seeds())
        if len(self.distinct("seeds")) != 1:
            raise RunError(f"{self.file}: rows with {' and '.join(self.distinct('seeds'))} seeds")
        return int(self.distinct("seeds")[0])

    def proportion(self) -> float:
        """How many of all problems of these rows are right."""
        return self.whole("right") / self.whole("n")

    def same_problems(self) -> bool:
        """Whether all seeds were asked the same problems."""
        return any(row.get("problems") != "own" for row in self.rows)

    def mean(self, column: str) -> Estimate:
        """The mean of a column over the rows, with Student's interval."""
        return student_mean(self.numbers(column))


def read_rows(file: Path) -> Rows:
    """The rows of a results file. Raises RunError if it cannot be used; the error names its line."""
    try:
        with file.open(newline="", encoding="utf-8") as opened:
            lines = csv.DictReader(opened, restkey="", restval=None)
            rows, columns = list(lines), tuple(lines.fieldnames or ())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RunError(f"{file}: {error}") from None
    wrong = next(_wrong(columns, rows), None)
    if wrong or not rows or len(set(columns)) < len(columns):
        raise RunError(f"{file}: {wrong or 'should have a line of different column names and a line for each row'}")
    return Rows(file, columns, rows)


def _wrong(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    for line, row in enumerate(rows, 2):
        if "" in row or None in row.values():
            yield f"line {line} should have {len(columns)} cells"
        elif row.get("right") and not _counted(row["right"], row.get("n", "")):
            yield f"line {line}: right should be a whole number from 0 to n"


def _counted(right: str, n: str) -> bool:
    return right.isdecimal() and n.isdecimal() and 0 <= int(right) <= int(n) and int(n) > 0


def _exact(percent: str, answers: int) -> float:
    """The share that was written in percent, of so many answers; 0 if it is not known of how many."""
    share = float(percent) / 100
    if answers and math.isfinite(share):
        likely = round(share * answers) / answers
        if abs(likely - share) <= 0.5001 * 10 ** -(2 + len(percent.partition(".")[2])):
            return likely
    return share


def _texts(value: object) -> set[str]:
    return {str(one) for one in value} if isinstance(value, list | tuple) else {str(value)}


def _said(settings: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "any settings"
