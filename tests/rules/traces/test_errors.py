import pytest

from lab.config.schema import RulesConfig
from lab.numbers.sampling import Problem, task_of
from lab.rules.traces.errors import first_error
from lab.text.rule_following import completion, rule

SUM = Problem("add", "integer", "28", "35", "63", 2)
TRACE = completion(SUM)
RULE = rule(task_of(SUM), RulesConfig()).text


def test_a_trace_without_error_has_none_whatever_follows_its_answer():
    assert first_error(TRACE, TRACE, RULE) is None
    assert first_error(f"{TRACE} And so on.\nQ:", TRACE, RULE) is None
    assert first_error(TRACE[:-1], TRACE, RULE) is None


@pytest.mark.parametrize("more", ["7", ".5", "/2", "e1", "0."])
def test_a_longer_number_is_another_answer(more):
    found = first_error(TRACE[:-1] + more, TRACE, RULE)
    assert found
    assert found.kind == "answer"


@pytest.mark.parametrize(
    ("right", "wrong", "kind", "line"),
    [
        ('a = "28"', 'a = "29"', "lookup", 0),
        ("enter the loop", "end the loop", "branch", 5),
        ("28 + 35 + 0 = 63", "28 + 36 + 0 = 64", "operand", 7),
        ("28 + 35 + 0 = 63", "28 + 35 + 0 = 53", "result", 7),
        ('"063" + "" = "063"', '"63" + "" = "63"', "operand", 9),
        ('a = "" and b = ""', "enter the loop", "branch", 15),
        ("carry = total // 1000", "carry = total % 1000", "statement", 10),
        ('a, b = "", ""', 'a, b = "2", ""', "lookup", 13),
        ('a = "" and b = ""', 'a = "2" and b = ""', "condition", 15),
        ('return "63"', 'return "36"', "lookup", 18),
        ("So the answer is 63", "So the answer is 36", "answer", 19),
    ],
)
def test_the_first_line_that_differs_is_named_by_its_kind(right, wrong, kind, line):
    found = first_error(TRACE.replace(right, wrong, 1), TRACE, RULE)
    assert found
    assert (found.kind, found.line, found.lines) == (kind, line, 20)
    assert right in found.expected
    assert wrong in found.written


def test_a_response_that_was_cut_is_unfinished():
    cut = "\n".join(TRACE.splitlines()[:4])
    assert first_error(cut, TRACE, RULE) == ("unfinished", 4, 20, "while a or b:", "")


@pytest.mark.parametrize(
    ("right", "wrong", "kind", "line"),
    [
        ('a="28" b="35"', 'a="28" b="53"', "lookup", 0),
        ('result=""', 'total=""', "statement", 1),
        ("a[-1:]=8 b[-1:]=5 total=13", "a[-1:]=2 b[-1:]=5 total=7", "lookup", 3),
        ("total=13", "total=14", "result", 3),
        ('a="" b=""\n', "", "statement", 10),
        ("a[-1:]=2 b[-1:]=3 ", "a[-1:]=2 ", "statement", 7),
        ("So the answer is 63", "So the answer is 36", "answer", 11),
    ],
)
def test_the_first_line_that_differs_is_named_in_traces_without_statements_too(right, wrong, kind, line):
    short = completion(SUM, RulesConfig(unit=1, detail="values"))
    assert right in short
    assert first_error(short, short, RULE, "values") is None
    found = first_error(short.replace(right, wrong, 1), short, RULE, "values")
    assert found
    assert (found.kind, found.line, found.lines) == (kind, line, 12)
