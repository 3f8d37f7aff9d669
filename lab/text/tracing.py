"""What following a rule writes: the response of rule-following CoT (Number Cookbook, section 4 and A.5.1).

The rule is run by walking its syntax tree, and every statement that is executed is written down, then what it saw and
made of it:

    total = int(a[-3:] or 0) + int(b[-3:] or 0) + carry
    total = 28 + 35 + 0 = 63

Arithmetic, comparisons, max and min are shown on values; what only looks something up or changes its type (a slice, a
method, int), and what is within it, is shown by its value alone. Loops are entered and ended, functions entered and
exited. Every `=` between two expressions is true in Python.

Two lines of A.5.1 are left out, since a window of tokens is what rules run short of: "check the stop criterion" before
"enter the loop", and what a called function returns, where it is not computed on that line: it stands again where it is
assigned.
"""

import ast
import builtins
import re
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple, NoReturn, TypeAlias

from lab.errors import RuleError
from lab.text.rulebook import CALLS, Rule, calls_rule

MOST_STEPS = 10_000
"""Statements after which a rule is taken not to end; the longest problem of the lab takes an eighth of it."""
DEEPEST = 100
"""Calls within calls."""
MOST_DIGITS = 4000
"""Of a value, or characters of a text; Python itself refuses to print numbers of more than 4,300 digits."""

Names: TypeAlias = dict[str, Any]

_OPERATORS = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"},
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.In: "in", ast.NotIn: "not in", ast.And: " and ", ast.Or: " or "},
}
_SHOWN_CALLS = ("max", "min", "abs")


class Trace(NamedTuple):
    text: str
    """One line a step, without a line break at the end."""
    value: str
    """What the rule returned."""


def trace(rule: Rule, operands: Sequence[str]) -> Trace:
    """Raises RuleError, naming the rule, when it takes other operands, fails on these, or does not end."""
    run = _Run(rule)
    value = run.call(rule.entry, operands)
    return Trace("\n".join(run.lines), str(value))


def literal(value: object) -> str:
    """A value as Python would read it, strings in double quotes."""
    if isinstance(value, str):
        return f'"{value}"' if value.isprintable() and '"' not in value and "\\" not in value else repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return repr(value)


def unpacked(value: object, target: ast.expr | None = None) -> str:
    """What is assigned, or returned: several values stand side by side, without parentheses."""
    several = isinstance(value, tuple) or (isinstance(value, list) and isinstance(target, ast.Tuple))
    return ", ".join(map(literal, value)) if several and len(value) > 1 else literal(value)  # type: ignore[arg-type]


