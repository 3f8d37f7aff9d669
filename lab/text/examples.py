"""Questions and answers, as text and as tokens."""

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from lab.errors import ModelError, in_one_line
from lab.numbers.sampling import Problem

if TYPE_CHECKING:  # transformers takes seconds to import, and text needs none of it
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase as Tokenizer


IGNORED = -100
"""The label of a position that does not count in the loss."""


class Message(NamedTuple):
    role: Literal["system", "user", "assistant"]
    content: str


Prompt: TypeAlias = str | tuple[Message, ...]
"""Either raw text or the messages of a chat."""


def plain(prompt: Prompt) -> str | list[dict[str, str]]:
    """A prompt in the form in which it is written as JSON."""
    return prompt if isinstance(prompt, str) else [message._asdict() for message in prompt]


class Example(NamedTuple):
    prompt: Prompt
    completion: str
    problem: Problem

    @property
    def raw(self) -> str:
        """The prompt as raw text. Raises TypeError if it is messages."""
        if isinstance(self.prompt, str):
            return self.prompt
        raise TypeError("a chat's prompt is messages, not raw text")


class EncodedExample(NamedTuple):
    prompt_ids: list[int]
    completion_ids: list[int]
    """The completion and the end-of-sequence token, the only tokens that count in the loss."""


def encode_prompt(prompt: Prompt, tokenizer: "Tokenizer") -> list[int]:
    """The token ids of a prompt, for training and for generation.

    Raw text gets the special tokens that the tokenizer puts before a text; messages go through its chat template.
    Raises ModelError if there is no chat template, or if it refuses the messages (some accept no system message).
    """
    if isinstance(prompt, str):
        return tokenizer.encode(prompt, add_special_tokens=True)
    messages = [message._asdict() for message in prompt]
    try:
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    except Exception as error:  # errors of jinja, and those that a template raises itself
        raise ModelError(
            f"the model's chat template: {in_one_line(error)}; use benchmark.setting=base, or a chat model"
        ) from error
    return tokenizer.encode(str(text), add_special_tokens=False)


def opens_thoughts(prompt_ids: list[int], tokenizer: "Tokenizer") -> bool:
    """Whether the prompt ends in <think> (from the chat template), so that the model begins by writing thoughts."""
    return str(tokenizer.decode(prompt_ids[-16:])).rstrip().endswith("<think>")


def encode(item: Example, tokenizer: "Tokenizer") -> EncodedExample:
    """Tokenizes prompt and completion separately, because in generation the prompt comes alone."""
    answer = tokenizer.encode(item.completion, add_special_tokens=False)
    return EncodedExample(encode_prompt(item.prompt, tokenizer), [*answer, tokenizer.eos_token_id])  # type: ignore[list-item]
