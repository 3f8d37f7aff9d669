"""The verifier's verdict on a submission, and verdicts on disk. Does not import torch, because leaderboards and reports
only read verdicts.

Verdicts are in the lab's cache, because a file beside a submission came with it and could be forged. One is
stored under the text of the submission and the verifier's version, and holds as long as neither changes.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lab.errors import TaskError
from lab.models.sources import cache_folder
from lab.smallest_adder.contract import category, read_submission, seeds

if TYPE_CHECKING:
    from lab.smallest_adder.trace.child import Limits

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


def submissions(folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """(name, file) of every Python file below the folders that has the five exports; other files are skipped.

    A run's submission.py goes by the name of its folder. Raises TaskError if there is no such folder.
    """
    for folder in folders:
        if not folder.is_dir():
            raise TaskError(f"{folder}: there is no such folder")
        for path in sorted(folder.rglob("*.py")):
            try:
                read_submission(path)
            except TaskError:
                continue
            named = path.relative_to(folder).with_suffix("")
            yield str(named.parent if named.name == "submission" and named.parent.name else named), path


def verdict_of(path: Path, limits: "Limits") -> dict[str, Any]:
    """The stored verdict of a submission, or a new one, which is stored."""
    if (stored := known(path)) is not None:
        return stored
    from lab.smallest_adder.verify import verify  # imported here, because reading verdicts needs no torch

    source = read_submission(path)
    verdict = {"category": category(source), "seeds": seeds(source)} | verify(source, limits=limits).plainly()
    kept = _place(path)
    with suppress(OSError):  # if the cache cannot be written, the next call tries the submission again
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(".new")
        fresh.write_text(json.dumps(verdict, indent=2) + "\n", encoding="utf-8")
        fresh.replace(kept)
    return verdict


def known(path: Path) -> dict[str, Any] | None:
    """The stored verdict of a submission, if there is one."""
    try:
        stored = json.loads(_place(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return stored if isinstance(stored, dict) and "verdicts" in stored else None


def _place(path: Path) -> Path:
    digest = hashlib.sha256(f"{VERSION}\n".encode() + path.read_bytes()).hexdigest()
    return cache_folder() / "verdicts" / f"{digest}.json"
