"""Rule-following CoT (Number Cookbook, section 4 and A.5): the rule in the prompt, its execution as the completion.

The prompt is the paper's layout; its "Directly return the answer" becomes "Return the answer", as in A.5.1, and the
question ends before its "=". The completion is the trace of the rule and the line `So the answer is X.`; of the detail
answer, it is the answer alone.
"""

from collections.abc import Iterable

from lab.config.schema import RulesConfig
from lab.errors import RuleError
from lab.numbers.sampling import Cell, Problem, problem, task_of
from lab.numbers.tasks import Task
from lab.text import prompts
from lab.text.rulebook import Rule, check_folder, rule_of
from lab.text.tracing import check_readable, trace

PROMPT = """Follow the given rule to solve the question.
Rule:
{rule}

Q: {question}

## Response:
"""

ANSWER = "So the answer is "

LAB_RULES = RulesConfig()


def rule(task: Task, rules: RulesConfig = LAB_RULES) -> Rule:
    """Raises RuleError when there is none, or one that cannot be followed."""
    return rule_of(task, rules.unit, rules.folder)


def check_rules(tasks: Iterable[Task], rules: RulesConfig) -> None:
    """Raises RuleError when a task has no rule, or one that cannot be followed, or whose traces cannot be read back."""
    if rules.folder:
        check_folder(rules.folder)
    for task in tasks:
        first = problem(Cell(task, task.tested_lengths[0]), "train", 0, 0)
        check_readable(rule(task, rules), operands(first), rules.detail)


def operands(problem: Problem) -> list[str]:
    return [problem.a] if problem.b is None else [problem.a, problem.b]


def prompt(problem: Problem, rules: RulesConfig = LAB_RULES) -> str:
    question = prompts.prompt(problem).removesuffix("=").rstrip().replace("Directly return", "Return", 1)
    return PROMPT.format(rule=rule(task_of(problem), rules).text, question=question)


def completion(problem: Problem, rules: RulesConfig = LAB_RULES) -> str:
    """What a model that follows the rule without a mistake writes after the prompt.

    Raises RuleError when the rule cannot be followed on these operands, or leads to another answer than the problem's.
    """
    to_follow = rule(task_of(problem), rules)
    followed = trace(to_follow, operands(problem), rules.detail)
    if followed.value != problem.answer:
        asked = " and ".join(operands(problem))
        raise RuleError(f"rule {to_follow.name}: answers {followed.value} to {asked}, where {problem.answer} is right")
    if rules.detail == "answer":
        return followed.value
    return f"{followed.text}\n{ANSWER}{followed.value}."
