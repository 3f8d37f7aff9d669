"""The verifier's verdict on a submission, as types. Does not import torch: leaderboards and reports only read
verdicts."""

from typing import NamedTuple

VERSION = 4
"""Increased when the verifier could judge a submission differently than before."""

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
    """Different numbers in the code of the pass, less those that everybody knows (graph/constants.py)."""
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
