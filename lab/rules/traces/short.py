"""Traces without the statements: they show what statements looked up in texts, and what they assigned.

values   a line for each statement that assigns or looks something up:    a[-1:]=8 b[-1:]=5 total=13
state    a line for each iteration (or other stretch of statements):      a[-1:]=8 b[-1:]=5 result="3"+result carry=1
bare     the values of such a line alone:                                 8 5 3 1
results  the values without those that were looked up:                    3 1

A slice or an index is written with the current values of its bounds and with its result, digits without quotes, so that
a line contains everything that its expressions need. `state` shows only names that are still needed. If a text is cut
or extended, `state` writes only this change, so that lines do not grow with the numbers. The first line of a function
begins with its name, and what it returns appears where it is assigned. `bare` also leaves out the operands, cuts of a
name (`a = a[:-1]`), copies (`x = a`) and constants (`carry = 0`): they follow from the question and the rule. So does
what is looked up, which `results` leaves out, too.
"""

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from lab.rules.rulebook import Rule, calls_rule
from lab.rules.traces.execution import Did, Evaluator, Names, Step, computed, literal, target_of
from lab.rules.traces.lines import Line, Slot
from lab.rules.traces.liveness import Live, Liveness, names


@dataclass
class _Stretch:
    """What has happened in a function since its last line was written."""

    live: Liveness
    looked_up: dict[str, str] = field(default_factory=dict)
    """What is written for each look-up. The key includes the bounds, so that no look-up is written twice."""
    changed: dict[str, Slot | None] = field(default_factory=dict)
    """For each name, how its value follows from the previous one; None if it is written as a whole."""


