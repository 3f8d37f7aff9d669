"""What following a rule writes down, and which rules are refused."""

import re
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import RuleError
from lab.rules.rulebook import read_rule
from lab.rules.traces.execution import literal
from lab.rules.traces.tracing import trace


@pytest.fixture
def rule(tmp_path):
    def write(source: str, unit: int | None = None, name: str = "mine.py"):
        (tmp_path / name).write_text(textwrap.dedent(source))
        return read_rule(tmp_path / name, unit)

    return write


def lines(text: str) -> list[str]:
    return textwrap.dedent(text).strip().splitlines()


def test_a_statement_is_followed_by_what_it_saw_and_made_of_it(rule):
    followed = trace(rule("def f(a, b):\n    total = int(a) + 2 * (int(b) - 1)\n    return str(total)"), ["3", "5"])
    assert followed.value == "11"
    assert followed.text.splitlines() == lines("""
        a = "3"
        b = "5"
        total = int(a) + 2 * (int(b) - 1)
        total = 3 + 2 * (5 - 1) = 11
        return str(total)
        return "11"
    """)


def test_loops_say_when_they_are_entered_and_ended(rule):
    source = """
        def f(a):
            left = 2
            while left:
                left -= 1
                while left < 1:
                    break
            for x in a:
                if x == "2":
                    continue
                elif x == "3":
                    pass
                else:
                    left = left + int(x)
            return str(left)
    """
    assert trace(rule(source), ["123"]).text.splitlines() == lines("""
        a = "123"
        left = 2
        while left:
        enter the loop
        left -= 1
        left = 2 - 1 = 1
        while left < 1:
        1 < 1 = False
        end the loop
        while left:
        enter the loop
        left -= 1
        left = 1 - 1 = 0
        while left < 1:
        0 < 1 = True
        enter the loop
        break
        end the loop
        while left:
        left = 0
        end the loop
        for x in a:
        x = "1"
        if x == "2":
        "1" == "2" = False
        elif x == "3":
        "1" == "3" = False
        else:
        left = left + int(x)
        left = 0 + 1 = 1
        x = "2"
        if x == "2":
        "2" == "2" = True
        continue
        x = "3"
        if x == "2":
        "3" == "2" = False
        elif x == "3":
        "3" == "3" = True
        pass
        end the loop
        return str(left)
        return "1"
    """)


def test_calls_are_entered_and_exited_and_their_result_stands_where_it_is_assigned(rule):
    source = """
        def halve(n):
            '''Not shown.'''
            return n // 2, n % 2


        def f(a):  # not shown either
            half, rest = halve(int(a))
            return str(half)
    """
    made = rule(source)
    assert (
        made.text
        == "def halve(n):\n    return n // 2, n % 2\ndef f(a):\n    half, rest = halve(int(a))\n    return str(half)"
    )
    assert trace(made, ["7"]).text.splitlines() == lines("""
        a = "7"
        half, rest = halve(int(a))
        enter function: halve
        n = 7
        return n // 2, n % 2
        return 7 // 2, 7 % 2 = 3, 1
        exit function: halve
        half, rest = 3, 1
        return str(half)
        return "3"
    """)


def test_conditions_show_only_what_was_looked_at(rule):
    source = """
        def f(a, b):
            if a and b:
                return "both"
            if a or int(b) > 3 or int(b) < 0:
                return "either"
            return "none"
    """
    made = rule(source)
    assert trace(made, ["", "5"]).text.splitlines()[2:] == lines("""
        if a and b:
        a = ""
        pass
        if a or int(b) > 3 or int(b) < 0:
        "" or 5 > 3 = True
        return "either"
    """)
    assert trace(made, ["1", "2"]).value == "both"


def test_constants_of_the_module_stand_in_the_text_and_the_unit_can_be_chosen(rule):
    source = """
        UNIT = 3
        BASE = 10**UNIT


        def f(a):
            rest = int(a[-UNIT:]) % BASE
            return str(rest)
    """
    assert "rest = int(a[-3:]) % 1000" in rule(source).text
    assert "rest = int(a[-1:]) % 10\n" in rule(source, unit=1).text
    assert trace(rule(source, unit=2), ["12345"]).value == "45"


