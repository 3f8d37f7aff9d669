"""Runs a rule by walking its syntax tree, and records every step with the values of all names before and after it."""

import ast
import builtins
import functools
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

from lab.errors import RuleError
from lab.rules.rulebook import CALLS, Rule, calls_rule

MOST_STEPS = 100_000
"""A rule that runs more statements than this is assumed never to end. No problem of the lab needs a third as many."""
DEEPEST = 100
"""The largest depth of nested calls."""
MOST_DIGITS = 4000
"""The largest number of digits of a value, or characters of a text. By default, Python prints at most 4,300 digits."""

Names: TypeAlias = dict[str, Any]

Did: TypeAlias = Literal[
    "enter", "call", "assign", "return", "test", "loop", "each", "end", "pass", "break", "continue", "pause"
]  # fmt: skip


class Step(NamedTuple):
    did: Did
    """What happened:

    enter: a function begins, with its parameters set.
    call: a statement that calls a function of the rule begins; its assign or return follows when the function returns.
    test: the condition of an if or a while was evaluated.
    loop, each, end: a for loop begins, takes its next value, or ends. A while loop also has an end if break leaves it.
    pause: a stretch of statements is complete; it comes before a call, a return and every iteration of a loop.
    assign, return, pass, break, continue: the statement of that name."""
    node: ast.FunctionDef | ast.stmt
    depth: int
    """How many calls are nested; 1 in the rule itself."""
    before: Names
    """The names and their values before the step."""
    value: Any
    """The value that was assigned or returned, or whether the condition holds."""
    after: Names
    """The names and their values after the step."""


Watch: TypeAlias = Callable[[Step, Names], None]
"""Called with each step and the dictionary of names. If it changes them, the rule continues with the new values."""


def execute(rule: Rule, operands: Sequence[str], watch: Watch | None = None) -> list[Step]:
    """Every step of a run; the last step returns the rule's answer.

    Args:
        rule: the rule to run.
        operands: the values of its parameters, as text.
        watch: called at each step; see `Watch`.

    Raises RuleError, naming the rule, if it takes a different number of operands, fails on these, or does not end.
    """
    run = Interpreter(rule, watch)
    run.call(rule.entry, operands)
    return run.steps


def literal(value: object) -> str:
    """A value as a Python literal, with strings in double quotes."""
    if isinstance(value, str):
        return f'"{value}"' if value.isprintable() and '"' not in value and "\\" not in value else repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return repr(value)


def unpacked(value: object, target: ast.expr | None = None) -> str:
    """A value that is assigned (to `target`) or returned, as a literal; several values have no parentheses."""
    several = isinstance(value, tuple) or (isinstance(value, list) and isinstance(target, ast.Tuple))
    return ", ".join(map(literal, value)) if several and len(value) > 1 else literal(value)  # type: ignore[arg-type]


def target_of(statement: ast.stmt) -> ast.expr | None:
    """The target that a statement assigns to, or None."""
    return statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)


@functools.lru_cache(maxsize=4096)
def computed(statement: ast.Assign | ast.AugAssign | ast.Return) -> ast.expr:
    """The expression whose value is assigned or returned; for `a += b` it is a + b."""
    if not isinstance(statement, ast.AugAssign):
        return statement.value  # type: ignore[return-value]
    name = ast.Name(statement.target.id, ast.Load())  # type: ignore[union-attr]
    whole = ast.BinOp(name, statement.op, statement.value)
    return ast.fix_missing_locations(ast.copy_location(whole, statement))


class _Bounded(ast.NodeTransformer):
    """Adds a length check to operations that can make a huge text in one step: `a * b`, and padding to a width."""

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
"""The functions that an expression of a rule may call. No rule can write the names of the last two."""


def _too_long(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_too_long, value))
    if isinstance(value, int):
        return value.bit_length() > 10 * MOST_DIGITS // 3
    return isinstance(value, str) and len(value) > MOST_DIGITS


class Evaluator:
    """Evaluates a rule's expressions, given the values of its names."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.source = rule.text.splitlines()

    def value(self, node: ast.expr, names: Names) -> Any:
        compiled = self.rule.compiled
        if node not in compiled:
            bounded = ast.fix_missing_locations(_Bounded().visit(deepcopy(node)))
            compiled[node] = compile(ast.Expression(bounded), self.rule.name, "eval")
        try:
            value = eval(compiled[node], {"__builtins__": _KNOWN}, names)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, NameError, TypeError, ValueError) as error:
            self.fail(f"{self.text(node)}: {error or type(error).__name__}")
        if _too_long(value):
            self.fail(f"{self.text(node)} has more than {MOST_DIGITS} digits")
        return value

    def fail(self, why: str) -> NoReturn:
        raise RuleError(f"rule {self.rule.name}: {why}")

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source of a node as the prompt shows it, on one line."""
        rows = self.source[node.lineno - 1 : node.end_lineno]
        rows[-1] = rows[-1][: node.end_col_offset]
        rows[0] = rows[0][node.col_offset :]
        return " ".join(row.strip().removesuffix("\\").strip() for row in rows)

    def head(self, statement: ast.If | ast.While | ast.For) -> str:
        """The head of a compound statement, up to its colon."""
        return " ".join(row.strip() for row in self.source[statement.lineno - 1 : statement.body[0].lineno - 1])


