"""The ways to put a NUPA question to a model, with or without solved examples before it.

base  the raw text, which the model goes on from (the paper's base models)
chat  the question as the user's message, in the model's own chat template
api   the same after the paper's system message, which names the answer's regular expression (A.2)
rule_following   raw text with the rule to follow in front (section 4), without examples
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from lab.config.schema import RulesConfig
from lab.numbers.sampling import Problem, task_of
from lab.text import rule_following
from lab.text.prompts import completion, prompt

Setting = Literal["base", "chat", "api", "rule_following"]


class Message(NamedTuple):
    role: Literal["system", "user", "assistant"]
    content: str


Prompt: TypeAlias = str | tuple[Message, ...]

SYSTEM_MESSAGE = (
    "You are a capable math assistant. Return your solution without any process in the format: The answer is "
    '[YOUR ANSWER]. The final answer must strictly match the format r"{pattern}".'
)

API_PATTERNS = {
    "integer": r"\d+",
    "float": r"\d+\.\d+",
    "fraction": r"\d+/\d+",
    "scientific": r"\d+\.\d+e\d+",
}


def question(
    problem: Problem,
    setting: Setting = "base",
    examples: Sequence[Problem] = (),
    rules: RulesConfig = rule_following.LAB_RULES,
) -> Prompt:
    """What a model is asked; `examples` come first, solved, as lines before it or as turns of the chat."""
    if setting == "rule_following":
        return rule_following.prompt(problem, rules)
    if setting == "base":
        return "".join(f"{prompt(item)}{completion(item)}\n" for item in examples) + prompt(problem)
    answer = "The answer is {}." if setting == "api" else "{}"
    turns = [
        message
        for item in examples
        for message in (Message("user", prompt(item)), Message("assistant", answer.format(item.answer)))
    ]
    if setting == "api":
        pattern = API_PATTERNS[task_of(problem).answer.name]
        turns.insert(0, Message("system", SYSTEM_MESSAGE.format(pattern=pattern)))
    return (*turns, Message("user", prompt(problem)))
