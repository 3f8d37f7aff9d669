"""Problems as training text and as tokens."""

from typing import NamedTuple, Protocol

from lab.numbers.sampling import Problem
from lab.text.prompts import completion, prompt


class Example(NamedTuple):
    prompt: str
    completion: str
    problem: Problem


class EncodedExample(NamedTuple):
    prompt_ids: list[int]
    completion_ids: list[int]
    """The answer and the end-of-sequence token: the only part that the loss sees."""


class Tokenizer(Protocol):
    """What the lab asks of a Hugging Face tokenizer."""

    eos_token_id: int

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]: ...
    def decode(self, token_ids: list[int], *, skip_special_tokens: bool = False) -> str: ...


def example(problem: Problem) -> Example:
    return Example(prompt(problem), completion(problem), problem)


def encode_prompt(text: str, tokenizer: Tokenizer) -> list[int]:
    """The same tokens in training and in generation, with whatever the tokenizer starts a text with."""
    return tokenizer.encode(text, add_special_tokens=True)


def encode(item: Example, tokenizer: Tokenizer) -> EncodedExample:
    """Prompt and completion are tokenized apart, as they are in generation, where the prompt comes alone."""
    answer = tokenizer.encode(item.completion, add_special_tokens=False)
    return EncodedExample(encode_prompt(item.prompt, tokenizer), [*answer, tokenizer.eos_token_id])
