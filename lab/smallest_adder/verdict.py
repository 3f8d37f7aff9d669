"""The verifier's verdict on a submission. Does not import torch: leaderboards and reports only read verdicts."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

PROVES = (
    "Qualified means: the graph that this file's model computes is a small causal transformer by the rules in "
    "lab/smallest_adder/contract.py, adds, and has as many numbers as it says. It does not mean that the numbers were "
    "learned, nor how many were tried; what an architecture knows by itself, its form and its period, is not counted."
)


class Counts(NamedTuple):
    """The size of a submission, by several rules."""

    parameters: int
    """By the challenge's rule; what a submission is ranked by."""
    literals: int
    """Different numbers in the code of the pass, less those that everybody knows (graph/counting.py)."""
    trainable: int
    buffers_free: int
    """Parameters alone: the count in the literature, in which fixed position tables are free."""
    by_data_ptr: int
    """What the public verifier counts."""
    bits: int


class Verdict(NamedTuple):
    """What one layer says."""

    layer: str
    passed: bool | None
    """None if the trial ended before this layer."""
    reason: str


class Verification(NamedTuple):
    """The result of a trial."""

    verdicts: list[Verdict]
    right: int
    problems: int
    seed: int
    counts: Counts | None
    content: float | None
    """The largest change of an attention weight from one problem to another; 0 means attention by position alone."""
    additions_per_second: float
    confinement: list[str]
    """What kept the submission from doing harm."""

    @property
    def qualified(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)

    def plainly(self) -> dict[str, Any]:
        """The result as JSON, with today's date."""
        return self._asdict() | {
            "verified": datetime.now(UTC).date().isoformat(),
            "qualified": self.qualified,
            "counts": self.counts and self.counts._asdict(),
            "additions_per_second": round(self.additions_per_second, 1),
            "verdicts": [verdict._asdict() for verdict in self.verdicts],
        }


def plain(text: object, longest: int = 300) -> str:
    """An untrusted text in one line that is safe in a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)[: 4 * longest]).split())
    return line if len(line) <= longest else line[: longest - 3] + "..."
