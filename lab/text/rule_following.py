"""Rule-following CoT (Number Cookbook, section 4 and A.5): the prompt shows a rule, and the completion executes it.

The prompt has the paper's layout. "Directly return the answer" becomes "Return the answer", as in A.5.1, and the
question ends before its "=". The completion is the trace of the rule, followed by the line `So the answer is X.`; with
rules.detail=answer it is the answer alone.
"""

from collections.abc import Iterable

from lab.config.schema import RulesConfig
from lab.errors import RuleError
from lab.numbers.sampling import Cell, Problem, problem, task_of
from lab.numbers.tasks import Task
from lab.rules.rulebook import Rule, check_folder, rule_of
from lab.rules.traces.lines import ANSWER
from lab.rules.traces.tracing import check_readable, trace
from lab.text import prompts

PROMPT = """Follow the given rule to solve the question.
Rule:
{rule}

Q: {question}

## Response:
"""

LAB_RULES = RulesConfig()


def rule(task: Task, rules: RulesConfig = LAB_RULES) -> Rule:
    """The rule of a task. Raises RuleError if there is none, or if it cannot be followed."""
    return rule_of(task, rules.unit, rules.folder)


def check_rules(tasks: Iterable[Task], rules: RulesConfig) -> None:
    """Raises RuleError if a task has no rule, if its rule cannot be followed, or if its traces cannot be read back."""
    if rules.folder:
        check_folder(rules.folder)
    for task in tasks:
        first = problem(Cell(task, task.tested_lengths[0]), "train", 0, 0)
        check_readable(rule(task, rules), operands(first), rules.detail)


def operands(problem: Problem) -> list[str]:
    return [problem.a] if problem.b is None else [problem.a, problem.b]


def prompt(problem: Problem, rules: RulesConfig = LAB_RULES) -> str:
    """The rule of the problem's task, followed by the question. Raises RuleError as `rule` does."""
    question = prompts.prompt(problem).removesuffix("=").rstrip().replace("Directly return", "Return", 1)
    return PROMPT.format(rule=rule(task_of(problem), rules).text, question=question)


def completion(problem: Problem, rules: RulesConfig = LAB_RULES) -> str:
    """What a model that follows the rule without a mistake writes after the prompt.

    Raises RuleError if the rule cannot be followed on these operands, or leads to a wrong answer.
    """
    to_follow = rule(task_of(problem), rules)
    followed = trace(to_follow, operands(problem), rules.detail)
    if followed.value != problem.answer:
        asked = " and ".join(operands(problem))
        raise RuleError(f"rule {to_follow.name}: answers {followed.value} to {asked}, but {problem.answer} is right")
    if rules.detail == "answer":
        return followed.value
    return f"{followed.text}\n{ANSWER}{followed.value}."
