"""A tape with a cell for each place of a number, and how a rule writes on it, one place a line.

The digits of a question stand on the tape, each at its place: ones at place 0, tens at 1, the first decimal at -1. At
place 0 stands the operator, too. A rule looks at one place at a time: at the digits of the question there, at what the
last visit left there (the cell), and at the last line. It writes a line:

    > add 1 ; 7             move up; the phase `add` goes on with a carry of 1; the cell becomes 7
    < out is 7              move down; the phase `out` goes on; 7 is the next digit of the answer
    | point                 stay; the phase `point` goes on
    . done is 7             stop

A line changes as many words of the cell as it has after ";", except where it has "-". The phase says what the next line
looks at (`Looks`): all that a rule knows is that, and the last line's state. So a rule is a function from what stands
at a place to a line. It cannot act on a whole number, pad it, or see how long it is: what must be known farther up or
down is carried by every line.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from lab.errors import RuleError
from lab.numbers.representations import Fraction, Representation, split_parts
from lab.numbers.sampling import Problem, task_of

UP, DOWN, STAY, STOP = ">", "<", "|", "."
MOVES = {UP: 1, DOWN: -1, STAY: 0, STOP: 0}
BLANK, SAME, ONES, CELL, WROTE, DONE = "_", "-", "ones", ";", "is", "done"
STATE, ASKED, CELLS = 6, 4, 4
"""How many words the state of a line, the digits of the question at a place, and a cell have."""
LONGEST = 200_000
"""The most lines that a rule may write."""


class Looks(NamedTuple):
    """What a phase looks at."""

    asked: tuple[int, ...]
    """Which digits of the question, by their index in `View.asked`."""
    cell: tuple[int, ...]
    """Which words of the cell."""
    place: str
    """"operator" if it sees the operator at place 0, "ones" if it sees only that the place is 0, else ""."""

    @classmethod
    def at(cls, names: str) -> "Looks":
        """Out of names: a, b (digits of the first and second number), c, d (of their second parts), 0 to 3 (words of
        the cell), operator, ones."""
        found = names.split()
        place = [name for name in found if name in ("operator", "ones")]
        asked = tuple("abcd".index(name) for name in found if name in ("a", "b", "c", "d"))
        return cls(asked, tuple(int(name) for name in found if name.isdigit()), *(place or [""]))


EVERYTHING = Looks.at("a b c d 0 1 2 3 operator")


class View(NamedTuple):
    """What a rule sees before it writes a line; BLANK for everything that is not there or that it does not look at."""

    phase: str
    state: tuple[str, ...]
    operator: str
    """The operator, or ONES, at place 0."""
    asked: tuple[str, ...]
    """The digits of the question at this place: of the first and the second number, then of their second parts
    (denominators or exponents)."""
    cell: tuple[str, ...]
    looks: Looks = EVERYTHING

    @property
    def a(self) -> str:
        return self.asked[0]

    @property
    def b(self) -> str:
        return self.asked[1]

    @property
    def ones(self) -> bool:
        return self.operator != BLANK

    @property
    def words(self) -> list[str]:
        """The view as a model reads it."""
        place = [self.operator] if self.looks.place else []
        asked, cell = (
            [have[i] for i in some] for have, some in ((self.asked, self.looks.asked), (self.cell, self.looks.cell))
        )
        return [self.phase, *_trimmed(self.state), CELL, *asked, *cell, *place]

    def only(self, looks: Looks) -> "View":
        """What a phase sees of this."""
        operator = self.operator if looks.place == "operator" or not self.ones else ONES if looks.place else BLANK
        asked = tuple(word if i in looks.asked else BLANK for i, word in enumerate(self.asked))
        cell = tuple(word if i in looks.cell else BLANK for i, word in enumerate(self.cell))
        return View(self.phase, self.state, operator, asked, cell, looks)


class Line(NamedTuple):
    move: str
    phase: str
    state: tuple[str, ...] = ()
    cell: tuple[str, ...] = ()
    """What the first words of the cell become; SAME for those that stay."""
    wrote: tuple[str, ...] = ()
    """The next words of the answer."""

    @property
    def words(self) -> list[str]:
        cell = [CELL, *self.cell] if self.cell else []
        return [self.move, self.phase, *_trimmed(self.state), *cell, *([WROTE, *self.wrote] if self.wrote else [])]

    @classmethod
    def read(cls, words: Sequence[str]) -> "Line | None":
        """The line that these words write; None if they write none."""
        before, wrote = _parted(words, WROTE)
        start, cell = _parted(before, CELL)
        if len(start) < 2 or start[0] not in MOVES or len(start) > 2 + STATE or len(cell) > CELLS:
            return None
        return cls(start[0], start[1], tuple(start[2:]), tuple(cell), tuple(wrote))


Step: TypeAlias = Callable[[View], Line]


class Tape:
    """The tape of one question, and where on it the next line is written."""

    def __init__(self, problem: Problem) -> None:
        task = task_of(problem)
        self.operator = f"<{task.key}>"
        self.asked: dict[int, list[str]] = {}
        self._put(0, problem.a, task.representation)
        if problem.b is not None and task.second is not None:
            self._put(1, problem.b, task.second)
        self.cells: dict[int, tuple[str, ...]] = {}
        self.place = 0
        self.phase, self.state = self.operator, (BLANK,) * STATE
        self.answer: list[str] = []
        self.stopped = False

    def view(self) -> View:
        return View(
            self.phase,
            self.state,
            self.operator if self.place == 0 else BLANK,
            tuple(self.asked.get(self.place, (BLANK,) * ASKED)),
            self.cells.get(self.place, (BLANK,) * CELLS),
        )

    def write(self, line: Line) -> None:
        if line.cell:
            before = self.cells.get(self.place, (BLANK,) * CELLS)
            changed = [old if new == SAME else new for old, new in zip(before, line.cell, strict=False)]
            self.cells[self.place] = (*changed, *before[len(changed) :])
        self.phase, self.state = line.phase, _filled(line.state, STATE)
        self.answer += line.wrote
        self.place += MOVES[line.move]
        self.stopped = line.move == STOP

    def _put(self, column: int, number: str, representation: Representation) -> None:
        parts = split_parts(number, representation)
        self._digits(column, parts[0][::-1], 0, 1)
        if representation is Fraction:
            self._digits(column + 2, parts[1][::-1], 0, 1)
        elif len(parts) > 1:
            self._digits(column, parts[1], -1, -1)
        if len(parts) > 2:
            self._digits(column + 2, parts[2][::-1], 0, 1)

    def _digits(self, column: int, digits: str, first: int, step: int) -> None:
        for index, digit in enumerate(digits):
            self.asked.setdefault(first + step * index, [BLANK] * ASKED)[column] = digit


class Written(NamedTuple):
    lines: list[tuple[View, Line]]
    answer: str


def executed(step: Step, seen: Callable[[View], View], problem: Problem) -> Written:
    """The lines that a rule writes for a question, and its answer. Raises RuleError if it does not stop.

    Args:
        step: the rule.
        seen: what the rule sees of a place.
        problem: the question.
    """
    tape, lines = Tape(problem), []
    while not tape.stopped:
        view = seen(tape.view())
        lines.append((view, step(view)))
        tape.write(lines[-1][1])
        if len(lines) > LONGEST:
            raise RuleError(f"the rule of {tape.operator} has written {LONGEST} lines and goes on")
    return Written(lines, "".join(tape.answer))


def _trimmed(words: Sequence[str]) -> list[str]:
    kept = list(words)
    while kept and kept[-1] == BLANK:
        kept.pop()
    return kept


def _filled(words: Sequence[str], size: int) -> tuple[str, ...]:
    return (*words, *[BLANK] * (size - len(words)))


def _parted(words: Sequence[str], sign: str) -> tuple[list[str], list[str]]:
    """The words before a sign and those after it."""
    at = words.index(sign) if sign in words else len(words)
    return list(words[:at]), list(words[at + 1 :])
