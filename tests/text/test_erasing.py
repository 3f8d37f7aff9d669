"""What of a trace may be forgotten, and what it costs to read the rest."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.config.schema import RulesConfig
from lab.numbers.sampling import Cell, problem, task_of
from lab.numbers.tasks import TASKS
from lab.text.erasing import Written, erased, tokens_read
from lab.text.execution import computed, execute, literal
from lab.text.liveness import names
from lab.text.rule_following import operands, rule
from lab.text.rulebook import calls_rule
from lab.text.tracing import trace

problems = st.builds(
    lambda key, index: problem(Cell(TASKS[key], 3), "train", 0, index),
    st.sampled_from(list(TASKS)),
    st.integers(0, 10_000),
)
ADD = rule(TASKS["add_integer"], RulesConfig(unit=1))


def test_what_is_left_of_a_sum():
    lines = erased(ADD, ["28", "5"], "values")
    assert "\n".join(line.text for line in lines) == trace(ADD, ["28", "5"], "values").text
    total = next(number for number, line in enumerate(lines) if line.text.endswith("total=3"))
    assert lines[total].kept == ('result="3"', "carry=1", 'a="2" b=""')
    assert lines[total].dead == {"carry"}
    assert lines[total + 1].kept == ('result="3"', 'a="2" b=""', 'a[-1:]=2 b[-1:]="" total=3')
    assert lines[-1].dead == {"total"}


def test_lines_of_changes_are_kept_with_the_value_that_they_change():
    lines = erased(ADD, ["428", "125"], "state")
    assert lines[-1].kept == tuple(line.text for line in lines[:-1])


@settings(max_examples=30)
@given(problems)
def test_a_line_needs_nothing_that_was_forgotten(item):
    to_follow = rule(task_of(item), RulesConfig())
    lines = iter(erased(to_follow, operands(item), "values"))

    def value(kept: tuple[str, ...], name: str) -> str:
        found = re.findall(rf'(?:^| ){name}=("[^"]*"|\([^)]*\)|\[[^]]*\]|\S+)', "\n".join(kept), re.MULTILINE)
        return found[-1] if found else "nothing"

    for step in execute(to_follow, operands(item)):
        if step.did in ("enter", "assign"):  # lines that look something up and assign nothing are passed over
            line = next(line for line in lines if re.search(r"(^| )\w+=", line.text))
        if step.did == "assign":
            needed = frozenset() if calls_rule(step.node.value, to_follow.functions) else names(computed(step.node))
            assert {name: value(line.kept, name) for name in needed} == {n: literal(step.before[n]) for n in needed}


def test_the_most_that_a_token_attends_to_does_not_grow_with_the_turns_but_for_the_numbers():
    def most(digits: int, forgetting: bool) -> int:
        lines = erased(ADD, ["7" * digits, "8" * digits], "values")
        return tokens_read(lines, 0, len, forgetting).most / digits

    assert most(80, True) < 1.5 * most(40, True) < 12
    assert most(80, False) > 1.4 * most(40, False)


@pytest.mark.parametrize(
    ("forgetting", "expected"),
    [
        (False, (10, sum(range(10, 20)), 19, 0)),
        (True, (10, sum([10, 11, 12, 13, 14, 15, 12, 13, 14, 15]), 15, 2)),
    ],
)
def test_tokens_are_those_counted_by_hand(forgetting, expected):
    """Three lines of 4, 2 and 4 letters after a prompt of 10; the first is forgotten before the last."""
    lines = [Written("aaaa", (), frozenset()), Written("bb", ("aaaa",), frozenset())]
    lines.append(Written("cccc", ("bb",), frozenset()))
    assert tokens_read(lines, 10, len, forgetting) == expected