def test_only_functions_that_the_rule_calls_are_shown_imported_ones_too(tmp_path):
    (tmp_path / "helpers.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    (tmp_path / "mine.py").write_text("from helpers import one, two\n\n\ndef f(a):\n    b = two()\n    return str(b)\n")
    assert list(read_rule(tmp_path / "mine.py").functions) == ["two", "f"]
    assert "exit function: two\nb = 2" in trace(read_rule(tmp_path / "mine.py"), ["1"]).text


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ('a in ("12", "3")', '"12" in ("12", "3") = True'),
        ('(a, "1") == ("12", "1")', '("12", "1") == ("12", "1") = True'),
        ('a.split("1") + a.split("2")', '["", "2"] + ["1", ""] = ["", "2", "1", ""]'),
        ('max(a.split("2"))', 'max(["1", ""]) = "1"'),
        ('(a,)', '("12",)'),
        ('((1, 2), 3)', "(1, 2), 3"),
        ('not a == "12"', 'not "12" == "12" = False'),
        ("-(int(a) - 3) * 2", "-(12 - 3) * 2 = -18"),
        ('int(a) - (3 - 1) - int(a) % \\\n        5', "12 - (3 - 1) - 12 % 5 = 8"),
    ],
)  # fmt: skip
def test_values_are_written_as_python_reads_them(rule, expression, shown):
    followed = trace(rule(f"def f(a):\n    x = {expression}\n    return a"), ["12"])
    line = next(line for line in followed.text.splitlines()[2:] if line.startswith("x = "))
    assert line == f"x = {shown}"
    assert len({repr(eval(part)) for part in shown.split(" = ")}) == 1


operators = st.sampled_from(["+", "-", "*", "//", "%"])
expressions = st.recursive(
    st.sampled_from(["a", "b", "c", "7"]),
    lambda inner: st.tuples(inner, operators, inner).map(lambda part: f"({part[0]} {part[1]} {part[2]})"),
    max_leaves=8,
)


@given(expressions, st.lists(st.integers(1, 99), min_size=3, max_size=3))
def test_values_stand_in_an_expression_as_tightly_as_names_did(tmp_path_factory, expression, values):
    path = tmp_path_factory.mktemp("rules") / "mine.py"
    path.write_text(f"def f(a, b, c):\n    x = {expression}\n    return str(x)\n")
    try:
        expected = eval(expression, dict(zip("abc", values, strict=True)))
    except ZeroDivisionError:
        with pytest.raises(RuleError, match="zero"):
            trace(read_rule(path), values)
        return
    followed = trace(read_rule(path), values)
    shown = [line for line in followed.text.splitlines() if line.startswith("x = ")][-1]
    assert [eval(part) for part in shown.split(" = ")[1:]] == [expected] * shown.count(" = ")


