"""Whether the numbers of a declared adder fit together, found from their shapes alone: nothing is allocated.

Shapes are tuples: () a number, (n,) a row, (n, m) a matrix of n rows.
"""

import math
from collections.abc import Sequence
from typing import Any

from lab.adders.references import Place, Reference, Refused, resolve
from lab.adders.spec import (
    LARGEST_FLOAT,
    LARGEST_VOCABULARY,
    Adder,
    Attention,
    Ffn,
    Head,
    Map,
    Norm,
    Positions,
    shape_of,
)

Shape = tuple[int, ...]
MOST_NUMBERS = 1 << 20
"""In any table, product or join."""
MOST_READ = 1 << 26
"""Numbers that a pass may read from tables, so that no chain of products takes forever."""


class Shapes:
    """The algebra of shapes (references.py)."""

    def __init__(self, tables: dict[str, Shape], vocabulary: int | None, largest: float) -> None:
        self.tables, self.vocabulary, self.largest, self.read = tables, vocabulary, largest, 0

    def literal(self, value: Any, place: Place) -> Shape:
        return shape_of(value, place, self.largest)

    def named(self, name: str, place: Place) -> Shape:
        if name not in self.tables:
            raise Refused(place, f"no numbers {name!r}; there are {', '.join(list(self.tables)[:20]) or 'none'}")
        self.read += math.prod(self.tables[name])
        if self.read > MOST_READ:
            raise Refused(place, f"up to here, a pass reads more than {MOST_READ:,} numbers")
        return self.tables[name]

    def negative(self, value: Shape) -> Shape:
        return value

    def transpose(self, value: Shape, place: Place) -> Shape:
        if len(value) != 2:
            raise Refused(place, f"{shown(value)} has no transpose; a matrix has")
        return value[::-1]

    def product(self, one: Shape, other: Shape, place: Place) -> Shape:
        if not one or not other:
            return _bounded(one or other, place)
        if len(one) != 2 or one[1] != other[0]:
            raise Refused(place, f"{shown(one)} times {shown(other)} is not a product of matrices")
        return _bounded((one[0], *other[1:]), place)

    def join(self, parts: Sequence[Shape], place: Place) -> Shape:
        parts = [part or (1,) for part in parts]
        for part in parts:
            if part[1:] != parts[0][1:]:
                raise Refused(place, f"{shown(parts[0])} and {shown(part)} cannot be rows of one table")
        return _bounded((sum(part[0] for part in parts), *parts[0][1:]), place)

    def ramp(self, step: Shape, place: Place) -> Shape:
        return (self._tokens(step, 1, place), 1)

    def arc(self, three: Shape, place: Place) -> Shape:
        return (self._tokens(three, 3, place), 2)

    def _tokens(self, given: Shape, count: int, place: Place) -> int:
        if math.prod(given) != count:
            raise Refused(place, f"{shown(given)}: should be {count} number{'s' if count > 1 else ''}")
        if self.vocabulary is None:
            raise Refused("vocabulary", f"missing; {place} needs to know how many tokens there are")
        return self.vocabulary


def _bounded(shape: Shape, place: Place) -> Shape:
    if math.prod(shape) > MOST_NUMBERS:
        raise Refused(place, f"{shown(shape)} is more than {MOST_NUMBERS:,} numbers")
    return shape


def shown(shape: Shape) -> str:
    return {0: "a number", 1: f"a row of {shape[0] if shape else 0}"}.get(len(shape), " x ".join(map(str, shape)))


def check_shapes(adder: Adder) -> int:
    """The size of the vocabulary. Raises Refused at the first numbers that do not fit."""
    largest = LARGEST_FLOAT[adder.precision]
    places = {name: f"numbers.{name}" for name in adder.numbers}
    tables = {name: _bounded(shape_of(adder.numbers[name], at, largest), at) for name, at in places.items()}
    checks = _Checks(Shapes(tables, adder.vocabulary, largest))
    model = adder.model
    tokens, width = checks.matrix(model.embedding, "model.embedding")
    if tokens > LARGEST_VOCABULARY or adder.vocabulary not in (None, tokens):
        allowed = f"vocabulary {adder.vocabulary}" if adder.vocabulary else f"at most {LARGEST_VOCABULARY}"
        raise Refused("model.embedding", f"has rows for {tokens} tokens; {allowed}")
    used = [*adder.digits, *(item for item in (*adder.prompt, *adder.answer) if isinstance(item, int))]
    if min(used) < 0 or max(used) >= tokens or len(set(adder.digits)) < 10:
        raise Refused(
            "digits, prompt, answer",
            f"token ids should be below {tokens}, the rows of the embedding, and digits differ",
        )
    if model.positions is not None:
        checks.positions(model.positions, adder.tokens, width)
    if model.rope is not None:
        name = "period" if model.rope.theta is None else "theta"
        checks.single(getattr(model.rope, name), f"model.rope.{name}")
    for place, kind, part in model.parts():
        for scale in ("residual", "branch"):
            checks.fits(getattr(part, scale), f"{place}.{scale}", (), (width,))
        if part.norm and not part.post:
            checks.norm(part.norm, f"{place}.norm", width)
        width_after = getattr(checks, kind)(part, place, width, model.rope is not None)
        if width_after != width and part.residual != 0:
            raise Refused(
                place, f"gives {width_after} numbers, and the stream has {width}; residual: 0 replaces the stream"
            )
        width = width_after
        if part.norm and part.post:
            checks.norm(part.norm, f"{place}.norm", width)
    if model.norm:
        checks.norm(model.norm, "model.norm", width)
    checks.head(model.head, width, tokens)
    return tokens


