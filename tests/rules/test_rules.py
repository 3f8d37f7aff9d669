"""The lab's own rules: right at every length, and true in every line of their traces."""

import ast
import importlib
import re

import pytest

from lab.config.schema import RulesConfig
from lab.errors import TaskError
from lab.numbers.sampling import Cell, Problem, problem, task_of
from lab.numbers.tasks import TASKS
from lab.rules.rulebook import RULES, rule_file, rule_of
from lab.rules.traces.execution import execute
from lab.rules.traces.tracing import trace
from lab.text import rule_following
from lab.text.answers import READINGS
from lab.text.wording import RuleFollowing

TARGETS = re.compile(r"(return )?[a-z_]\w*(, [a-z_]\w*)*$")


def some(key: str, lengths, count: int) -> list[Problem]:
    found = []
    for length in lengths:
        try:
            found += [problem(Cell(TASKS[key], length), "train", 0, index) for index in range(count)]
        except TaskError:  # few fractions of some lengths are finite decimals
            continue
    return found


def untrue_lines(item: Problem, rules: RulesConfig) -> list[str]:
    """Lines `x = expression = value` or `expression = value` of the trace with which Python does not agree."""
    rule = rule_following.rule(task_of(item), rules)
    source = {line.strip() for line in rule.text.splitlines()}
    wrong = []
    for line in rule_following.completion(item, rules).splitlines():
        if line in source or " = " not in line:
            continue
        for part in line.split(" and ") if re.fullmatch(r'(\w+ = "?\w*"?( and )?)+', line) else [line]:
            sides = part.removeprefix("return ").split(" = ")
            expressions = sides[1:] if TARGETS.match(sides[0]) else sides
            if any(eval(side) != eval(expressions[-1]) for side in expressions):
                wrong.append(line)
    return wrong


def test_every_task_has_a_rule_and_every_rule_file_is_of_use():
    assert all(rule_file(task) for task in TASKS.values())
    shown = {rule_file(task) for task in TASKS.values()}
    helpers = {"comparison", "euclid", "long_division", "rounding", "__init__"}
    assert {path.stem for path in RULES.glob("*.py")} == {path.stem for path in shown if path} | helpers


@pytest.mark.parametrize("key", TASKS)
def test_rules_agree_with_exact_arithmetic(key):
    longer = () if "fraction" in key else (13, 20, TASKS[key].difficulty.longest)  # 20,000 lines: see the slow test
    for item in some(key, (1, 2, 3, 5, 8, *longer), 1):
        text = rule_following.completion(item)
        assert text.endswith(f"\nSo the answer is {item.answer}."), item
        assert {RuleFollowing().extract(text, task_of(item).answer, reading) for reading in READINGS} == {item.answer}


@pytest.mark.slow
@pytest.mark.parametrize("key", TASKS)
@pytest.mark.parametrize("unit", [None, 1, 2, 3, 5])
def test_rules_agree_with_exact_arithmetic_in_steps_of_any_size_and_every_line_is_true(key, unit):
    rules = RulesConfig(unit=unit)
    for item in some(key, range(1, TASKS[key].difficulty.longest + 1, 3 if unit is None else 9), 1):
        assert rule_following.completion(item, rules).endswith(f"\nSo the answer is {item.answer}."), item
        assert untrue_lines(item, rules) == []


@pytest.mark.parametrize("key", TASKS)
def test_every_line_of_a_trace_is_true(key):
    for item in some(key, (1, 3, 8), 1):
        assert untrue_lines(item, RulesConfig()) == []


def test_the_check_of_lines_sees_a_false_one(monkeypatch):
    item = problem(Cell(TASKS["add_integer"], 4), "train", 0, 0)
    told = rule_following.completion(item)
    monkeypatch.setattr(rule_following, "completion", lambda *_: re.sub(r"(total = .*) = (\d+)", r"\1 = \g<2>1", told))
    assert untrue_lines(item, RulesConfig())


@pytest.mark.slow
@pytest.mark.parametrize("key", TASKS)
def test_a_rule_is_python_that_computes_what_its_trace_says(key):
    path = rule_file(TASKS[key])
    assert path
    module = importlib.import_module(f"lab.rules.library.{path.stem}")
    rule = rule_of(TASKS[key])
    for item in some(key, (1, 2, 4, 7), 2):
        operands = [item.a] if item.b is None else [item.a, item.b]
        assert str(getattr(module, rule.entry.name)(*operands)) == trace(rule, operands).value


def digits_of(value: object) -> int:
    return len(str(abs(value))) if isinstance(value, int) and not isinstance(value, bool) else 0


@pytest.mark.slow
@pytest.mark.parametrize("key", TASKS)
def test_no_step_computes_with_more_digits_than_a_unit_and_its_carry(key):
    """Products of UNIT digits by one, counts and exponents have at most four digits; comparisons may have more."""
    widest = 0

    def watch(step, _):
        nonlocal widest
        computes = step.did in ("assign", "return") and any(isinstance(node, ast.BinOp) for node in ast.walk(step.node))
        widest = max([widest, *(digits_of(step.value) for _ in range(computes))])

    for unit in (None, 1, 2, 3):
        rules = RulesConfig(unit=unit)
        for item in some(key, (7,), 1):
            execute(rule_following.rule(task_of(item), rules), rule_following.operands(item), watch)
    assert widest <= 4


def test_sums_of_nines_and_differences_that_borrow_all_the_way():
    for unit in (1, 2, 3):
        add, sub = (rule_of(TASKS[f"{name}_integer"], unit) for name in ("add", "sub"))
        for digits in (1, 2, 3, 4, 6, 7):
            assert trace(add, ["9" * digits, "1"]).value == "1" + "0" * digits
            assert trace(sub, ["1" + "0" * digits, "1"]).value == "9" * digits
        assert trace(add, ["5026", "15"]).value == "5041"  # the released rule makes it 541
        assert trace(add, ["0", "0"]).value == trace(sub, ["12", "12"]).value == "0"
