"""What every engine does: prompts in, completions and their cost out."""

from collections.abc import Callable, Iterator, Sequence, Set
from typing import NamedTuple, Protocol


class Request(NamedTuple):
    prompt: str
    max_tokens: int
    """Budget of the completion."""
    group: str = ""
    """Requests whose prompts begin alike, of one task for instance; they are kept together."""
    decided: Callable[[str], bool] = lambda text: False
    """Whether a text begun like this needs no more: generation may stop there, and need not."""


class Completion(NamedTuple):
    text: str
    prompt_tokens: int
    completion_tokens: int
    """Generated tokens, the end-of-sequence token included."""
    seconds: float
    """Wall time of its batch, shared out equally."""
    finish_reason: str
    """stop (the model ended), length (the budget did), or decided (nothing more could change the answer)."""


class Engine(Protocol):
    def generate(self, requests: Sequence[Request], done: Set[int] = ...) -> Iterator[dict[int, Completion]]:
        """Completions by index into `requests`, a batch at a time, as they come; those of `done` are left out.

        Batches are formed from all requests alike, so that what is left of a job is computed as the whole would be.
        """
        ...
