"""Which lines of a trace are no longer needed, and what reading costs without them (as in PENCIL, Yang et al. 2025).

A name's value is needed while the name is live, that is, while some statement may still read it before it is set again.
A line of a trace is needed while it is the last line that shows a value that is needed. A change such as `a=a[:-1]`
also needs the line with the previous value. A model that forgets all other lines has a context that does not grow with
every turn of a loop.
"""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

from lab.config.schema import Detail
from lab.text.execution import Names, Step, execute, target_of
from lab.text.liveness import Live, Liveness, names
from lab.text.rulebook import Rule
from lab.text.trace_lines import Line, slots, written
from lab.text.tracing import writer


class Written(NamedTuple):
    """A line of a trace, and the part of the trace that is still needed when the line is written."""

    text: str
    kept: tuple[str, ...]
    """The earlier lines that are needed, in order."""
    dead: Live
    """The names of its function whose values nothing reads after this line."""


@dataclass
class _Frame:
    live: Liveness
    needed: Live = frozenset()
    calling: ast.stmt | None = None
    returned: bool = False
    lines: dict[str, list[int]] = field(default_factory=dict)
    """For each name, the numbers of the lines that give its value."""


def erased(rule: Rule, operands: Sequence[str], detail: Detail) -> list[Written]:
    """The lines of a trace, each with the earlier lines that are still needed. Raises RuleError as `trace` does."""
    eraser = _Eraser(rule, detail)
    execute(rule, operands, eraser.watch)
    return eraser.written


class _Eraser:
    def __init__(self, rule: Rule, detail: Detail) -> None:
        self.writing = writer(rule, detail)
        self.liveness = {name: Liveness(function) for name, function in rule.functions.items()}
        self.frames: list[_Frame] = []
        self.written: list[Written] = []

    def watch(self, step: Step, values: Names) -> None:
        if step.did == "enter":
            self.frames.append(_Frame(self.liveness[step.node.name]))  # type: ignore[union-attr]
        frame = [frame for frame in self.frames if not frame.returned][-1]
        lines = self.writing.lines(step)
        for line in lines:
            self.add(line, frame, values, _needed(frame.live, step))
        if step.did == "call":
            frame.calling, frame.needed = step.node, frame.live.before[step.node]  # type: ignore[index]
        elif step.did == "return":
            frame.returned, frame.needed = True, names(step.node.value)  # type: ignore[union-attr]

    def add(self, line: Line, frame: _Frame, values: Names, needed: Live) -> None:
        kept = tuple(self.written[place].text for place in self.needed_lines())
        for slot in slots(line):
            for name in names(slot.target):
                before = frame.lines.get(name, []) if slot.before is not None else []
                frame.lines[name] = [*before, len(self.written)]
        self.written.append(Written(written(line), kept, frozenset(values) - needed))
        frame.needed = needed
        # arguments have now been passed, and returned values assigned
        self.frames = [other for other in self.frames if not other.returned]
        for caller in self.frames[: self.frames.index(frame)]:
            caller.needed = _after_call(caller)

    def needed_lines(self) -> list[int]:
        return sorted({place for frame in self.frames for name in frame.needed for place in frame.lines.get(name, [])})


def _needed(live: Liveness, step: Step) -> Live:
    """The names that may still be read after a step."""
    node: Any = step.node
    match step.did:
        case "enter":
            return live.entry
        case "each":
            return live.before[node.body[0]]
        case "return":
            return names(node.value)
        case "assign" | "pass":
            return live.after[node]
    return live.turn.get(node, live.before[node])


def _after_call(caller: _Frame) -> Live:
    node: Any = caller.calling
    target = target_of(node)
    return caller.live.after[node] - (names(target) if target else frozenset())


class Reading(NamedTuple):
    """How many tokens a trace has, and how many are read to write it."""

    written: int
    read: int
    """The sum over written tokens of the number of tokens that each can attend to."""
    most: int
    """The most tokens that any one token attends to."""
    again: int
    """Kept tokens that follow forgotten ones; they are computed again, unless their keys may be kept unchanged."""


def tokens_read(lines: Sequence[Written], prompt: int, tokens: Callable[[str], int], forgetting: bool) -> Reading:
    """Counts the tokens that are written and read when a trace is written after a prompt.

    Args:
        lines: the trace; each line comes with the earlier lines that it needs.
        prompt: number of tokens of the prompt, which is never forgotten.
        tokens: counts the tokens of a line, including its line break.
        forgetting: whether only the needed lines are read; if False, all earlier lines are.
    """
    count = read = most = again = 0
    before: tuple[str, ...] = ()
    for line in lines:
        kept = line.kept if forgetting else before
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, kept, strict=False)))
        again += sum(map(tokens, kept[same:]))
        context, own = prompt + sum(map(tokens, kept)), tokens(line.text)
        read += own * context + own * (own - 1) // 2
        most = max(most, context + own - 1)
        before = (*kept, line.text)
        count += own
    return Reading(count, read, most, again)
