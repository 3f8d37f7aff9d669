"""Writes the trace of a rule: the response of rule-following CoT (Number Cookbook, section 4 and A.5.1).

The rule is run by walking its syntax tree (execution.py). Each step is written down at one of six levels of detail:

full     every statement, the values that it used and its result (full.py)
values   what each statement looked up in texts and assigned (short.py)
state    the same for each iteration of a loop, only for names that are still needed (short.py)
bare     the same without names, and without what follows from the question or the rule (short.py)
results  the same without what was looked up: only what was computed (short.py)
answer   nothing

Every line is true, and a trace can be read back: its lines and the rule determine every step and every value. At bare
and results, the operands are needed too, because the trace does not repeat them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, NoReturn, TypeAlias

from lab.config.schema import Detail
from lab.errors import RuleError
from lab.rules.rulebook import Rule
from lab.rules.traces.execution import Interpreter, Names, Step, execute
from lab.rules.traces.full import FullTrace
from lab.rules.traces.lines import Line, found, slots, value_of, written
from lab.rules.traces.short import ShortTrace


class Trace(NamedTuple):
    text: str
    """The lines, without a line break at the end."""
    value: str
    """What the rule returned."""


Writer: TypeAlias = Callable[[Step], list[Line]]
"""Returns the lines of a step. Steps must be given in the order of the run, from the first."""


def writer(rule: Rule, detail: Detail) -> Writer:
    """A writer for one run of the rule."""
    if detail == "answer":
        return lambda step: []
    return FullTrace(rule).lines if detail == "full" else ShortTrace(rule, detail).lines


def trace(rule: Rule, operands: Sequence[str], detail: Detail = "full") -> Trace:
    """The trace of a rule on these operands.

    Args:
        rule: the rule to run.
        operands: the values of its parameters, as text.
        detail: how much of each step is written (see the levels above).

    Raises RuleError, naming the rule, if it takes a different number of operands, fails on these, does not end, or has
    values that could not be read back.
    """
    lines_of = writer(rule, detail)
    lines: list[str] = []

    def watch(step: Step, names: Names) -> None:
        lines.extend(map(written, lines_of(step)))

    steps = execute(rule, operands, watch)
    return Trace("\n".join(lines), str(steps[-1].value))


def read(rule: Rule, text: str, detail: Detail, operands: Sequence[str] = ()) -> list[Step]:
    """The steps that a trace stands for; none with detail=answer.

    Values are taken from the lines, even if they are wrong; values that the lines do not show are computed from these.

    Args:
        rule: the rule that the trace follows.
        text: the trace.
        detail: its level of detail.
        operands: the numbers of the question; only traces of bare and results need them.

    Raises RuleError, with the number of the line, if a line does not have the form that the rule leads to, contradicts
    an earlier line, or is missing.
    """
    if detail == "answer":
        return []
    reader = _Reader(rule, text, detail)
    steps = execute(rule, operands or ["0"] * len(rule.entry.args.args), reader.settle)
    reader.check_end()
    return steps


class _Reader(Interpreter):
    def __init__(self, rule: Rule, text: str, detail: Detail) -> None:
        super().__init__(rule)
        self.given: Iterator[tuple[int, str]] = enumerate(text.split("\n") if text else [], 1)
        self.lines_of = writer(rule, detail)

    def settle(self, step: Step, names: Names) -> None:
        for line in self.lines_of(step):
            number, text = next(self.given, (0, ""))
            texts = found(line, text)
            if texts is None:
                self.refuse(number, text, line)
            for slot, said in zip(slots(line), texts, strict=True):
                try:
                    self.assign(slot.target, value_of(slot, said), names)
                except ValueError:
                    self.refuse(number, text, line)

    def refuse(self, number: int, text: str, line: Line) -> NoReturn:
        where = f"line {number} of a trace is {text!r}" if number else "a trace ends"
        raise RuleError(f"rule {self.rule.name}: {where}, but a line such as {written(line)!r} should follow")

    def check_end(self) -> None:
        number, text = next(self.given, (0, ""))
        if number:
            self.fail(f"line {number} of a trace is {text!r}, after the rule has ended")


def check_readable(rule: Rule, operands: Sequence[str], detail: Detail) -> None:
    """Raises RuleError, naming the rule, if its trace on these operands cannot be read back."""
    steps = read(rule, trace(rule, operands, detail).text, detail, operands)
    if detail != "answer" and list(map(content, steps)) != list(map(content, execute(rule, operands))):
        raise RuleError(f"rule {rule.name}: a trace of rules.detail={detail} is read back as a different execution")


def content(step: Step) -> tuple[object, ...]:
    """What two steps must have in common to count as the same."""
    return step.did, step.node.lineno, step.depth, step.after, step.value if step.did in ("test", "return") else None