@given(st.one_of(st.integers(), st.booleans(), st.text(st.characters(max_codepoint=300))))
def test_a_value_reads_back_as_itself(value):
    assert eval(literal(value)) == value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def f(a):\n    while True:\n        a = '1'\n    return a", "no end after 100000 steps"),
        ("def f(a):\n    return f(a)", "f calls itself without end"),
        ("def max(a):\n    b = max(int(a), 3)\n    return b", "max takes 1 values, not 2"),
        ("def f(a):\n    x = 9\n    while a:\n        x = x * x\n    return x", "more than 4000 digits"),
        ("def f(a):\n    x = int(a) // 0\n    return x", "division or modulo by zero"),
        ("def f(a):\n    x = int('x' + a)\n    return x", "invalid literal"),
        ("def f(a):\n    return b", "name 'b' is not defined"),
        ("def f(a):\n    x = 1", "f ended without a return"),
        ("def f(a):\n    x, y = 1, 2, 3\n    return x", "x, y cannot be assigned 1, 2, 3"),
        ("def f(a, b):\n    return a", "f takes 2 values, not 1"),
        ("def f(a):\n    x = int(a)\n    return x.zfill(3)", "'int' object has no attribute 'zfill'"),
        ("def f(a):\n    for x in len(a):\n        pass\n    return a", "len(a) is 1, which a loop cannot run over"),
        ("def f(a):\n    while a:\n        a = a + a\n    return a", "more than 4000 digits"),
        ("def f(a):\n    return a * 10000000000", "more than 4000 characters"),
        ("def f(a):\n    return 2 * a.zfill(10000000000)", "more than 4000 characters"),
        ("def f(a):\n    x = 9\n    while a:\n        x, y = x * x, 1\n    return x", "more than 4000 digits"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused_by_name(rule, source, why):
    with pytest.raises(RuleError, match=f"^rule mine: .*{re.escape(why)}"):
        trace(rule(source), ["1"])


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def f(a):\n  return (", "line 2: '(' was never closed"),
        ("x = 1", "defines no function"),
        ("import os\ndef f(a):\n    return a", "line 1: import outside a function"),
        ("from nowhere import g\ndef f(a):\n    return a", "line 1: there is no rule file nowhere.py"),
        ("def f(a):\n    return a / 2", "div is not known"),
        ("def f(a):\n    return [a]", "list is not known"),
        ("def f(a):\n    return f'{a}'", "joinedstr is not known"),
        ("def f(a):\n    return a.__class__", "attributes are not known"),
        ("def f(a):\n    return open(a)", "open is not known"),
        ("def f(a):\n    return a.format()", "the method format is not known"),
        ("def f(a):\n    return str(a, base=3)", "keyword"),
        ("def f(a=1):\n    return a", "without defaults"),
        ("def f(a):\n    return 1.5", "float values are not known"),
        ("def f(a):\n    return", "a return should give a value"),
        ("def f(a):\n    a[0] = 1\n    return a", "only names can be assigned to"),
        ("def g(a):\n    return a\ndef f(a):\n    return g(a) + '1'", "g should be called in a statement of its own"),
        ("def f(a):\n    while a:\n        a = ''\n    else:\n        a = ''\n    return a", "else after a loop"),
        ("def f(a):\n    return 'ä'", "cannot be read"),
        ("def f(a):\n    if a: return '1'\n    return a", "a body should begin on a line of its own"),
        ("@g\ndef f(a):\n    return a", "line 2: functiondef outside a function"),
        ("def f(a):\n    def g(b):\n        return b\n    return a", "a function within a function"),
        ('def f(a):\n    x = """a\n\nb"""\n    return x', "line 2: a text should end on the line on which it begins"),
        ("def f(a):\n    b[0], c = 1, 2\n    return a", "only names can be assigned to"),
        ("def f(a):\n    for a[0] in a:\n        pass\n    return a", "only names can be assigned to"),
        ("def f(a):\n    'nothing but words'", "has no statement, or uses the name of a constant"),
        ("N = 3\ndef f(N):\n    return N", "has no statement, or uses the name of a constant"),
        ("N = 9**9**9\ndef f(a):\n    return a", "line 1: a constant is a text, a number"),
        ("from mine import g\ndef f(a):\n    return a", "mine.py imports itself"),
        (
            "from lab.rules.library.euclid import gcd as g\ndef f(a):\n    return a",
            "or it is imported under another name",
        ),
        (
            "from lab.rules.library.euclid import gcd\ndef gcd(a):\n    return a",
            "gcd is defined in euclid.py and in mine.py",
        ),
        ("UNIT = x\ndef f(a):\n    return a", "line 1: a constant is a text, a number"),
    ],
)
def test_what_the_tracer_does_not_know_is_refused_when_the_rule_is_read(rule, source, why):
    with pytest.raises(RuleError, match=re.escape(why)) as refused:
        rule(source)
    assert "mine.py" in str(refused.value)
    assert "\n" not in str(refused.value)
