"""A verdict on an adder, as it is printed, ranked and kept. Does not import torch: leaderboards and reports only
read."""

from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from lab.adders.problems import few_wrong

DECLARED = "a declared adder: the lab built, ran and counted it"
FOREIGN = "by the challenge's rules; foreign code, not audited"
NOT_EXCLUDED = (
    "Such a verdict cannot exclude that the code adds by itself (in forward, in encode or in decode), that it holds "
    "numbers which are no parameters, or that its attention does nothing. A declared adder can do none of this."
)


class Looks(NamedTuple):
    """What attention does, measured on fixed problems."""

    kind: Literal["transformer", "convolution", "pooling", "mlp"]
    """convolution: mean weights, the same for all problems, do as well. pooling: so do equal weights. mlp: no
    attention."""
    moves: float
    """The most that a weight changes from one problem to another, at the queries of the answer."""
    mean_kept: float
    """The share of answers that stay as they are with mean weights. `uniform_kept`: with equal weights."""
    uniform_kept: float
    n: int


class Verdict(NamedTuple):
    form: Literal["declared", "python"]
    right: int
    problems: int
    seed: int
    parameters: int | None
    numbers: int | None
    """All numbers, literal or not; None for Python, where they cannot be counted."""
    looks: Looks | None
    category: str
    seeds: int | None
    objections: list[str]
    """Why it does not qualify, besides its accuracy."""
    seconds: float = 0.0
    verified: str = datetime.now(UTC).date().isoformat()

    @property
    def qualified(self) -> bool:
        return not self.objections and self.problems > 0 and few_wrong(self.right, self.problems)

    def plainly(self) -> dict[str, Any]:
        return self._asdict() | {"looks": self.looks and self.looks._asdict()}

    @classmethod
    def read(cls, stored: dict[str, Any]) -> "Verdict":
        """What `plainly` gave. Raises TypeError or KeyError if it is anything else."""
        given: dict[str, Any] = {**stored, "looks": stored["looks"] and Looks(**stored["looks"])}
        return cls(**given)


def plain(text: object, longest: int = 300) -> str:
    """An untrusted text in one line that is safe in a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)[: 4 * longest]).split())
    return line if len(line) <= longest else line[: longest - 3] + "..."
