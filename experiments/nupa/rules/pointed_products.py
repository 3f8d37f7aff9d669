"""Products of floats and of numbers in scientific notation: digits of the second number from the highest down.

For each of them, the total moves up by one place and that many times the first number is added; the first number stays
where it is. So each decimal of the second number moves the place of the point up by one. Cells hold the digit of the
total, the point's mark, and whether this digit of the second number is done. Of an exponent, they hold a digit in the
fourth word.
"""

from experiments.nupa.rules.output import point
from experiments.nupa.rules.phases import Line, View, down, phase, starts, stay, stop, up, value
from experiments.nupa.rules.places import TRAILING
from experiments.nupa.tape import BLANK, SAME

POINT, DECIMAL, MOVING, BELOW, SCIENTIFIC = "point", "decimal", "moving", "below", "scientific"


@starts(*(f"multiply_{how}_{kind}" for how in ("hard", "easy") for kind in ("float", "scientific")))
def start(view: View) -> Line:
    return up(higher, cell=(SAME, POINT))


@phase("b")
def higher(view: View) -> Line:
    return down(pick) if view.b == BLANK else up(higher)


@phase("b 2 ones")
def pick(view: View) -> Line:
    """Goes down to the next digit of the second number. The state: whether it is a decimal."""
    decimal = view.state[0]
    below = DECIMAL if view.ones else decimal
    if view.b == BLANK:
        return up(under, "trim") if decimal == DECIMAL else down(pick)
    if view.cell[2] == BLANK:
        return down(under, "horner", view.b, decimal, cell=(SAME, SAME, "x"))
    return down(pick, below)


@phase("a b")
def under(view: View) -> Line:
    """Goes down to the place below both numbers. The state: what comes then."""
    then, factor, decimal = view.state[:3]
    if view.a != BLANK or view.b != BLANK:
        return down(under, then, factor, decimal)
    if then == "horner":
        return up(horner, factor, decimal)
    return up(trim, BELOW) if then == "trim" else up(to_power, factor)


@phase("a 0 1")
def horner(view: View) -> Line:
    """The state: the digit of the second number; whether the point moves up; the carry, blank below the first number;
    the total's digit from the place below; and the product of two digits."""
    factor, moves, carry, below = view.state[:4]
    if view.a == BLANK and carry == BLANK:
        return up(horner, factor, moves)
    if view.a == view.cell[0] == below == BLANK and carry == "0":
        return stay(higher)
    tens, ones = divmod(int(factor) * value(view.a), 10)
    more, digit = divmod(value(below) + ones + value(carry), 10)
    mark, moves = _moved(view.cell[1], moves)
    cell = (str(digit),) if mark == view.cell[1] else (str(digit), mark)
    return up(horner, factor, moves, str(tens + more), view.cell[0], str(tens), str(ones), cell=cell)


def _moved(mark: str, moves: str) -> tuple[str, str]:
    """The point's mark at this place, and whether it moves at the next."""
    if moves == MOVING:
        return POINT, BLANK
    return (BLANK, MOVING) if (mark, moves) == (POINT, DECIMAL) else (mark, moves)


@phase("0 1 operator")
def trim(view: View) -> Line:
    """Goes up, and drops zeros after the last decimal. The state: where it is; whether the answer has an exponent."""
    where, kind = view.state[:2]
    digit, mark = view.cell[:2]
    if view.ones and view.operator.endswith("_scientific>"):
        kind = SCIENTIFIC
    if digit == BLANK and where != BELOW:
        return down(leading_figure if kind == SCIENTIFIC else leading_zeros)
    if digit == BLANK:
        return up(trim, BELOW, kind)
    if digit == "0" and mark != POINT and where in (BELOW, TRAILING):
        return up(trim, TRAILING, kind, cell=(BLANK,))
    return up(trim, BLANK if mark == POINT or where not in (BELOW, TRAILING) or digit != "0" else TRAILING, kind)


@phase("0 1")
def leading_zeros(view: View) -> Line:
    digit, mark = view.cell[:2]
    if digit == "0" and mark != POINT:
        return down(leading_zeros)
    return whole_digits(view)


@phase("0 1")
def whole_digits(view: View) -> Line:
    digit, mark = view.cell[:2]
    return down(point if mark == POINT else whole_digits, wrote=(digit,))


@phase("0 1")
def leading_figure(view: View) -> Line:
    """Writes the leading digit; if it stands above the point's place, the exponent is one higher."""
    digit, mark = view.cell[:2]
    if digit == "0":
        return down(leading_figure)
    return down(next_figure, "0" if mark == POINT else "1", wrote=(digit, "."))


@phase("0")
def next_figure(view: View) -> Line:
    more, digit = view.state[0], view.cell[0]
    return stay(under, "to_power", more, wrote=("0", "e")) if digit == BLANK else down(figures, more, wrote=(digit,))


@phase("0")
def figures(view: View) -> Line:
    more, digit = view.state[0], view.cell[0]
    return stay(under, "to_power", more, wrote=("e",)) if digit == BLANK else down(figures, more, wrote=(digit,))


@phase("ones")
def to_power(view: View) -> Line:
    return stay(power_total, view.state[0]) if view.ones else up(to_power, view.state[0])


@phase("c d")
def power_total(view: View) -> Line:
    """Adds the exponents. The state: the carry."""
    _, _, c, d = view.asked
    carry = view.state[0]
    if c == d == BLANK and carry == "0":
        return down(power_zeros)
    more, digit = divmod(value(c) + value(d) + int(carry), 10)
    return up(power_total, str(more), cell=(SAME, SAME, SAME, str(digit)))


@phase("3 ones")
def power_zeros(view: View) -> Line:
    return down(power_zeros) if view.cell[3] == "0" and not view.ones else power_digits(view)


@phase("3 ones")
def power_digits(view: View) -> Line:
    return stop(view.cell[3]) if view.ones else down(power_digits, wrote=(view.cell[3],))
