"""Counts, one decimal digit a walk, and finds the digit at a position.

To count, each place that counts gets a mark. A walk down counts the marks up to nine, begins again at ten, and leaves
one mark in ten, where it did. So the first walk gives the ones digit of the number of marks, the second walk, over the
marks that are left, the tens digit, and the third the hundreds. All walks are alike, and none holds a number of two
digits. The place below the number keeps what is to be done, and the digits of the count.

Cells of the number hold a mark, whether the place is passed over, and a rounded digit.
"""

from experiments.nupa.rules.phases import (
    PHASES,
    Line,
    View,
    down,
    phase,
    starts,
    stay,
    stop,
    up,
    value,
    within,
    written,
)
from experiments.nupa.tape import BLANK, SAME

MARK, PASSED, ABOVE, TRAILING = "x", "n", "above", "zeros"
GOALS = {"length": "mark", "count": "mark", "scientific": "gauge", "digit": "number", "figures": "number",
         "point": "number_decimals"}  # fmt: skip
"""What is to be done, and the first phase of it."""
INDEXED = {"digit": "find", "figures": "seek", "point": "ascend_digits"}
"""What comes after the index."""


@starts(*(f"{name}_{kind}" for name in ("length", "get_digit", "to_scient", "sig") for kind in ("integer", "float")))
def start(view: View) -> Line:
    name = view.operator.strip("<>").rpartition("_")[0]
    return down(low, {"get_digit": "digit", "to_scient": "scientific", "sig": "figures"}.get(name, name))


@starts("to_float_scientific")
def start_point(view: View) -> Line:
    return down(low, "point")


@starts("count_integer")
def start_counting(view: View) -> Line:
    return stay(want)


@phase("b")
def want(view: View) -> Line:
    return down(low, "count", view.b)


@phase("a")
def low(view: View) -> Line:
    """Goes down to the place below the number, notes there what is to be done, and begins."""
    goal, wanted = view.state[:2]
    if view.a != BLANK:
        return down(low, goal, wanted)
    return up(PHASES[GOALS[goal]], *((TRAILING,) if goal == "scientific" else (wanted,)), cell=(goal,))


def below(view: View) -> bool:
    """Whether this is the place below the number."""
    return view.cell[0] in GOALS


def empty(view: View) -> bool:
    """Whether the number has no digit here, not even a rounded one."""
    return view.a == view.cell[2] == BLANK


@phase("a")
def mark(view: View) -> Line:
    """Marks each digit, or each that equals the state's."""
    wanted = view.state[0]
    if view.a == BLANK:
        return down(count, "0")
    return up(mark, wanted, cell=(MARK,) if wanted in (BLANK, view.a) else ())


@phase("0")
def count(view: View) -> Line:
    """The state: how many marks there were in this walk, modulo ten."""
    now = view.state[0]
    if below(view):
        return stay(counted, now)
    if view.cell[0] != MARK:
        return down(count, now)
    if now == "9":
        return down(count, "0")
    return down(count, str(int(now) + 1), cell=(BLANK,))


@phase("0 1 2")
def counted(view: View) -> Line:
    """Notes a digit of the count; after the last one, writes the count, or the number whose exponent it is."""
    now, (goal, ones, tens) = view.state[0], view.cell[:3]
    if ones == BLANK:
        return up(again, cell=(SAME, now))
    if tens == BLANK:
        return up(again, cell=(SAME, SAME, now))
    if goal in ("length", "count"):
        return stop(*digits(ones, tens, now))
    return up(PHASES["rise"], cell=(SAME, SAME, SAME, now))


def digits(ones: str, tens: str, hundreds: str) -> tuple[str, ...]:
    """A number without leading zeros."""
    if hundreds != "0":
        return hundreds, tens, ones
    return (tens, ones) if tens != "0" else (ones,)


@phase("a 2")
def again(view: View) -> Line:
    """Goes up to the highest digit for the next walk."""
    return down(count, "0") if empty(view) else up(again)


# The digit at a position: digits are numbered from the left, from 1 on; first the ones of their numbers, then the tens,
# then the hundreds


@phase("a b ones")
def number(view: View) -> Line:
    """Marks all digits, and takes the ones digit of the position with it from place 0 on."""
    wanted = view.b if view.ones else view.state[0]
    return down(index, "0", wanted) if view.a == BLANK else up(number, wanted, cell=(MARK,))


