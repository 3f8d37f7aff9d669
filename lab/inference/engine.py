"""What every engine does: prompts in, completions and their cost out."""

from collections.abc import Callable, Iterator, Sequence, Set
from hashlib import blake2b
from typing import NamedTuple, Protocol, runtime_checkable

from lab.config.notation import FormatConfig
from lab.text.examples import Prompt


def never(text: str) -> bool:
    """No text is decided before it ends."""
    return False


class Request(NamedTuple):
    prompt: Prompt
    """Text to go on from, or the messages of a chat."""
    max_tokens: int
    """Budget of the completion."""
    group: str = ""
    """Requests whose prompts begin alike, of one task for instance; they are kept together."""
    decided: Callable[[str], bool] = never
    """Whether a text begun like this needs no more: generation may stop there, and need not."""


class Completion(NamedTuple):
    text: str
    prompt_tokens: int
    completion_tokens: int
    """Generated tokens, the end-of-sequence token included."""
    seconds: float
    """Wall time of the passes of its batch, each shared out among the requests that were unfinished then; of an
    endpoint, of the attempt that was answered, or of all attempts after an api_error."""
    finish_reason: str
    """stop (the model ended), length (the budget did), decided (nothing more could change the answer), api_error (an
    endpoint did not answer, however often it was asked), or what else an endpoint says."""
    reasoning: str = ""
    """What an endpoint reports as thought before the text."""
    api_error: str = ""
    """Why there is no text, in one line, where an endpoint gave none."""


class Sampling(NamedTuple):
    """How a token is chosen; temperature 0 is greedy."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0

    def seed_of(self, index: int) -> int:
        """31 bits for request number `index`: with luck of its own, it is drawn alike whatever else is asked."""
        return int.from_bytes(blake2b(f"{self.seed}/{index}".encode(), digest_size=4).digest(), "big") >> 1


GREEDY = Sampling()


class Engine(Protocol):
    @property
    def format(self) -> FormatConfig:
        """How the model wants numbers written: as it was tuned."""
        ...

    def check(self, request: Request) -> None:
        """Raises ModelError when requests of this kind cannot be put to the model, for want of a chat template."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of an answer, or an upper bound where the tokenizer is out of sight."""
        ...

    def tokens_needed(self, prompt: Prompt, completion: str) -> int | None:
        """Tokens of both and the end; None where the tokenizer is out of sight."""
        ...

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = ..., done: Set[int] = ...
    ) -> Iterator[dict[int, Completion]]:
        """Completions by index into `requests`, some at a time, as they come; those of `done` are left out.

        What is left of a job is computed as the whole would be.
        """
        ...


@runtime_checkable
class BatchingEngine(Engine, Protocol):
    """One that forms batches by itself, so that several processes can share them out."""

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """Which requests are computed together, in the order in which `generate` does."""
        ...
