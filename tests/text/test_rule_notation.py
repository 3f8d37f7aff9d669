"""Problems and traces as the words of models from scratch."""

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.config.notation import FormatConfig
from lab.config.schema import Detail, RulesConfig
from lab.errors import TaskError
from lab.numbers.representations import Integer
from lab.numbers.sampling import Cell, Problem, problem
from lab.numbers.tasks import TASKS, shorter_second
from lab.text.notation import Notation
from lab.text.rule_notation import RuleNotation
from lab.text.scratch_tokenizer import build_tokenizer

KEYS = ("add_integer", "sub_integer", "max_integer", "multiply_easy_integer")
SUM = Problem("add", "integer", "28", "5", "33", 2)


def notation(*keys: str, detail: Detail = "bare", reverse: Literal["none", "integer"] = "integer") -> RuleNotation:
    cells = [Cell(TASKS[key], length) for key in keys or ("add_integer",) for length in (1, 2, 3, 4)]
    return RuleNotation(RulesConfig(unit=1, detail=detail), FormatConfig(reverse=reverse), cells)


@pytest.mark.parametrize(
    ("settings", "question", "answer"),
    [
        ({}, "8 2 <add_integer> 5 =", '8 5 3 1 ; 2 "" 3 0 ; answer is 3 3'),
        ({"reverse": "none"}, "2 8 <add_integer> 5 =", '8 5 3 1 ; 2 "" 3 0 ; answer is 3 3'),
        ({"detail": "answer"}, "8 2 <add_integer> 5 =", "3 3"),
        (
            {"detail": "state"},
            "8 2 <add_integer> 5 =",
            'a= " 8 2 " b= " 5 " ; result= "" carry= 0 ; '
            'a[-1:]= 8 b[-1:]= 5 result= " 3 "+result carry= 1 a= a[:-1] b= "" ; '
            'a[-1:]= 2 b[-1:]= "" result= " 3 "+result carry= 0 a= "" b= "" ; answer is 3 3',
        ),
        ({"detail": "values", "reverse": "none"}, "2 8 <add_integer> 5 =", None),
    ],
)
def test_a_sum_in_words(settings, question, answer):
    made = notation(**settings)
    assert " ".join(made.question(SUM)) == question
    if answer is None:
        assert "total= 1 3 ;" in " ".join(made.answer(SUM))
    else:
        assert " ".join(made.answer(SUM)) == answer


@pytest.mark.slow
@given(
    st.sampled_from(KEYS),
    st.integers(1, 9),
    st.integers(0, 500),
    st.sampled_from(["results", "bare", "state", "values"]),
)
def test_every_trace_is_written_in_the_words_of_the_vocabulary_and_its_answer_is_read(key, length, index, detail):
    made = MADE[detail]
    item = problem(Cell(TASKS[key], length), "train", 0, index)
    words = [*made.question(item), *made.answer(item)]
    assert set(words) <= set(made.vocabulary)
    assert made.read(made.answer(item), Integer) == item.answer
    tokenizer = build_tokenizer(made.vocabulary)
    assert str(tokenizer.decode(tokenizer.encode(" ".join(words)), skip_special_tokens=True)).split() == words


MADE: dict[str, RuleNotation] = {name: notation(*KEYS, detail=name) for name in ("results", "bare", "state", "values")}  # type: ignore[arg-type]


@given(st.sampled_from(["max_integer", "multiply_easy_integer"]), st.integers(1, 12), st.integers(0, 500))
def test_the_rules_of_one_loop_agree_with_exact_arithmetic_and_have_a_line_for_each_place(key, length, index):
    item = problem(Cell(TASKS[key], length, shorter_second(1) if "multiply" in key else None), "train", 0, index)
    words = ONE_LOOP.answer(item)  # refuses a rule that leads to a wrong answer
    longest = max(len(item.a), len(item.b or "")) if key == "max_integer" else len(item.a)
    assert words.count(";") == longest


ONE_LOOP = RuleNotation(
    RulesConfig(unit=1, detail="bare", folder=Path(__file__).parents[2] / "configs" / "rules"),
    FormatConfig(reverse="integer"),
    [Cell(TASKS[key], 3) for key in ("max_integer", "multiply_easy_integer")],
)


@pytest.mark.parametrize("line", ["8 5 3 1 ;", "is", "answer 3 3", "is 3 ; 3", 'is "" 3', "", "3 3"])
def test_what_is_not_a_number_after_the_last_word_is_no_answer(line):
    assert notation().read(line.split(), Integer) is None


def test_the_interface_is_that_of_other_notations():
    names = {name for name in dir(Notation) if not name.startswith("_")}
    assert names <= set(dir(RuleNotation))


def test_what_cannot_be_written_is_refused_by_name():
    with pytest.raises(TaskError, match="no task sub_integer; it has: add_integer"):
        notation().question(Problem("sub", "integer", "28", "5", "23", 2))
    with pytest.raises(TaskError, match="add_float is not a task of integers"):
        notation("add_float")
