"""Finds the names of a function that are still needed: its live variables (Aho et al., Compilers, 9.2.5)."""

import ast
import functools
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

Live: TypeAlias = frozenset[str]


class Leads(NamedTuple):
    """The names that are live at each point at which execution may continue after a block."""

    end: Live
    """At the end of the block."""
    broken: Live
    """After the innermost loop, where break leads."""
    continued: Live
    """At the next iteration of that loop, where continue leads."""


class Liveness:
    """The names that are live at each statement of a function: their values may still be read."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.before: dict[ast.stmt, Live] = {}
        """The names that are live when a statement begins."""
        self.after: dict[ast.stmt, Live] = {}
        """The names that are live when a statement is done."""
        self.turn: dict[ast.stmt, Live] = {}
        """For each loop, the names that are live when an iteration begins, or when the loop ends."""
        self.entry = self._block(function.body, Leads(frozenset(), frozenset(), frozenset()))

    def _block(self, statements: Sequence[ast.stmt], leads: Leads) -> Live:
        live = leads.end
        for statement in reversed(statements):
            self.after[statement] = live
            live = self.before[statement] = self._statement(statement, leads._replace(end=live))
        return live

    def _statement(self, statement: ast.stmt, leads: Leads) -> Live:
        match statement:
            case ast.Assign(targets=[target], value=value):
                return (leads.end - names(target)) | names(value)
            case ast.AugAssign(target=target, value=value):
                return leads.end | names(target) | names(value)
            case ast.Return(value=value):
                return names(value)
            case ast.If(test=test, body=body, orelse=orelse):
                return names(test) | self._block(body, leads) | self._block(orelse, leads)
            case ast.While(test=test):
                return self._loop(statement, names(test) | leads.end, frozenset(), leads)
            case ast.For(target=target, iter=values):
                return self._loop(statement, leads.end, names(target), leads) | names(values)
            case ast.Break():
                return leads.broken
            case ast.Continue():
                return leads.continued
        return leads.end

    def _loop(self, loop: ast.While | ast.For, live: Live, given: Live, leads: Leads) -> Live:
        """The names that are live when an iteration of a loop begins.

        Args:
            loop: the loop.
            live: names that are live in any case.
            given: the names that each iteration sets itself.
            leads: the names that are live after the loop.
        """
        while True:
            more = live | (self._block(loop.body, Leads(live, leads.end, live)) - given)
            if more == live:
                self.turn[loop] = live
                return live
            live = more


@functools.lru_cache(maxsize=4096)
def names(node: ast.AST | None) -> Live:
    """The names in an expression, without those of the functions that it calls."""
    if node is None:
        return frozenset()
    called = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name) and id(part) not in called)