class _Checks:
    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes

    def of(self, reference: Reference, place: Place) -> Shape:
        return resolve(reference, self.shapes, place)

    def fits(self, reference: Reference, place: Place, *allowed: Shape) -> None:
        if (found := self.of(reference, place)) not in allowed:
            raise Refused(place, f"is {shown(found)}; should be {' or '.join(map(shown, allowed))}")

    def single(self, reference: Reference, place: Place) -> None:
        if math.prod(found := self.of(reference, place)) != 1:
            raise Refused(place, f"is {shown(found)}; should be a number")

    def matrix(self, reference: Reference, place: Place) -> Shape:
        if len(found := self.of(reference, place)) != 2:
            raise Refused(place, f"is {shown(found)}; should be a matrix")
        return found

    def map(self, linear: Map | None, place: Place, width: int) -> int:
        """The width after a map."""
        if linear is None or (linear.w is None and linear.b is None):
            return width
        if linear.w is not None:
            rows, columns = self.matrix(linear.w, f"{place}.w")
            if columns != width:
                raise Refused(place, f"is {rows} x {columns}, which takes {columns} numbers; it gets {width}")
            if linear.b is not None:
                self.fits(linear.b, f"{place}.b", (rows,))
            return rows
        if len(found := self.of(linear.b, f"{place}.b")) != 1:
            raise Refused(f"{place}.b", f"is {shown(found)}; should be a row")
        return found[0]

    def norm(self, norm: Norm, place: Place, width: int) -> None:
        for name in ("gain", "bias"):
            if (reference := getattr(norm, name)) is not None:
                self.fits(reference, f"{place}.{name}", (width,), ())

    def positions(self, positions: Positions, tokens: int, width: int) -> None:
        if (positions.table is None) == (positions.sinusoidal is None):
            raise Refused("model.positions", "should be a table or {sinusoidal: base}")
        if positions.table is None:
            return self.single(positions.sinusoidal, "model.positions.sinusoidal")
        rows, columns = self.matrix(positions.table, "model.positions")
        if rows < tokens or columns != width:
            raise Refused("model.positions", f"is {rows} x {columns}; should have {tokens} rows or more, of {width}")

    def attention(self, part: Attention, place: Place, width: int, turned: bool) -> int:
        kv_heads = part.kv_heads or part.heads
        if part.heads % kv_heads:
            raise Refused(f"{place}.kv_heads", f"{kv_heads}: should divide heads ({part.heads})")
        widths = [self.map(getattr(part, name), f"{place}.{name}", width) for name in "qkv"]
        for name, found, heads in zip("qkv", widths, (part.heads, kv_heads, kv_heads), strict=True):
            if found % heads:
                raise Refused(f"{place}.{name}", f"gives {found} numbers, which {heads} heads cannot share evenly")
        head = widths[0] // part.heads
        if widths[1] // kv_heads != head:
            raise Refused(f"{place}.k", f"gives {widths[1] // kv_heads} numbers a head, and q {head}")
        if turned and head % 2:
            raise Refused(f"{place}.q", f"gives {head} numbers a head, and rope turns pairs")
        for name in ("q_norm", "k_norm"):
            if norm := getattr(part, name):
                self.norm(norm, f"{place}.{name}", head)
        if part.alibi is not None:
            self.fits(part.alibi, f"{place}.alibi", (part.heads,), ())
        if part.scale is not None:
            self.single(part.scale, f"{place}.scale")
        return self.map(part.o, f"{place}.o", widths[2] // kv_heads * part.heads)

    def ffn(self, part: Ffn, place: Place, width: int, turned: bool) -> int:
        hidden = self.map(part.up, f"{place}.up", width)
        if part.gate is not None and self.map(part.gate, f"{place}.gate", width) != hidden:
            raise Refused(f"{place}.gate", f"does not give as many numbers as up ({hidden})")
        return self.map(part.down, f"{place}.down", hidden)

    def head(self, head: Head, width: int, tokens: int) -> None:
        if head.nearest is not None and (head.w is not None or head.b is not None):
            raise Refused("model.head", "should be either nearest or w and b")
        if head.nearest is not None:
            return self.fits(head.nearest, "model.head.nearest", (tokens, width))
        if head.w is None:
            raise Refused("model.head", "should be a reference, or have w or nearest")
        if (rows := self.map(head, "model.head", width)) != tokens:
            raise Refused("model.head", f"has rows for {rows} tokens, and the embedding for {tokens}")