class _ReturnSignal(BaseException):
    def __init__(self, value: Any) -> None:
        self.value = value


class _BreakSignal(BaseException):
    pass


class _ContinueSignal(BaseException):
    pass


class Interpreter(Evaluator):
    """Runs a rule and records its steps; see `execute`."""

    def __init__(self, rule: Rule, watch: Watch | None = None) -> None:
        super().__init__(rule)
        self.watch = watch
        self.steps: list[Step] = []
        self.count = self.depth = 0

    def call(self, function: ast.FunctionDef, values: Sequence[Any]) -> Any:
        parameters = [argument.arg for argument in function.args.args]
        if len(values) != len(parameters):
            self.fail(f"{function.name} takes {len(parameters)} values, not {len(values)}")
        names = dict(zip(parameters, values, strict=True))
        self.depth += 1
        self.take("enter", function, {}, names)
        if self.depth > DEEPEST:
            self.fail(f"more than {DEEPEST} nested calls: {function.name} calls itself without end")
        try:
            self.block(function.body, names)
        except _ReturnSignal as result:
            self.depth -= 1
            return result.value
        self.fail(f"{function.name} ended without a return")

    def take(self, did: Did, node: Any, before: Names, names: Names, value: Any = None) -> None:
        if self.watch:
            self.watch(Step(did, node, self.depth, before, value, names), names)
        self.steps.append(Step(did, node, self.depth, before, value, dict(names)))

    def seen(self, did: Did, node: ast.stmt, names: Names, value: Any = None) -> None:
        """Records a step that changes no name."""
        self.take(did, node, dict(names), names, value)

    def counted(self) -> None:
        self.count += 1
        if self.count > MOST_STEPS:
            self.fail(f"no end after {MOST_STEPS} steps")

    def block(self, statements: Sequence[ast.stmt], names: Names) -> None:
        for statement in statements:
            self.counted()
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
                    self.seen("pass", statement, names)
                case ast.Break():
                    self.seen("break", statement, names)
                    raise _BreakSignal
                case ast.Continue():
                    self.seen("continue", statement, names)
                    raise _ContinueSignal

    def evaluated(self, statement: ast.Assign | ast.AugAssign | ast.Return, names: Names) -> None:
        node: Any = computed(statement)
        if isinstance(statement, ast.Return) or calls_rule(node, self.rule.functions):
            self.seen("pause", statement, names)
        if calls_rule(node, self.rule.functions):
            self.seen("call", statement, names)
            value = self.call(self.rule.functions[node.func.id], [self.value(part, names) for part in node.args])
        else:
            value = self.value(node, names)
        if isinstance(statement, ast.Return):
            self.seen("return", statement, names, value)
            raise _ReturnSignal(value)
        before = dict(names)
        self.assign(target_of(statement), value, names)  # type: ignore[arg-type]
        self.take("assign", statement, before, names, value)

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
        holds = bool(self.value(statement.test, names))
        self.seen("test", statement, names, holds)
        self.block(statement.body if holds else statement.orelse, names)

    def while_loop(self, statement: ast.While, names: Names) -> None:
        while True:
            self.counted()
            self.seen("pause", statement, names)
            holds = bool(self.value(statement.test, names))
            self.seen("test", statement, names, holds)
            if not holds:
                return
            if not self.turn(statement, names):
                self.seen("end", statement, names)
                return

    def for_loop(self, statement: ast.For, names: Names) -> None:
        values = self.value(statement.iter, names)
        if not isinstance(values, (str, tuple, list, range)):
            self.fail(f"{self.text(statement.iter)} is {literal(values)}, which a loop cannot run over")
        self.seen("loop", statement, names)
        for value in values:
            self.seen("pause", statement, names)
            before = dict(names)
            self.assign(statement.target, value, names)
            self.take("each", statement, before, names, value)
            if not self.turn(statement, names):
                break
        self.seen("end", statement, names)

    def turn(self, loop: ast.While | ast.For, names: Names) -> bool:
        """Runs the body of the loop once, and returns whether the loop may go on."""
        try:
            self.block(loop.body, names)
        except _BreakSignal:
            return False
        except _ContinueSignal:
            pass
        return True
