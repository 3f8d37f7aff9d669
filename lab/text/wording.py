"""How a problem is put to a model, and how its answer is read back: prompt, completion and reading in one object.

    Wording         raw text that the model continues (the paper's base models), optionally after solved examples
    ChatWording     the question as a user's message, in the model's own chat template
    ApiWording      the same, after the paper's system message, which names the answer's regular expression (A.2)
    RuleFollowing   raw text with the rule before the question; the completion executes the rule (section 4)
    TextFormat      raw text whose numbers are reversed, padded or hinted (lab/text/formats.py)
    NotatedWording  the notation of a model from scratch (lab/text/scratch_notation.py)

Training, evaluation and the plugins take a wording. It alone decides how the text is written, except that `Reworded`
changes the prompts of training problems (templates.py, passages.py, example_numbers.py).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from lab.config.schema import RulesConfig
from lab.numbers.representations import Representation
from lab.numbers.sampling import Problem, task_of
from lab.rules.traces.errors import first_error
from lab.rules.traces.lines import ANSWER
from lab.text import answers, prompts, rule_following
from lab.text.answers import ReadingName, Setting
from lab.text.examples import Example, Message, Prompt
from lab.text.notation import ScratchNotation

Solved: TypeAlias = Mapping[str, Sequence[Problem]]
"""Problems that are shown with their answers before a question, by the key of the question's task."""


class Wording:
    """Raw text that the model continues: the prompt ends in "=", and the completion is the answer."""

    surplus_tokens = 8
    """Tokens allowed beyond the longest answer of a task and length: for surplus digits, words and the end token."""
    window: int | None = None
    """The largest number of tokens that prompt and completion may have together; None for no limit."""
    whole = False
    """Whether a completion counts only if the model ended it and no special token is among its words."""
    decides = True
    """Whether a completion may be `decided` before it ends; a message is complete only at its end."""

    def __init__(self, solved: Solved = MappingProxyType({})) -> None:
        self.solved = solved

    def prompt(self, problem: Problem, seed: int | None = None) -> Prompt:
        """What the model is asked.

        Args:
            problem: the problem to ask.
            seed: the seed of everything that the wording leaves to chance; with None, nothing is random.
        """
        solved = "".join(f"{prompts.prompt(item)}{prompts.completion(item)}\n" for item in self._solved(problem))
        return solved + prompts.prompt(problem)

    def completion(self, problem: Problem, seed: int | None = None) -> str:
        """What a perfect model writes after the prompt. Raises RuleError if the rule does not lead to the answer."""
        return prompts.completion(problem)

    def example(self, problem: Problem, seed: int | None = None) -> Example:
        """Prompt and completion to train on."""
        return Example(self.prompt(problem, seed), self.completion(problem, seed), problem)

    def extract(self, text: str, representation: Representation, reading: ReadingName) -> str | None:
        """The answer in what a model wrote, with its digits in natural order; None if there is none.

        Raw text goes on after the answer, so `final` and `released` end with the line. As in the released code, what
        is read begins after the first " = "; the first of these characters is the end of the prompt.
        """
        if reading == "final":
            text = answers.answering_line(text)
        elif reading == "released":
            text = f" ={answers.answering_line(text)}".partition(" = ")[2]
        return answers.extract(text, representation, reading)

    def decided(self, text: str, representation: Representation) -> bool:
        """Whether no further text can change any reading of `text`."""
        return answers.decided(text, representation)

    def remarks(self, text: str, problem: Problem) -> dict[str, Any]:
        """What a sample should record about a response besides its readings, by name."""
        return {}

    def _solved(self, problem: Problem) -> Sequence[Problem]:
        """The solved examples to show before a question."""
        return self.solved.get(task_of(problem).key, ())


class ChatWording(Wording):
    """The question as the user's message; solved examples are earlier turns."""

    surplus_tokens = 64
    decides = False
    answer = "{}"

    def prompt(self, problem: Problem, seed: int | None = None) -> Prompt:
        turns: list[Message] = []
        for item in self._solved(problem):
            turns += [Message("user", prompts.prompt(item)), Message("assistant", self.answer.format(item.answer))]
        return (*turns, Message("user", prompts.prompt(problem)))

    def completion(self, problem: Problem, seed: int | None = None) -> str:
        return self.answer.format(problem.answer)

    def extract(self, text: str, representation: Representation, reading: ReadingName) -> str | None:
        """The strict and the final reading take the message as it is. The others begin after "The answer is"; if these
        words do not occur, the loose one begins after the first "=": "12 + 30 = 42" answers 42. (In base prompts, the
        "=" is in the prompt.)
        """
        announced = _announced(text)
        if reading in ("loose", "released") and announced is not None:
            text = announced
        elif reading == "loose" and "=" in text:
            text = text.partition("=")[2]
        return answers.extract(text, representation, reading)


