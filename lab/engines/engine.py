"""The interface of all engines (prompts in, completions and their cost out), and what several of them share."""

from collections.abc import Callable, Iterator, Sequence, Set
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from lab import distributed
from lab.config.evaluation import SamplingConfig
from lab.config.notation import FormatConfig
from lab.text.examples import Prompt, encode_prompt, opens_thoughts
from lab.text.notation import Notation


def never(text: str) -> bool:
    """The default of `Request.decided`: no text is decided before generation ends."""
    return False


class Request(NamedTuple):
    prompt: Prompt
    """Text to continue, or the messages of a chat."""
    max_tokens: int
    """Maximum number of tokens in the completion."""
    group: str = ""
    """Requests whose prompts begin in the same way, such as those of one task, share a group and are computed
    together."""
    decided: Callable[[str], bool] = never
    """Tells whether the text so far already decides the answer. Generation may then stop, but does not have to."""


class Completion(NamedTuple):
    text: str
    prompt_tokens: int
    completion_tokens: int
    """Generated tokens, including the end-of-sequence token."""
    seconds: float
    """Wall time. For a local model, the time of each forward pass is divided equally among the requests that were not
    finished then. For an endpoint, it is the time of the attempt that was answered or, after an api_error, of all
    attempts."""
    finish_reason: str
    """stop (the model ended the text), length (max_tokens was reached), decided (more text could not change the
    answer), api_error (an endpoint never answered), or whatever else an endpoint reports."""
    reasoning: str = ""
    """The thoughts before the text, if an endpoint reports them."""
    api_error: str = ""
    """If an endpoint gave no text: the reason, in one line."""

    @property
    def ended(self) -> bool:
        """Whether the model ended the text."""
        return self.finish_reason == "stop"

    @property
    def shows_all_words(self) -> bool:
        """Whether the text contains every token that the model wrote; only for models from scratch, whose tokens are
        words. Decoding drops special tokens, so if there was one among the digits, the text is not the number that was
        written."""
        return len(self.text.split()) + self.ended == self.completion_tokens


class Sampling(NamedTuple):
    """How a token is chosen; temperature 0 is greedy. An endpoint is told nothing of what is None."""

    temperature: float | None = 0.0
    top_p: float | None = 1.0
    seed: int | None = 0

    @classmethod
    def of(cls, config: SamplingConfig, run_seed: int) -> Self:
        """The sampling of a config, in a run with this seed."""
        drawn = run_seed if config.temperature else None
        return cls(config.temperature, config.top_p, drawn if config.seed == "run" else config.seed)

    def seed_of(self, index: int) -> int:
        """A seed of 31 bits for request number `index`, so that its draws do not depend on the other requests."""
        return int.from_bytes(blake2b(f"{self.seed}/{index}".encode(), digest_size=4).digest(), "big") >> 1


GREEDY = Sampling()


class Engine(Protocol):
    @property
    def format(self) -> FormatConfig:
        """How numbers must be written for this model: as in its training."""
        ...

    def check(self, request: Request) -> None:
        """Raises ModelError if the model cannot answer such requests because it has no chat template."""
        ...

    def count_tokens(self, text: str) -> int:
        """The number of tokens in an answer, or an upper bound if the tokenizer is not available."""
        ...

    def tokens_needed(self, prompt: Prompt, completion: str) -> int | None:
        """The number of tokens in prompt and completion, plus the end token; None if the tokenizer is not available."""
        ...

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = ..., done: Set[int] = ...
    ) -> Iterator[dict[int, Completion]]:
        """Yields completions as they arrive, in dictionaries from the index of a request in `requests`.

        Args:
            requests: all requests of the job.
            sampling: how tokens are chosen.
            done: indices of requests to leave out. The others get the same completions as in the complete job.
        """
        ...


@runtime_checkable
class BatchingEngine(Engine, Protocol):
    """An engine that forms its own batches, so that several processes can divide them."""

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """The batches, as indices of requests, in the order in which `generate` computes them."""
        ...


@runtime_checkable
class NotatedEngine(Engine, Protocol):
    """An engine whose model reads problems in its own notation instead of text."""

    @property
    def notation(self) -> Notation: ...

    @property
    def size(self) -> str:
        """How many parameters the model has, in words."""
        ...


class ModelEngine:
    """The base class of engines that have the model and its tokenizer in this process."""

    format = FormatConfig()

    def __init__(self, model: Any, tokenizer: Any, batch_size: int) -> None:
        self.model, self.tokenizer, self.batch_size = model.eval(), tokenizer, batch_size
        ends: Any = model.generation_config.eos_token_id if model.generation_config else None
        self.ends = {tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])}
        """Tokens that end a text. Chat models end a turn with tokens that only the generation config names."""
        self.row_passes = 0
        """Forward passes so far, each counted once for every request in it."""
        self.written = 0
        """Tokens of completions so far."""

    def check(self, request: Request) -> None:
        encode_prompt(request.prompt, self.tokenizer)

    def count_tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False))

    def tokens_needed(self, prompt: Prompt, completion: str) -> int:
        return len(encode_prompt(prompt, self.tokenizer)) + self.count_tokens(completion) + 1

    def decode(self, ids: list[int]) -> str:
        """The text of token ids, without special tokens."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def whole(self, prompt_ids: list[int], text: str) -> str:
        """The text of a completion. If the prompt ended with the tag that opens thoughts, the tag is put before it."""
        return f"<think>{text}" if opens_thoughts(prompt_ids, self.tokenizer) else text


def generate_together(
    engine: Engine, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
) -> Iterator[dict[int, Completion]]:
    """Like `engine.generate`, but divides the batches among several processes, each with its own copy of the model.
    Every process gets all completions.

    Batches and completions are the same as in a single process. In each round, every process computes one batch.
    Successive batches have similar sizes, so processes do not wait long for each other.
    """
    if not isinstance(engine, BatchingEngine) or distributed.count() == 1:
        yield from engine.generate(requests, sampling, done)
        return
    left = [batch for batch in engine.batches(requests) if not done >= set(batch)]
    mine = distributed.share(left)
    chosen = {index for batch in mine for index in batch} - done
    completions = engine.generate(requests, sampling, set(range(len(requests))) - chosen)
    for turn in range(-(-len(left) // distributed.count())):
        wanted, found = set(mine[turn]) - done if turn < len(mine) else set(), {}
        while not found.keys() >= wanted:
            found |= next(completions)
        yield {index: completion for part in distributed.gather(found) for index, completion in part.items()}
