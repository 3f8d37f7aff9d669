"""A trace that shows every statement, the values that it used and its result (Number Cookbook, A.5.1):

    total = int(a[-3:] or 0) + int(b[-3:] or 0) + carry
    total = 28 + 35 + 0 = 63

Arithmetic, comparisons, max, min and abs are shown with the values of their operands. An expression that only looks
something up or changes its type (a slice, a method, int) is shown by its value alone, and so is everything inside it.
Lines say where loops are entered and ended, and where functions are entered and exited. Every `=` between two
expressions is true in Python.

Two kinds of line of A.5.1 are left out, because long traces do not fit into the window. One is "check the stop
criterion" before "enter the loop". The other is the value that a called function returns, unless it is computed on that
line, because the value appears again where it is assigned.
"""

import ast
import re
from typing import Any

from lab.rules.rulebook import calls_rule
from lab.rules.traces.execution import Evaluator, Names, Step, computed, literal, target_of, unpacked
from lab.rules.traces.lines import Line, Slot

_OPERATORS = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"},
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.In: "in", ast.NotIn: "not in", ast.And: " and ", ast.Or: " or "},
}
_SHOWN_CALLS = ("max", "min", "abs")


class FullTrace(Evaluator):
    def lines(self, step: Step) -> list[Line]:
        node: Any = step.node
        match step.did:
            case "enter":
                return [(f"{name} = ", Slot(ast.Name(name), literal(value))) for name, value in step.after.items()]
            case "call":
                return [(self.text(node),), (f"enter function: {node.value.func.id}",)]
            case "assign" | "return":
                return self.evaluated(step)
            case "test":
                head, seen = self.head(node), self.condition(node.test, step.before)
                return [(line,) for line in (head, *self.chosen(node, seen, step.value))]
            case "loop":
                return [(self.head(node),)]
            case "each":
                return [(f"{self.text(node.target)} = ", Slot(node.target, unpacked(step.value, node.target)))]
            case "end":
                return [("end the loop",)]
            case "pause":
                return []
            case _:
                return [(step.did,)]

    def evaluated(self, step: Step) -> list[Line]:
        """The statement, followed by a line that shows it with values."""
        statement: Any = step.node
        text, target, node = self.text(statement), target_of(statement), computed(statement)
        called = calls_rule(node, self.rule.functions)
        first = f"exit function: {node.func.id}" if called else text  # type: ignore[attr-defined]
        steps = "" if called else self.side_by_side(node, step.before)
        result = unpacked(step.value, target)
        computed_here = steps and steps not in (result, literal(step.value))
        before = f"{steps} = " if computed_here else ""
        if target is None:
            # The value that a called function returns appears again after its exit, so only its computation is shown.
            known = step.depth > 1 and not computed_here
            line = f"return {before}{result}"
            return [(first,)] if known or line == text else [(first,), (line,)]
        line = (f"{self.text(target)} = {before}", Slot(target, result))
        if "".join((line[0], result)) != text:
            return [(first,), line]
        return [(first,)] if called else [line]

    def chosen(self, statement: ast.If | ast.While, seen: str, holds: bool) -> list[str]:
        """The values that a condition used, and the branch that is taken."""
        if isinstance(statement, ast.While):
            # the line before has just shown that the strings are not empty
            known = holds and self.only_names(statement.test)
            return [*([] if known else [seen]), "enter the loop" if holds else "end the loop"]
        if holds:
            return [seen]
        if not statement.orelse:
            return [seen, "pass"]
        follows = re.match(r"\s*elif\b", self.source[statement.orelse[0].lineno - 1])
        return [seen] if follows else [seen, "else:"]

    def shown(self, node: ast.expr, names: Names, within: int = 0) -> str:
        """The expression with values for its operands; `within` is the precedence of the surrounding expression."""
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
        """Like `shown`, but several values are written without parentheses."""
        if isinstance(node, ast.Tuple) and len(node.elts) > 1:
            return ", ".join(self.shown(part, names) for part in node.elts)
        return self.shown(node, names)

    def condition(self, test: ast.expr, names: Names) -> str:
        """The condition with its values: each name with its value, or the comparison of values and its result."""
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
        """The parts of a condition that are evaluated before its result is known."""
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