@phase("a c ones")
def number_decimals(view: View) -> Line:
    """Like `number`, for the decimals alone, with the exponent in place of the position."""
    wanted = view.asked[2] if view.ones else view.state[0]
    if view.a == BLANK:
        return down(index, "0", wanted)
    return up(number_decimals, wanted, cell=() if view.ones else (MARK,))


@phase("0 1")
def index(view: View) -> Line:
    """Passes over the digits whose number does not have the wanted digit. The state: the number's digit, the wanted
    one."""
    now, wanted = view.state[:2]
    if below(view):
        return stay(indexed)
    marked, passed = view.cell[:2]
    if marked == MARK:
        now = str((int(now) + 1) % 10)
        marked = MARK if now == "0" else BLANK
    return down(index, now, wanted, cell=(marked, BLANK if passed == BLANK and now == wanted else PASSED))


@phase("0 1")
def indexed(view: View) -> Line:
    """Counts the walks; after the third, goes on with what is to be done."""
    goal, walks = view.cell[0], value(view.cell[1]) + 1
    if walks < 3:
        return up(reach, str(walks), cell=(SAME, str(walks)))
    return up(PHASES[INDEXED[goal]], cell=(SAME, BLANK))


@phase("ones")
def reach(view: View) -> Line:
    """Goes up to place 0. The state: how much higher the next digit of the position stands."""
    return up(take if view.ones else reach, view.state[0])


@phase("a b c")
def take(view: View) -> Line:
    if view.state[0] == "2":
        return up(take, "1")
    return go_with(within(view, written(view.asked[2] if view.b == BLANK else view.b)))


@phase("a")
def go_with(view: View) -> Line:
    """Goes up to the highest digit; the state is the wanted digit."""
    wanted = view.state[0]
    return down(index, "0", wanted) if view.a == BLANK else up(go_with, wanted)


@phase("a 1")
def find(view: View) -> Line:
    """The digit after that with the wanted number; the first digit if none has it. Positions count from 0, and numbers
    from 1. The state is the digit before this one."""
    before = view.state[0]
    found = view.a == BLANK or (view.cell[1] == BLANK and before != BLANK)
    return stop(before) if found else up(find, view.a)


@phase("a 1 ones")
def seek(view: View) -> Line:
    """Goes up to the last figure, leaves out the digits below it, and rounds it. The state: the digit below, and
    whether the ones digit has passed."""
    before, above = view.state[:2]
    if view.a == BLANK:
        return down(count, "0")
    if view.cell[1] == BLANK:
        return _rounded(view, int(value(before) >= 5), above)
    return up(seek, view.a, ABOVE if view.ones else above, cell=(_mark(above), PASSED, view.a))


@phase("a ones")
def carry(view: View) -> Line:
    """Goes on with the carry of rounding."""
    carried, above = view.state[:2]
    if view.a != BLANK:
        return _rounded(view, int(carried), above)
    return up(carry, "0", above, cell=(MARK, BLANK, "1")) if carried == "1" else down(count, "0")


def _rounded(view: View, more: int, above: str) -> Line:
    total = value(view.a) + more
    later = ABOVE if view.ones else above
    return up(carry, str(total // 10), later, cell=(_mark(above), BLANK, str(total % 10)))


def _mark(above: str) -> str:
    """Digits above the ones digit are marked: their number is the exponent."""
    return MARK if above == ABOVE else BLANK


@phase("a ones")
def gauge(view: View) -> Line:
    """Leaves out trailing zeros, and marks the digits above the ones digit."""
    trailing, above = view.state[:2]
    if view.a == BLANK:
        return down(count, "0")
    trailing = TRAILING if trailing == TRAILING and view.a == "0" else BLANK
    cell = (_mark(above), PASSED if trailing == TRAILING else BLANK, view.a)
    return up(gauge, trailing, ABOVE if view.ones else above, cell=cell)


@phase("ones")
def ascend_digits(view: View) -> Line:
    return stay(before_point) if view.ones else up(ascend_digits)


@phase("a 1")
def before_point(view: View) -> Line:
    """Writes the digits, with a point after the one that was not passed over."""
    if view.cell[1] == PASSED:
        return down(before_point, wrote=(view.a,))
    return down(after_point, wrote=(view.a, "."))


@phase("a")
def after_point(view: View) -> Line:
    return stop("0") if view.a == BLANK else down(to_the_end, wrote=(view.a,))


@phase("a")
def to_the_end(view: View) -> Line:
    return stop() if view.a == BLANK else down(to_the_end, wrote=(view.a,))
