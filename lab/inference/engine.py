"""What every engine does: prompts in, completions and their cost out."""

from collections.abc import Callable, Iterator, Sequence, Set
from typing import NamedTuple, Protocol

from lab.text.settings import Prompt


class Request(NamedTuple):
    prompt: Prompt
    """Text to go on from, or the messages of a chat."""
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
    """Wall time of its batch, shared out equally; of an endpoint, of the attempt that was answered, or of all attempts
    after an api_error."""
    finish_reason: str
    """stop (the model ended), length (the budget did), decided (nothing more could change the answer), api_error (an
    endpoint did not answer, however often it was asked), or what else an endpoint says."""
    reasoning: str = ""
    """What an endpoint reports as thought before the text."""
    error: str = ""
    """Why there is no text, in one line, after an api_error."""


class Sampling(NamedTuple):
    """How a token is chosen; temperature 0 is greedy."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0


GREEDY = Sampling()


class Engine(Protocol):
    def count_tokens(self, text: str) -> int:
        """Tokens of an answer, or an upper bound where the tokenizer is out of sight."""
        ...

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = ..., done: Set[int] = ...
    ) -> Iterator[dict[int, Completion]]:
        """Completions by index into `requests`, some at a time, as they come; those of `done` are left out.

        What is left of a job is computed as the whole would be.
        """
        ...