class ApiWording(ChatWording):
    """A chat that begins with the paper's system message, which asks for the words "The answer is"."""

    answer = "The answer is {}."

    def prompt(self, problem: Problem, seed: int | None = None) -> Prompt:
        pattern = API_PATTERNS[task_of(problem).answer.name]
        system = Message("system", SYSTEM_MESSAGE.format(pattern=pattern))
        return (system, *super().prompt(problem, seed))  # type: ignore[return-value]

    def extract(self, text: str, representation: Representation, reading: ReadingName) -> str | None:
        """All readings but the final one begin after "The answer is", if the message contains these words."""
        announced = _announced(text)
        if reading != "final" and announced is not None:
            return answers.extract(announced, representation, reading)
        return super().extract(text, representation, reading)


SYSTEM_MESSAGE = (
    "You are a capable math assistant. Return your solution without any process in the format: The answer is "
    '[YOUR ANSWER]. The final answer must strictly match the format r"{pattern}".'
)

API_PATTERNS = {"integer": r"\d+", "float": r"\d+\.\d+", "fraction": r"\d+/\d+", "scientific": r"\d+\.\d+e\d+"}


def _announced(text: str) -> str | None:
    """The text after "The answer is"; None if these words do not occur."""
    words = _ANNOUNCEMENT.search(text) if "answer" in text.lower() else None
    return text[words.end() :] if words else None


_ANNOUNCEMENT = re.compile("the answer is:?", re.IGNORECASE)


class RuleFollowing(Wording):
    """The prompt shows a rule, and the completion executes it before the answer (not with rules.detail=answer)."""

    def __init__(self, rules: RulesConfig = rule_following.LAB_RULES) -> None:
        super().__init__()
        self.rules, self.window = rules, rules.window
        self.traced = rules.detail != "answer"
        self.surplus_tokens = 64 if self.traced else Wording.surplus_tokens

    def prompt(self, problem: Problem, seed: int | None = None) -> Prompt:
        return rule_following.prompt(problem, self.rules)

    def completion(self, problem: Problem, seed: int | None = None) -> str:
        return rule_following.completion(problem, self.rules)

    def extract(self, text: str, representation: Representation, reading: ReadingName) -> str | None:
        """Only what follows "So the answer is" counts; numbers in the trace are not answers. If these words do not
        occur, the released code reads the whole text."""
        if not self.traced:
            return super().extract(text, representation, reading)
        trace, ended, answer = text.partition(ANSWER)
        if not ended:
            return answers.extract(trace, representation, reading) if reading == "released" else None
        return answers.extract(answers.answering_line(answer), representation, reading)

    def decided(self, text: str, representation: Representation) -> bool:
        return answers.decided(text.partition(ANSWER)[2] if self.traced else text, representation)

    def remarks(self, text: str, problem: Problem) -> dict[str, Any]:
        """`first_error`: the first line that departs from the rule, or None. Empty if no trace is written."""
        if not self.traced:
            return {}
        rule = rule_following.rule(task_of(problem), self.rules)
        found = first_error(text, self.completion(problem), rule.text, self.rules.detail)
        return {"first_error": found and found._asdict()}


class NotatedWording(Wording):
    """The words of a notation, with spaces between them. A completion is a number in that notation, or no answer."""

    whole, decides = True, False

    def __init__(self, notation: ScratchNotation) -> None:
        super().__init__()
        self.notation = notation

    def prompt(self, problem: Problem, seed: int | None = None) -> Prompt:
        return " ".join(self.notation.question(problem, seed))

    def completion(self, problem: Problem, seed: int | None = None) -> str:
        return " ".join(self.notation.answer(problem, seed))

    def extract(self, text: str, representation: Representation, reading: ReadingName) -> str | None:
        """All readings are the same, because a notation has only one way to write a number."""
        return self.notation.read(text.split(), representation)


Reword: TypeAlias = Callable[[Example, int], Example]
"""Called as `reword(example, seed)`; returns the example with another prompt, which `seed` decides."""


class Reworded:
    """Training problems in a wording, with changed prompts."""

    def __init__(self, wording: Wording, rewords: Sequence[Reword]) -> None:
        """`rewords`: the changes, in the order in which they are made."""
        self.wording, self.rewords, self.window = wording, rewords, wording.window

    def example(self, problem: Problem, seed: int | None = None) -> Example:
        """See `Wording.example`. Without a seed, no prompt is changed."""
        item = self.wording.example(problem, seed)
        if seed is not None:
            for reword in self.rewords:
                item = reword(item, seed)
        return item


def wording_of(
    setting: Setting, rules: RulesConfig = rule_following.LAB_RULES, solved: Solved | None = None
) -> Wording:
    """The wording of a benchmark's setting.

    Args:
        setting: base, chat, api or rule_following.
        rules: the rules to follow, if the setting is rule_following.
        solved: examples that are shown with their answers before a question, in the other settings.
    """
    match setting:
        case "base":
            return Wording(solved or {})
        case "chat":
            return ChatWording(solved or {})
        case "api":
            return ApiWording(solved or {})
        case "rule_following":
            return RuleFollowing(rules)
