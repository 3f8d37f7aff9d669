"""What an endpoint refuses: which parameter of a request its words name, and when it refuses every question.

A refusal is an error that sending the same request again would not change, such as status 400. It may concern its own
question alone, such as one that is too long. If the first questions of a run are all refused in the same words and none
has been answered, the questions that follow would be refused too.
"""

import re
from collections.abc import Collection
from typing import TypeAlias

_KEYS = {
    "temperature": "sampling.temperature=null leaves temperature out",
    "top_p": "sampling.top_p=null leaves top_p out",
    "seed": "sampling.seed=null leaves seed out",
    "max_tokens": "benchmark.max_tokens sets max_tokens (for NUPA, benchmark.surplus_tokens)",
    "max_completion_tokens": "benchmark.max_tokens sets max_completion_tokens (for NUPA, benchmark.surplus_tokens)",
}
"""For each parameter that a request may have, the key of a config that decides about it."""
PARAMETERS = tuple(_KEYS)
_FEWEST = 8
"""How many questions must be refused alike, if so many are asked."""

Refusal: TypeAlias = tuple[int, str]
"""The status, and the words without those that differ between questions."""


def remedy(reason: str, sent: Collection[str] = PARAMETERS) -> str:
    """The keys of a config that decide about the parameters that an error names; empty if it names none.

    Args:
        reason: the error in the server's words.
        sent: the parameters that the request had.
    """
    return "; ".join(told for name, told in _KEYS.items() if name in sent and re.search(rf"\b{name}\b", reason))


class FirstQuestions:
    """Watches the first questions of a run, until one is answered."""

    def __init__(self, asked: int, in_flight: int, resumed: bool = False) -> None:
        """
        Args:
            asked: how many questions are asked.
            in_flight: how many of them are asked at once.
            resumed: whether other questions of the run were answered before. Then a few refusals say nothing, because
                they may be those of the questions that were refused before.
        """
        first = max(in_flight, _FEWEST)
        self.count = first if resumed else max(2, min(first, asked))
        """How many questions must be refused alike."""
        self._answered = False
        self._refusals: list[Refusal] = []

    def answer(self) -> None:
        """Call this when a question has been answered."""
        self._answered = True

    def refuse(self, status: int, reason: str) -> None:
        """Call this when a question has been refused.

        Args:
            status: the status, such as 400.
            reason: the server's words. Words with a digit may belong to the question, and do not count.
        """
        self._refusals.append((status, " ".join(word for word in reason.split() if not re.search(r"\d", word))))

    @property
    def all_refused(self) -> bool:
        """Whether as many questions as it takes have been refused, all alike, and none was answered."""
        return not self._answered and len(self._refusals) >= self.count and len(set(self._refusals)) == 1
