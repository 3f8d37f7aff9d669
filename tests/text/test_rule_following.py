"""Prompt and completion of rule-following CoT, in the layout of the Number Cookbook's A.5.1."""

import pytest

from lab.config.schema import RulesConfig
from lab.errors import RuleError
from lab.numbers.representations import Integer
from lab.numbers.sampling import Problem
from lab.numbers.tasks import TASKS
from lab.text.rule_following import check_rules, completion, prompt
from lab.text.wording import RuleFollowing

SUM = Problem("add", "integer", "28", "35", "63", 2)

# The paper's example (A.5.1), but for its numbers' names, the zero fill, and the lines that tracing.py leaves out.
PROMPT = """\
Follow the given rule to solve the question.
Rule:
def add(a, b):
    result = ""
    carry = 0
    while a or b:
        total = int(a[-3:] or 0) + int(b[-3:] or 0) + carry
        result = str(total % 1000).zfill(3) + result
        carry = total // 1000
        a, b = a[:-3], b[:-3]
    return (str(carry) + result).lstrip("0") or "0"

Q: Return the answer as an integer without any comma separator, like 123 . Add two numbers: 28 + 35

## Response:
"""
RESPONSE = """\
a = "28"
b = "35"
result = ""
carry = 0
while a or b:
enter the loop
total = int(a[-3:] or 0) + int(b[-3:] or 0) + carry
total = 28 + 35 + 0 = 63
result = str(total % 1000).zfill(3) + result
result = "063" + "" = "063"
carry = total // 1000
carry = 63 // 1000 = 0
a, b = a[:-3], b[:-3]
a, b = "", ""
while a or b:
a = "" and b = ""
end the loop
return (str(carry) + result).lstrip("0") or "0"
return "63"
So the answer is 63."""


def test_the_papers_example():
    assert prompt(SUM) == PROMPT == RuleFollowing().prompt(SUM)
    assert completion(SUM) == RESPONSE


def test_a_users_rule_comes_before_the_labs_and_a_task_of_the_users_folder_needs_no_other_code(tmp_path):
    (tmp_path / "add_integer.py").write_text("def plus(a, b):\n    total = int(a) + int(b)\n    return str(total)\n")
    rules = RulesConfig(folder=tmp_path)
    assert "def plus(a, b):" in prompt(SUM, rules)
    assert completion(SUM, rules).splitlines()[-3:] == ["return str(total)", 'return "63"', "So the answer is 63."]
    check_rules(TASKS.values(), rules)


def test_a_folder_that_is_not_there_or_holds_no_rule_is_an_error(tmp_path):
    with pytest.raises(RuleError, match="there is no folder"):
        check_rules([TASKS["add_integer"]], RulesConfig(folder=tmp_path / "typo"))
    (tmp_path / "add_intger.py").write_text("def f(a, b):\n    return a\n")
    with pytest.raises(RuleError, match=r"no file in the folder .* is the rule of a task"):
        check_rules([TASKS["add_integer"]], RulesConfig(folder=tmp_path))


def test_a_task_without_a_rule_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("lab.rules.rulebook.RULES", tmp_path)
    with pytest.raises(RuleError, match=r"no rule for add_integer: there is no add_integer\.py in lab/rules/library"):
        check_rules([TASKS["add_integer"]], RulesConfig())


@pytest.mark.parametrize(
    ("text", "strict", "loose"),
    [
        (RESPONSE, "63", "63"),
        ("total = 28 + 35", None, None),
        ("So the answer is 63", "63", "63"),
        ("So the answer is about 63.", None, "63"),
        ("So the answer is ", None, None),
    ],
)
def test_the_answer_follows_its_words(text, strict, loose):
    assert RuleFollowing().extract(text, Integer, "strict") == strict
    assert RuleFollowing().extract(text, Integer, "loose") == loose


def test_generation_may_stop_behind_the_answer_and_not_before():
    assert not RuleFollowing().decided(RESPONSE[:-1], Integer)
    assert not RuleFollowing().decided(RESPONSE, Integer)  # it may become 63.5
    assert RuleFollowing().decided(f"{RESPONSE}\n", Integer)
