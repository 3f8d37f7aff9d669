"""Rows of the Number Cookbook's tables (published.csv), those that are legible in our copy of the paper.

Table 8 (digits by digit match; 15 cells of Llama-2 are lost), Table 10 (few-shot) and the first two rows of Table 18.
The blocks of Table 7 repeat each other and Table 9 has lost digits, so neither is included.
"""

import csv
from pathlib import Path
from typing import NamedTuple

from lab.numbers.tasks import HARD


class Published(NamedTuple):
    source: str
    """The table of the paper."""
    model: str
    shots: int
    task: str
    metric: str
    ranges: dict[str, float]
    """Means by range; empty if the table has none."""
    digits: tuple[int, int] | None
    """Well-learned and performance-preserving digits."""

    @property
    def label(self) -> str:
        """The model's name in our tables and figures."""
        shots = f", {self.shots}-shot" if self.shots else ""
        return f"{self.model}{shots} (paper, {self.source})"


def _read(path: Path) -> list[Published]:
    with path.open(newline="") as file:
        return [
            Published(
                row["source"],
                row["model"],
                int(row["shots"]),
                row["task"],
                row["metric"],
                {name: float(row[name]) for name in HARD.ranges if row[name]},
                (int(row["well_learned"]), int(row["performance_preserving"])) if row["well_learned"] else None,
            )
            for row in csv.DictReader(file)
        ]


PUBLISHED = _read(Path(__file__).with_suffix(".csv"))
