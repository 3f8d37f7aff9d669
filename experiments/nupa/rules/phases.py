"""The phases of the rules: each is a function from what stands at a place to a line (experiments/nupa/tape.py)."""

from collections.abc import Callable

from experiments.nupa.tape import BLANK, DONE, DOWN, STATE, STAY, STOP, UP, Line, Looks, Step, View

PHASES: dict[str, Step] = {}
STARTS: dict[str, Step] = {}
"""The first line of each task, by its operator."""
LOOKS: dict[str, Looks] = {}
"""What each phase looks at."""


def phase(looks: str = "") -> Callable[[Step], Step]:
    """Registers a phase under its name. `looks`: what it looks at (`Looks.at`)."""

    def register(function: Step) -> Step:
        PHASES[function.__name__], LOOKS[function.__name__] = function, Looks.at(looks)
        return function

    return register


def starts(*tasks: str) -> Callable[[Step], Step]:
    """Registers the function that writes the first line of these tasks."""

    def register(function: Step) -> Step:
        STARTS.update({f"<{task}>": function for task in tasks})
        return function

    return register


def up(to: Step, *state: str, cell: tuple[str, ...] = (), wrote: tuple[str, ...] = ()) -> Line:
    return Line(UP, to.__name__, state, cell, wrote)


def down(to: Step, *state: str, cell: tuple[str, ...] = (), wrote: tuple[str, ...] = ()) -> Line:
    return Line(DOWN, to.__name__, state, cell, wrote)


def stay(to: Step, *state: str, cell: tuple[str, ...] = (), wrote: tuple[str, ...] = ()) -> Line:
    return Line(STAY, to.__name__, state, cell, wrote)


def stop(*wrote: str) -> Line:
    return Line(STOP, DONE, wrote=wrote)


def within(view: View, *state: str) -> View:
    """What is seen at the same place if the line before carried these words."""
    return view._replace(state=(*state, *[BLANK] * (STATE - len(state))))


def value(word: str) -> int:
    """The value of a digit; a missing one counts as 0."""
    return 0 if word == BLANK else int(word)


def written(word: str) -> str:
    """The digit to write; 0 for a missing one."""
    return "0" if word == BLANK else word
