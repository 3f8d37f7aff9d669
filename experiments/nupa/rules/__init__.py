"""A rule for each task, as phases that share what tasks have in common."""

from experiments.nupa.rules import (
    counting,
    cross_products,
    division,
    output,
    places,
    pointed_products,
    powers,
    products,
    scientific,
)
from experiments.nupa.rules.phases import LOOKS, PHASES, STARTS
from experiments.nupa.tape import Line, Looks, View, Written, executed
from lab.errors import RuleError
from lab.numbers.sampling import Problem

OPERATOR = Looks.at("operator")
MODULES = (counting, cross_products, division, output, places, pointed_products, powers, products, scientific)
TASKS = tuple(operator.strip("<>") for operator in STARTS)
"""The tasks that have a rule."""


def step(view: View) -> Line:
    """The line that follows. Raises RuleError for a task without a rule."""
    rule = STARTS.get(view.phase) or PHASES.get(view.phase)
    if rule is None:
        raise RuleError(f"no rule for {view.phase}; these tasks have one: {', '.join(TASKS)}")
    return rule(view)


def seen(view: View) -> View:
    """What the phase of a view looks at; before the first line, only the operator."""
    return view.only(LOOKS.get(view.phase, OPERATOR))


def worked(problem: Problem) -> Written:
    """The lines of the rule for a question, and its answer."""
    return executed(step, seen, problem)
