"""Finds the digits of a problem that have the same place value, and their positions in its tokens.

    1234 + 89 = 1323        the answer's 2 counts tens, like the 3 of 1234 and the 8 of 89
    1.5e3 + 2.5e2 = 1.75e3  the answer's 7 counts hundreds, like the 5 of 1.5e3 and the 2 of 2.5e2

Digits of fractions and exponents have no such place value, so they are not aligned.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from lab.numbers.sampling import task_of
from lab.text.examples import Example, encode_prompt
from lab.text.places import place_values
from lab.text.prompts import around_operands

if TYPE_CHECKING:  # transformers takes seconds to import
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase as Tokenizer

NOWHERE = -1


class AlignedDigits(NamedTuple):
    """For each token of the completion, and for the end token, the index of the prompt token with the same place value.

    The entry is NOWHERE if the operand has no digit of that place, or if the token is not a digit.
    """

    first: list[int]
    """Tokens in the first operand."""
    second: list[int]
    """Tokens in the second operand."""


def aligned_digits(item: Example, tokenizer: "Tokenizer") -> AlignedDigits:
    """Aligns the digits of an answer with those of the operands.

    Args:
        item: a problem whose numbers are written plainly.
        tokenizer: a fast tokenizer with one token per digit.
    """
    problem, task = item.problem, task_of(item.problem)
    before, between, _ = around_operands(problem)
    prompt_ids = encode_prompt(item.raw, tokenizer)
    prompt, completion = (_tokens_of_characters(text, tokenizer) for text in (item.raw, item.completion))
    added = len(prompt_ids) - 1 - max(prompt.values())  # tokens that the tokenizer puts before a text
    starts = len(before), len(before) + len(problem.a) + len(between)
    digits = [
        {
            value: added + prompt[start + at]
            for at, value in enumerate(place_values(number, task.representation))
            if value is not None
        }
        for start, number in zip(starts, (problem.a, problem.b), strict=True)
        if number is not None and not (task.has_parameter and start == starts[1])
    ]
    tokens = len(tokenizer.encode(item.completion, add_special_tokens=False))
    found = AlignedDigits([NOWHERE] * (tokens + 1), [NOWHERE] * (tokens + 1))
    begin = item.completion.index(problem.answer)
    for at, value in enumerate(place_values(problem.answer, task.answer)):
        for side, own in zip(found, digits, strict=False):
            if value in own:
                side[completion[begin + at]] = own[value]
    return found


def _tokens_of_characters(text: str, tokenizer: "Tokenizer") -> dict[int, int]:
    spans: Any = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return {character: token for token, (start, end) in enumerate(spans) for character in range(start, end)}