class _Bounded(ast.NodeTransformer):
    """What can make a text of any length in one step asks first: `a * b`, and padding to a width."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _call("*times", [node.left, node.right]) if isinstance(node.op, ast.Mult) else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("zfill", "ljust", "rjust"):
            return _call("*padded", [node.func.value, ast.Constant(node.func.attr), *node.args])
        return node


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), arguments, [])


def _times(a: Any, b: Any) -> Any:
    if isinstance(a, int) != isinstance(b, int) and (a if isinstance(a, int) else b) > MOST_DIGITS:
        raise ValueError(f"more than {MOST_DIGITS} characters")
    return a * b


def _padded(text: Any, method: str, width: Any, *fill: Any) -> Any:
    if isinstance(width, int) and width > MOST_DIGITS:
        raise ValueError(f"more than {MOST_DIGITS} characters")
    return getattr(text, method)(width, *fill)


_KNOWN = {name: getattr(builtins, name) for name in CALLS} | {"*times": _times, "*padded": _padded}
"""What an expression of a rule may call; the last two under names that no rule can write."""


def _too_long(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_too_long, value))
    if isinstance(value, int):
        return value.bit_length() > 10 * MOST_DIGITS // 3
    return isinstance(value, str) and len(value) > MOST_DIGITS


class _ReturnSignal(BaseException):
    def __init__(self, value: Any) -> None:
        self.value = value


class _BreakSignal(BaseException):
    pass


class _ContinueSignal(BaseException):
    pass


class _Run:
    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.source = rule.text.splitlines()
        self.lines: list[str] = []
        self.steps = self.depth = 0
        self.compiled: dict[ast.expr, Any] = {}

    def call(self, function: ast.FunctionDef, values: Sequence[Any]) -> Any:
        parameters = [argument.arg for argument in function.args.args]
        if len(values) != len(parameters):
            self.fail(f"{function.name} takes {len(parameters)} values, not {len(values)}")
        names = dict(zip(parameters, values, strict=True))
        self.lines += [f"{name} = {literal(value)}" for name, value in names.items()]
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"more than {DEEPEST} calls within each other: {function.name} calls itself without an end")
        try:
            self.block(function.body, names)
        except _ReturnSignal as result:
            self.depth -= 1
            return result.value
        self.fail(f"{function.name} ended without a return")

    def fail(self, why: str) -> NoReturn:
        raise RuleError(f"rule {self.rule.name}: {why}")

    def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            self.fail(f"no end after {MOST_STEPS} steps")

    # Statements. -------------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt], names: Names) -> None:
        for statement in statements:
            self.step()
            match statement:
                case ast.Assign() | ast.AugAssign() | ast.Return():
                    self.evaluated(statement, names)
                case ast.If():
                    self.choice(statement, names)
                case ast.While():
                    self.while_loop(statement, names)
                case ast.For():
                    self.for_loop(statement, names)
                case ast.Pass():
                    self.lines.append("pass")
                case ast.Break():
                    self.lines.append("break")
                    raise _BreakSignal
                case ast.Continue():
                    self.lines.append("continue")
                    raise _ContinueSignal

    def evaluated(self, statement: ast.Assign | ast.AugAssign | ast.Return, names: Names) -> None:
        """The statement, and a line with the values in it."""
        written = self.text(statement)
        self.lines.append(written)
        node: Any = statement.value
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if calls_rule(node, self.rule.functions):
            self.lines.append(f"enter function: {node.func.id}")
            value = self.call(self.rule.functions[node.func.id], [self.value(part, names) for part in node.args])
            self.lines.append(f"exit function: {node.func.id}")
            steps = ""
        elif isinstance(statement, ast.AugAssign):
            node = ast.BinOp(ast.Name(statement.target.id, ast.Load()), statement.op, node)  # type: ignore[union-attr]
            node = ast.fix_missing_locations(ast.copy_location(node, statement))
            value, steps = self.value(node, names), self.shown(node, names)
        else:
            value, steps = self.value(node, names), self.side_by_side(node, names)
        plain = result = unpacked(value, target)
        if steps and steps not in (result, literal(value)):
            result = f"{steps} = {result}"
        if target is None:
            line = f"return {result}"
        else:
            self.assign(target, value, names)
            line = f"{self.text(target)} = {result}"
        # What a called function returns stands after its exit, where it is assigned; only how it was computed is news.
        known = target is None and self.depth > 1 and result == plain
        if line != written and not known:
            self.lines.append(line)
        if isinstance(statement, ast.Return):
            raise _ReturnSignal(value)

    def assign(self, target: ast.expr, value: Any, names: Names) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value
            return
        parts = target.elts  # type: ignore[attr-defined]
        if not isinstance(value, (tuple, list, str)) or len(parts) != len(value):
            self.fail(f"{self.text(target)} cannot be assigned {unpacked(value)}")
        for part, item in zip(parts, value, strict=True):
            self.assign(part, item, names)

    def choice(self, statement: ast.If, names: Names) -> None:
        self.lines += [self.head(statement), self.condition(statement.test, names)]
        if self.value(statement.test, names):
            self.block(statement.body, names)
        elif not statement.orelse:
            self.lines.append("pass")
        else:
            if not re.match(r"\s*elif\b", self.source[statement.orelse[0].lineno - 1]):
                self.lines.append("else:")
            self.block(statement.orelse, names)

    def while_loop(self, statement: ast.While, names: Names) -> None:
        while True:
            self.step()
            self.lines.append(self.head(statement))
            goes_on = self.value(statement.test, names)
            if not goes_on or not self.only_names(statement.test):  # that strings are not empty has just been seen
                self.lines.append(self.condition(statement.test, names))
            if not goes_on:
                break
            self.lines.append("enter the loop")
            if not self.turn(statement, names):
                break
        self.lines.append("end the loop")

    def for_loop(self, statement: ast.For, names: Names) -> None:
        self.lines.append(self.head(statement))
        values = self.value(statement.iter, names)
        if not isinstance(values, (str, tuple, list, range)):
            self.fail(f"{self.text(statement.iter)} is {literal(values)}, of which a loop cannot take one at a time")
        for value in values:
            self.assign(statement.target, value, names)
            self.lines.append(f"{self.text(statement.target)} = {unpacked(value, statement.target)}")
            if not self.turn(statement, names):
                break
        self.lines.append("end the loop")

    def turn(self, loop: ast.While | ast.For, names: Names) -> bool:
        """Once through the body; whether the loop may go on."""
        try:
            self.block(loop.body, names)
        except _ContinueSignal:
            return True
        except _BreakSignal:
            return False
        return True

    # Expressions. ------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr, names: Names) -> Any:
        if node not in self.compiled:
            bounded = ast.fix_missing_locations(_Bounded().visit(deepcopy(node)))
            self.compiled[node] = compile(ast.Expression(bounded), self.rule.name, "eval")
        try:
            value = eval(self.compiled[node], {"__builtins__": _KNOWN}, names)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, NameError, TypeError, ValueError) as error:
            self.fail(f"{self.text(node)}: {error or type(error).__name__}")
        if _too_long(value):
            self.fail(f"{self.text(node)} has more than {MOST_DIGITS} digits")
        return value

    def shown(self, node: ast.expr, names: Names, within: int = 0) -> str:
        """The expression with values for its operands; `within` is how tightly what surrounds it binds."""
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                binds = 1 if isinstance(op, (ast.Add, ast.Sub)) else 2
                sides = self.shown(left, names, binds), self.shown(right, names, binds + 1)
                text = f" {_OPERATORS[type(op)]} ".join(sides)
                return f"({text})" if binds < within else text
            case ast.Compare(left=left, ops=ops, comparators=others):
                text = self.shown(left, names, 1)
                for op, other in zip(ops, others, strict=True):
                    text += f" {_OPERATORS[type(op)]} {self.shown(other, names, 1)}"
                return f"({text})" if within else text
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self.shown(operand, names, 3)}"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                text = f"not {self.shown(operand, names)}"
                return f"({text})" if within else text
            case ast.Tuple(elts=parts):
                inner = ", ".join(self.shown(part, names) for part in parts)
                return f"({inner}{',' if len(parts) == 1 else ''})"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.shown(body if self.value(test, names) else orelse, names, within)
            case ast.Call(func=ast.Name(id=name), args=parts) if name in _SHOWN_CALLS:
                return f"{name}({', '.join(self.shown(part, names) for part in parts)})"
            case _:
                return literal(self.value(node, names))

    def side_by_side(self, node: ast.expr, names: Names) -> str:
        """As `shown`, but for the parentheses of several values."""
        if isinstance(node, ast.Tuple) and len(node.elts) > 1:
            return ", ".join(self.shown(part, names) for part in node.elts)
        return self.shown(node, names)

    def condition(self, test: ast.expr, names: Names) -> str:
        """The names that a condition consists of with their values, or the comparison with values, and its own."""
        if self.only_names(test):
            return " and ".join(
                f"{self.text(part)} = {literal(self.value(part, names))}" for part in self.seen(test, names)
            )
        if isinstance(test, ast.BoolOp):
            joined = _OPERATORS[type(test.op)].join(self.shown(part, names) for part in self.seen(test, names))
            return f"{joined} = {literal(self.value(test, names))}"
        shown, result = self.shown(test, names), literal(self.value(test, names))
        return shown if shown == result else f"{shown} = {result}"

    def seen(self, test: ast.expr, names: Names) -> list[ast.expr]:
        """The parts of a condition that are looked at before it is decided."""
        match test:
            case ast.BoolOp(op=op, values=parts):
                looked_at = []
                for part in parts:
                    looked_at.append(part)
                    if bool(self.value(part, names)) == isinstance(op, ast.Or):
                        break
                return looked_at
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return [operand]
        return [test]

    @staticmethod
    def only_names(test: ast.expr) -> bool:
        match test:
            case ast.BoolOp(values=parts):
                return all(isinstance(part, ast.Name) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=ast.Name()):
                return True
        return isinstance(test, ast.Name)

    # Source. -----------------------------------------------------------------------------------------------------

    def text(self, node: ast.expr | ast.stmt) -> str:
        """As the prompt shows it, on one line."""
        rows = self.source[node.lineno - 1 : node.end_lineno]
        rows[-1] = rows[-1][: node.end_col_offset]
        rows[0] = rows[0][node.col_offset :]
        return " ".join(row.strip().removesuffix("\\").strip() for row in rows)

    def head(self, statement: ast.If | ast.While | ast.For) -> str:
        """A compound statement up to its colon."""
        return " ".join(row.strip() for row in self.source[statement.lineno - 1 : statement.body[0].lineno - 1])
