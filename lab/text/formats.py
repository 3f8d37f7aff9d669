"""The paper's prompts with the numbers in them reversed, padded or hinted (Number Cookbook, section 3.3 and Table 18).

    plain       Add two numbers: 1234 + 89 =                     1323
    reversed    Add two numbers: 4321 + 98 =                     3231
    padded      Add two numbers: 1234 + 0089 =                   1323
    hinted      Add two numbers: <0.3>1<0.2>2 ... =              <0.3>1<0.2>3 ...

Numbers are written as models from scratch write them (lab/text/notation.py), but without spaces between the words.
"""

import functools
import re
from collections.abc import Sequence

from lab.config.finetuning import DataConfig
from lab.config.notation import FormatConfig, TokenizerConfig
from lab.config.schema import chosen
from lab.numbers.representations import Representation
from lab.numbers.sampling import Problem, task_of
from lab.numbers.tasks import TASKS, Task
from lab.text.answers import ReadingName
from lab.text.example_numbers import draw_example_number
from lab.text.examples import Prompt
from lab.text.notation import SEPARATORS, Notation
from lab.text.number_search import NumberSearch
from lab.text.passages import AfterPassage
from lab.text.prompts import around_operands
from lab.text.templates import TRAINING, ManyTemplates
from lab.text.wording import ChatWording, Reword, Reworded, RuleFollowing, Wording

_HINT, _HINT_BACKWARDS = r"<\d+\.\d+>", r">\d+\.\d+<"
_WORD = re.compile(rf"{_HINT}|[0-9./e]")


class TextFormat(Wording):
    def __init__(self, config: FormatConfig, tasks: Sequence[Task]) -> None:
        """Raises TaskError if the format cannot write the answers of some task (see `Notation`)."""
        super().__init__()
        self.config = config
        self._notation = Notation(TokenizerConfig(), config, tasks)

    @property
    def hints(self) -> list[str]:
        """All index hints, each of which should be one token; empty if the format has no index hints."""
        return [word for word in self._notation.vocabulary if re.fullmatch(_HINT, word)]

    def prompt(self, problem: Problem, seed: int | None = None) -> Prompt:
        """See `Wording`. `seed` decides where hints start. Raises TaskError as `Notation.question` does."""
        before, between, after = around_operands(problem)
        words = self._notation.question(problem, seed)
        operator = words.index(f"<{task_of(problem).key}>")
        a, b = "".join(words[:operator]), "".join(words[operator + 1 : -1])
        return f"{before}{a}{between}{b}{after}"

    def completion(self, problem: Problem, seed: int | None = None) -> str:
        """See `Wording`."""
        return " " + "".join(self._notation.answer(problem, seed))

    def extract(self, text: str, representation: Representation, reading: ReadingName) -> str | None:
        """The answer with its digits in natural order, whole, or None if there is none.

        In a number format, `final` reads as `loose` does, and `released` as `strict` does.
        """
        written = self._written(representation)
        at_start = reading in ("strict", "released")
        match = written.number.match(text.strip()) if at_start else written.search(text)
        if match is None or _GOES_ON.match(match.string, match.end()):
            return None
        read = self._notation.read(_WORD.findall(match.group()), representation)
        return read if read and representation.pattern.fullmatch(read) else None

    def decided(self, text: str, representation: Representation) -> bool:
        """Whether no further text can change either reading."""
        match = self._written(representation).search(text)
        if match is None or _MAY_GO_ON.fullmatch(text, match.end()):
            return False
        return self.config.index_hints != "both" or not _BEGUN_HINT.fullmatch(text, match.end())

    def _written(self, representation: Representation) -> NumberSearch:
        return _written(representation, self.config.reverse in ("total", "answer"), self.config.index_hints == "both")


def written(config: FormatConfig, tasks: Sequence[Task]) -> Wording:
    """The wording for a format; plain raw text if the format changes nothing. Raises TaskError as `TextFormat` does."""
    return Wording() if config == FormatConfig() else TextFormat(config, tasks)


def tuned(config: FormatConfig, data: DataConfig) -> Wording:
    """The wording for tuning and testing a model: rule following or a chat if `data` asks for it, or else a format.

    Raises TaskError as `TextFormat` does.
    """
    if data.style == "chat":
        return ChatWording()
    return RuleFollowing(data.rules) if data.rules_followed else written(config, chosen(data.tasks))


def taught(wording: Wording, data: DataConfig) -> Wording | Reworded:
    """How training problems are written: as in the test, or, if `data` asks for it, in other words, with another
    example number in the hint, or after a passage of text."""
    rewords: list[Reword] = []
    if data.templates != "benchmark":
        own = 1 if data.templates == "many" else len(TRAINING)
        rewords.append(ManyTemplates(own, random=len(TRAINING) if data.templates == "varied" else 0))
    if data.example_number == "drawn":
        rewords.append(draw_example_number)
    if data.passages:
        rewords.append(AfterPassage(data.passages))
    return Reworded(wording, rewords) if rewords else wording


def writable(config: FormatConfig) -> list[Task]:
    """The tasks that a format can write together: all, but without sig if the format pads answers with zeros."""
    every = list(TASKS.values())
    return [task for task in every if task.name != "sig"] if config.pad in ("answer", "all") else every


_GOES_ON = re.compile("[./,:'e]?[0-9]|[A-Za-z_%]")
"""What makes a number only a part of something else."""
_MAY_GO_ON = re.compile("[./,:'e]?")
"""An end of a text after which such a thing may still follow."""

_BEGUN_HINT = re.compile(r"<(\d+(\.(\d+>?)?)?)?")
"""A hint or the beginning of one, after which another digit of the number may follow."""


@functools.cache
def _written(representation: Representation, total: bool, hinted: bool) -> NumberSearch:
    digit, backwards = (rf"{_HINT}[0-9]", rf"[0-9]{_HINT_BACKWARDS}") if hinted else ("[0-9]", "[0-9]")
    separators = SEPARATORS[representation][:: -1 if total else 1]
    return NumberSearch(digit, "".join(rf"{re.escape(separator)}(?:{digit})+" for separator in separators), backwards)
