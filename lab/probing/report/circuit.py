"""A circuit and its drawing: which heads attend to which digit, which components bring the carry about, and which
component passes it to which.

In the drawing, digits are on the left and the answer is on the right; in between, each layer has a column for its heads
and one for its MLP. `lab.probing.report.assembly` puts the circuit together from what instruments found.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from lab.probing.components import Component
from lab.probing.report.telling import percent

if TYPE_CHECKING:
    from jinja2 import Template

ANSWER = "s_k"
"""The digit that is written."""
_WIDTH, _HEIGHT = 108, 46
"""The size of a box, in pixels."""
_ACROSS, _DOWN = 170, 66
"""The distance from one box to the next, in pixels."""
_MARGIN = 14
_THINNEST, _THICKEST = 1.0, 6.0


class Arrow(NamedTuple):
    """Attention to a digit, or a path of the carry."""

    start: str
    """A digit, such as "a_k-1", or a component."""
    end: str
    """A component, or the digit that is written."""
    weight: float
    """Attention, or the effect of the path; negative if it works against the carry."""


class Circuit(NamedTuple):
    """The components that bring the carry about or attend to digits, and how they are connected."""

    parts: Sequence[Component]
    effects: Mapping[Component, float]
    """The effect of patching each component, as it is told (`telling`), for those with an effect above the
    threshold."""
    arrows: Sequence[Arrow]
    what: str = "carry"
    """What the components pass on."""

    def __repr__(self) -> str:
        """A line for each arrow, ordered by the layer that it leads to."""
        order = [str(part) for part in self.parts] + [self.written]
        arrows = sorted(self.arrows, key=lambda arrow: (order.index(arrow.end), arrow.start))
        return "\n".join(f"{arrow.start} -> {arrow.end} {percent(arrow.weight, '')}" for arrow in arrows)

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return svg(self)

    @property
    def written(self) -> str:
        """The name of the box of what is written: the digit s_k, or the answer to a prompt."""
        return ANSWER if self.what == "carry" else "answer"

    @property
    def heads(self) -> list[Component]:
        return [part for part in self.parts if part.kind == "head"]

    @property
    def digits(self) -> list[str]:
        """The digits that heads attend to; those of operand a come first."""
        return sorted({arrow.start for arrow in self.arrows if arrow.start[1:2] == "_"})


class Box(NamedTuple):
    x: float
    y: float
    name: str
    lines: list[str]
    """The text below the name."""
    kind: str
    """"digit", "head", "mlp" or "answer"."""


class Line(NamedTuple):
    path: str
    """A path in the syntax of SVG."""
    thickness: float
    label: str
    kind: str
    """"looks" for attention to a digit, "passes" for a path of the carry, "against" if the path works against it."""


class Diagram(NamedTuple):
    width: float
    height: float
    box_width: float
    box_height: float
    boxes: list[Box]
    lines: list[Line]


def svg(circuit: Circuit) -> str:
    """The drawing, in the colours of the page around it; "" for a circuit without parts."""
    return template("circuit.svg").render(diagram=diagram(circuit)) if circuit.parts else ""


def template(name: str) -> "Template":
    """The template in a file of this folder; it escapes what is put into it."""
    from jinja2 import Environment

    return Environment(autoescape=True).from_string(files("lab.probing.report").joinpath(name).read_text("utf-8"))


def diagram(circuit: Circuit) -> Diagram:
    """The boxes and lines of a circuit. A layer without heads or without an MLP in the circuit has no column for it."""
    by_step: dict[tuple[int, bool], list[Box]] = {}
    for part in circuit.parts:
        by_step.setdefault((part.layer, part.kind != "head"), []).append(_box(part, circuit))
    digits = [Box(0, 0, digit, [], "digit") for digit in circuit.digits]
    columns = [by_step[step] for step in sorted(by_step)] + [[Box(0, 0, circuit.written, ["is written"], "answer")]]
    columns = [digits, *columns] if digits else columns
    tallest = max(map(len, columns))
    placed = [
        box._replace(x=_MARGIN + index * _ACROSS, y=_MARGIN + (tallest - len(column)) * _DOWN / 2 + row * _DOWN)
        for index, column in enumerate(columns)
        for row, box in enumerate(column)
    ]
    by_name = {box.name: box for box in placed}
    lines = [_line(arrow, by_name[arrow.start], by_name[arrow.end], circuit.what) for arrow in circuit.arrows]
    return Diagram(
        2 * _MARGIN + (len(columns) - 1) * _ACROSS + _WIDTH,
        2 * _MARGIN + (tallest - 1) * _DOWN + _HEIGHT,
        _WIDTH,
        _HEIGHT,
        placed,
        lines,
    )


def _box(part: Component, circuit: Circuit) -> Box:
    looks = [
        f"{arrow.start} {percent(arrow.weight, '')}"
        for arrow in circuit.arrows
        if arrow.end == str(part) and arrow.start in circuit.digits
    ]
    carries = [f"{circuit.what} {percent(circuit.effects[part], '')}"] if part in circuit.effects else []
    return Box(0, 0, str(part), [", ".join(looks[:2])] * bool(looks) + carries, part.kind)


def _line(arrow: Arrow, start: Box, end: Box, what: str) -> Line:
    one = "a carry" if what == "carry" else "the answer"
    if start.kind == "digit":
        kind, label = "looks", f"{end.name} looks at {start.name}: {percent(arrow.weight, '')} of its attention"
    elif arrow.weight >= 0:
        kind, label = "passes", f"{start.name} passes {percent(arrow.weight, '')} of {one} to {end.name}"
    else:
        kind, label = "against", f"{start.name} works against {one} at {end.name}: {percent(arrow.weight, '')}"
    thickness = _THINNEST + (_THICKEST - _THINNEST) * min(1.0, abs(arrow.weight))
    return Line(_curve(start, end), thickness, label, kind)


def _curve(start: Box, end: Box) -> str:
    x, y = start.x + _WIDTH, start.y + _HEIGHT / 2
    to_x, to_y = end.x - 6, end.y + _HEIGHT / 2  # leaves room for the head of the arrow
    bend = max(30.0, (to_x - x) / 2)
    return f"M{x:g},{y:g} C{x + bend:g},{y:g} {to_x - bend:g},{to_y:g} {to_x:g},{to_y:g}"
