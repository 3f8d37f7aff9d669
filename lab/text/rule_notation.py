"""How models from scratch read and write problems whose rule they follow: a trace in words, and the answer after it.

    <begin> 9 1 9 7 <add_integer> 8 1 3 9 = 9 8 7 1 ; 1 1 3 0 ; 9 3 2 1 ; 7 9 7 1 ; answer is 7 3 2 7 1 <end>

This is 7919 + 9318 with a bare trace (lab/rules/traces/tracing.py) and format.reverse=integer: every run of digits, in
the trace too, is written with the ones digit first. A word is a digit, a name with what belongs to it (`carry=`,
`a[-1:]=`), or a sign; lines end in ";". The task's operator between the numbers names the
rule.
"""

import functools
import re
from collections.abc import Sequence

from lab.config.notation import FormatConfig
from lab.config.schema import RulesConfig
from lab.errors import TaskError
from lab.numbers.representations import Integer, Representation
from lab.numbers.sampling import Cell, Problem, problem
from lab.rules.traces import lines
from lab.text import rule_following
from lab.text.notation import BEGIN, DIGITS, END, EQUALS, PAD, ScratchNotation

ENDED, ANSWER = "answer", "is"
"""The words between a trace and the answer. The first counts as one more line (lab/scratch/trace_places.py), so that
from there a model can see the last line of the trace."""
LINE = ";"

_WORDS = re.compile(r'\n|\w*\[[^\]\n]*\]=?|[A-Za-z_]\w*[:=]?|[0-9]|"[+]\w+|""|[^\s\w]=|    |\S')
_SAMPLES = 50
"""How many problems of each task and length are traced to find the words of the vocabulary."""


class RuleNotation(ScratchNotation):
    """The notation of a model that follows rules."""

    def __init__(self, rules: RulesConfig, format: FormatConfig, cells: Sequence[Cell]) -> None:
        """
        Args:
            rules: which rules are followed, and in what detail.
            format: only `reverse` matters: none or integer.
            cells: the tasks and lengths of training; the words of their traces make the vocabulary.

        Raises RuleError if a task has no rule or its rule cannot be followed, and TaskError if a task has operands or
        answers that are not integers.
        """
        tasks = list(dict.fromkeys(cell.task for cell in cells))
        for task in tasks:
            if {task.representation, task.answer} != {Integer}:
                raise TaskError(f"data.style=rule_following: {task.key} is not a task of integers")
        rule_following.check_rules(tasks, rules)
        super().__init__(tasks)
        self.rules, self._cells = rules, cells
        self.ones_first = format.reverse == "integer"

    @functools.cached_property
    def vocabulary(self) -> list[str]:
        """Special words, operators, digits, and the words of traces of training problems."""
        found: set[str] = set()
        for cell in self._cells:
            for index in range(_SAMPLES):
                found.update(self.trace(problem(cell, "train", 0, index)))
        operators = [f"<{task.key}>" for task in self.tasks]
        words = sorted(found - {LINE, EQUALS, *DIGITS})
        return [PAD, BEGIN, END, EQUALS, *operators, LINE, ENDED, ANSWER, *DIGITS, *words]

    def question(self, problem: Problem, seed: int | None = None) -> list[str]:
        task = self._task(problem)
        return [*self._digits(problem.a), f"<{task.key}>", *self._digits(problem.b or ""), EQUALS]

    def answer(self, problem: Problem, seed: int | None = None) -> list[str]:
        """The trace and the answer. Raises RuleError as `rule_following.completion` does."""
        marker = [ENDED, ANSWER] if self.rules.detail != "answer" else []
        return [*self.trace(problem, seed), *marker, *self._digits(problem.answer)]

    def read(self, words: Sequence[str], representation: Representation) -> str | None:
        """The number after the last "is"; with rules.detail=answer, the number that all words together write."""
        words = list(words)
        if self.rules.detail != "answer":
            if ANSWER not in words:
                return None
            words = words[len(words) - words[::-1].index(ANSWER) :]
        if not words or not set(words) <= set(DIGITS):
            return None
        return "".join(reversed(words) if self.ones_first else words)

    def trace(self, problem: Problem, seed: int | None = None) -> Sequence[str]:
        """The words of all lines, each with its end. `seed`: see `ScratchNotation`."""
        if self.rules.detail == "answer":
            return []
        text, _, _ = rule_following.completion(problem, self.rules).rpartition(lines.ANSWER)
        return in_words(text, self.ones_first)

    def _digits(self, number: str) -> list[str]:
        return list(number[::-1] if self.ones_first else number)


def in_words(text: str, turned: bool) -> list[str]:
    """The words of a rule's text or of a trace.

    Args:
        text: whole lines.
        turned: whether every run of digits is written with the ones digit first.
    """
    if turned:
        text = re.sub(r"[0-9]+", lambda run: run[0][::-1], text)
    return [LINE if word == "\n" else "indent" if word == "    " else word for word in _WORDS.findall(text)]