class ShortTrace(Evaluator):
    def __init__(self, rule: Rule, detail: Literal["values", "state", "bare", "results"]) -> None:
        super().__init__(rule)
        self.stretches = detail != "values"
        self.bare = detail in ("bare", "results")
        self.detail = detail
        self.liveness = {name: _liveness(function) for name, function in rule.functions.items()}
        self.open: list[_Stretch] = []

    def lines(self, step: Step) -> list[Line]:
        node: Any = step.node
        if step.did == "enter":
            return self.entered(node, step)
        for expression, said in self.parts(step):
            self.look_up(expression, said, step.before)
        if step.did in ("assign", "each"):
            self.change(node.target if step.did == "each" else target_of(node), node, step)
        shown = self.shown(step)
        line = self.line(step.after, shown) if self.ends_line(step.did, shown) else ()
        if step.did == "return":
            self.open.pop()
        return [line] if line else []

    def ends_line(self, did: Did, shown: Live) -> bool:
        settled = did == "pause" and not shown.isdisjoint(self.open[-1].changed)
        return settled or did in ("call", "return") or not self.stretches

    def shown(self, step: Step) -> Live:
        """The names whose values a line gives, if they have changed since the last line."""
        return self.needed(step.node) if self.stretches and step.did == "pause" else frozenset(step.after)  # type: ignore[arg-type]

    def entered(self, function: ast.FunctionDef, step: Step) -> list[Line]:
        self.open.append(_Stretch(self.liveness[function.name]))
        if step.depth == 1:
            return [] if self.bare else [self.joined([], list(step.after), step.after)]
        return [(f"{function.name}: ", *self.joined([], list(step.after), step.after))]

    def needed(self, node: ast.stmt) -> Live:
        live = self.open[-1].live
        return live.turn[node] if isinstance(node, (ast.For, ast.While)) else live.before[node]

    def line(self, values: Names, shown: Live) -> Line:
        """A line with everything that was looked up since the last line, and with the changed names in `shown`.

        The look-ups and changes are then forgotten, so the next line does not repeat them.
        """
        stretch = self.open[-1]
        line = self.joined(
            list(stretch.looked_up.values()), [name for name in stretch.changed if name in shown], values
        )
        stretch.looked_up, stretch.changed = {}, {}
        return line

    def joined(self, looked_up: list[str], changed: list[str], values: Names) -> Line:
        parts: list[str | Slot] = []
        for item in looked_up:
            parts.append(f"{' ' if parts else ''}{item}")
        for name in changed:
            slot = self.open[-1].changed.get(name) or self.whole(name, values[name])
            if slot.text:
                parts += [f"{' ' if parts else ''}{'' if self.bare else name + '='}", slot]
        return tuple(parts)

    def whole(self, name: str, value: Any) -> Slot:
        if not _is_literal(value):
            self.fail(f"{name} is {value!r}, which cannot be read back at rules.detail={self.detail}")
        return Slot(ast.Name(name), literal(value))

    def change(self, target: Any, node: Any, step: Step) -> None:
        """Notes the names that a step has set, and how each value follows from the previous one."""
        changed = self.open[-1].changed
        computed_from = dict(_pairs(target, computed(node))) if step.did == "assign" else {}
        for name in sorted(names(target), key=list(step.after).index):
            short = self.stretches and name not in changed and (self.bare or step.after[name] != "")
            changed[name] = self.follows(name, computed_from.get(name), step.before) if short else None

    def follows(self, name: str, expression: ast.expr | None, before: Names) -> Slot | None:
        """How the new value of a name follows from its old one; None if the value is written as a whole.

        The details bare and results do not write some values; the text of the slot is then empty.
        """
        if self.bare and isinstance(expression, ast.Constant | ast.Name):
            return Slot(ast.Name(name), "")
        if not isinstance(before.get(name), str):
            return None
        match expression:
            case ast.Subscript(value=ast.Name(id=base), slice=ast.Slice()) if base == name:
                return Slot(ast.Name(name), "" if self.bare else self.place(expression, before), before[name])
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Name(id=base)) if base == name:
                return self.extended(name, self.value(left, before), f"{{}}+{name}", before)
            case ast.BinOp(left=ast.Name(id=base), op=ast.Add(), right=right) if base == name:
                return self.extended(name, self.value(right, before), f"{name}+{{}}", before)
        return None

    def extended(self, name: str, part: Any, form: str, before: Names) -> Slot:
        """A text to which a part was added; with bare and results, only the part is written."""
        if not self.bare:
            return Slot(ast.Name(name), form.replace("{}", literal(part)), before[name])
        if _is_number(part):
            return Slot(ast.Name(name), part, before[name], form.replace("{}", '"{}"'))
        return Slot(ast.Name(name), literal(part), before[name], form)

    # What is looked up -------------------------------------------------------------------------------------------

    def parts(self, step: Step) -> list[tuple[ast.expr, bool]]:
        """The expressions that a step evaluates, and whether the value of each is written anyway."""
        node: Any = step.node
        called = calls_rule(getattr(node, "value", None), self.rule.functions)
        match step.did:
            case "test":
                return [(node.test, False)]
            case "loop":
                return [(node.iter, False)]
            case "call":
                return [(part, True) for part in node.value.args]
            case "return" if not called:
                return [(part, True) for _, part in _pairs(None, node.value)]
            case "assign" if not called:
                pairs = _pairs(target_of(node), computed(node))
                return [(part, self.bare or not self.stretches or _cuts(part, name)) for name, part in pairs]
        return []

    def look_up(self, expression: ast.expr, said: bool, values: Names) -> None:
        """Notes what an expression looks up.

        Args:
            expression: the expression.
            said: whether the value of the expression is written anyway. If the whole expression is one look-up, it is
                then not noted.
            values: the values of all names.
        """
        if self.detail == "results":
            return
        looked_up = self.open[-1].looked_up
        for node in self.taken(expression, values) if _takes(expression) else ():
            digits = self.digits(node, values)
            item = f"{self.place(node, values)}={digits}"
            if not (said and node is expression):
                looked_up[item] = digits if self.bare else item

    def taken(self, node: ast.AST, values: Names) -> Iterator[ast.Subscript]:
        """The slices and indices that Python evaluates in an expression, in that order; `or` and `if` may skip some."""
        match node:
            case ast.BoolOp(op=op, values=parts):
                for part in parts:
                    yield from self.taken(part, values)
                    if bool(self.value(part, values)) == isinstance(op, ast.Or):
                        return
            case ast.IfExp(test=test, body=body, orelse=orelse):
                yield from self.taken(test, values)
                yield from self.taken(body if self.value(test, values) else orelse, values)
            case _:
                for child in _children_that_take(node):
                    yield from self.taken(child, values)
                if isinstance(node, ast.Subscript):
                    yield node

    def place(self, node: ast.Subscript, values: Names) -> str:
        """A slice or an index with numbers as its bounds, such as `digits[:3]`."""

        def number(bound: ast.expr | None) -> str:
            return repr(self.value(bound, values)) if bound else ""

        if isinstance(node.slice, ast.Slice):
            step = f":{number(node.slice.step)}" if node.slice.step else ""
            bounds = f"{number(node.slice.lower)}:{number(node.slice.upper)}{step}"
        else:
            bounds = number(node.slice)
        return f"{_text(node.value)}[{bounds}]"

    def digits(self, node: ast.Subscript, values: Names) -> str:
        value = self.value(node, values)
        if not isinstance(value, str):
            self.fail(f"{self.text(node)} takes {value!r}: at rules.detail={self.detail} only texts are taken from")
        return value if _is_number(value) else literal(value)


@functools.lru_cache(maxsize=4096)
def _takes(expression: ast.AST) -> bool:
    """Whether an expression has a slice or an index."""
    return any(isinstance(node, ast.Subscript) for node in ast.walk(expression))


@functools.lru_cache(maxsize=4096)
def _children_that_take(node: ast.AST) -> tuple[ast.AST, ...]:
    return tuple(child for child in ast.iter_child_nodes(node) if _takes(child))


_text = functools.lru_cache(maxsize=4096)(ast.unparse)


_liveness = functools.lru_cache(maxsize=1024)(Liveness)


def _pairs(target: ast.expr | None, expression: ast.expr) -> list[tuple[str, ast.expr]]:
    """Pairs of a name and the expression that is assigned to it; the name is "" if there is not exactly one."""
    if isinstance(expression, ast.Tuple) and (target is None or len(_elements(target)) == len(expression.elts)):
        targets = _elements(target) if target else [None] * len(expression.elts)
        return [pair for part in zip(targets, expression.elts, strict=True) for pair in _pairs(*part)]
    return [(target.id if isinstance(target, ast.Name) else "", expression)]


def _elements(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple) else [target]


def _cuts(expression: ast.expr, name: str) -> bool:
    return isinstance(expression, ast.Subscript) and ast.unparse(expression.value) == name


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9]+", value) is not None


def _is_literal(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_literal, value))
    return isinstance(value, (int, str))
