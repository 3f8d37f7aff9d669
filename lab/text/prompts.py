"""The text of a question: a format hint, an instruction, the numbers, and "=" (Number Cookbook, A.2).

The spacing is that of the published test set ("like 123 . "), so that results can be compared; the paper prints the
hints without the space. The instruction of min is spelled as in the paper.
"""

import re

from lab.errors import TaskError
from lab.numbers.sampling import Problem, posed
from lab.numbers.tasks import TASKS, Task

EXAMPLE_NUMBER = "123"
"""The example of an integer in the format hint."""
FORMAT_HINTS = {
    "integer": f"Directly return the answer as an integer without any comma separator, like {EXAMPLE_NUMBER} . ",
    "float": "Directly return the answer as a float without any comma separator, like 10.4 . ",
    "fraction": "Directly return the answer as an **irreducible** fraction without any comma separator, like 7/13 . ",
    "scientific": "Directly return the answer as a scientific notation without any comma separator, like 1.23e4 . "
    "The float part should be in the range [1, 10). ",
}

_DIGITWISE = (
    "Compare two numbers digit by digit and return the {} digit at each position, treating any missing digits as 0. "
)

INSTRUCTIONS = {
    "add": "Add two numbers: {a} + {b} =",
    "sub": "Subtract two numbers: {a} - {b} =",
    "multiply": "Multiply two numbers: {a} * {b} =",
    "truediv": "Divide two numbers and return the result as a fraction. {a} / {b} =",
    "floordiv": "Divide two numbers and return the result as an integer. {a} // {b} =",
    "mod": "Divide two numbers and return the remainder. {a} % {b} =",
    "max": "Get the maximal number: {a} and {b} =",
    "min": "Get the minimal number: {a} and {b} =",
    "digit_max": _DIGITWISE.format("larger") + "{a} and {b} =",
    "digit_min": _DIGITWISE.format("smaller") + "{a} and {b} =",
    "digit_add": "The task is to add two given numbers digit by digit and return the result modulo 10 "
    "(ignoring carry), treating any missing digits as 0. {a} digit add {b} =",
    "get_digit": "Get the digit at the given position (from left to right, starting from 0). {a} at position {b} =",
    "length": "The total number of digits of {a} =",
    "count": "Count the number of the given digit in the given number: {a} count the occurrence time of digit {b} =",
    "to_float": "Convert the number to float: {a} =",
    "to_scient": "Convert the number to scientific notation: {a} =",
    "sig": "Convert the number to scientific notation: {a} and keep significant figures as {b} =",
}


def _pieces(key: str) -> tuple[str, str, str]:
    task = TASKS[key]
    instruction = INSTRUCTIONS.get(task.name) or INSTRUCTIONS[task.name.removesuffix("_easy").removesuffix("_hard")]
    if key == "truediv_fraction":  # "/" is also the sign of division (A.1.1)
        instruction = instruction.replace("{a}", "({a})").replace("{b}", "({b})")
    before, _, rest = (FORMAT_HINTS[task.answer.name] + instruction).partition("{a}")
    between, _, after = rest.partition("{b}")
    return before, between, after


_PIECES = {(task.name, task.representation.name): _pieces(key) for key, task in TASKS.items()}


def prompt(problem: Problem) -> str:
    """The question that the model is asked; it ends in "=" without a space."""
    before, between, after = around_operands(problem)
    return f"{before}{problem.a}{between}{problem.b or ''}{after}"


def around_operands(problem: Problem) -> tuple[str, str, str]:
    """The text before the first number, between the two numbers, and after the second. Raises TaskError for a task that
    NUPA does not have."""
    if problem[:2] not in _PIECES:
        raise TaskError(f"{problem.task}_{problem.representation}: only models from scratch have this task")
    return _PIECES[problem[:2]]


def completion(problem: Problem) -> str:
    """What a perfect model writes after the prompt: a space and the answer."""
    return f" {problem.answer}"


def parse(text: str, task: Task, length: int) -> Problem | None:
    """The problem of `task` that a text asks; None if it asks none. What follows the "=" is ignored.

    The answer is computed, not read. "mininal" counts as "minimal", because the released code spells it so.

    Args:
        text: the question, perhaps with its answer.
        task: the task that the question should belong to.
        length: the length to record in the problem; it is not checked.
    """
    before, between, after = _PIECES[task.name, task.representation.name]
    first = task.representation.pattern.pattern
    second = task.second.pattern.pattern if task.second else ""
    text = text.replace("mininal", "minimal")
    asked = re.match(f"{re.escape(before)}({first}){re.escape(between)}({second}){re.escape(after)}", text)
    return posed(task, asked[1], asked[2] if task.second else None, length) if asked else None
