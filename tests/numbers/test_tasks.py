import fractions
import json
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import TaskError
from lab.numbers.representations import Float, Integer
from lab.numbers.sampling import Cell, Problem, block
from lab.numbers.several import Integers
from lab.numbers.splits import split_of, unordered
from lab.numbers.tasks import EASY, HARD, SUM, TASKS, task
from lab.text.prompts import prompt

GOLDEN = [json.loads(line) for line in (Path(__file__).parents[1] / "golden" / "nupa_examples.jsonl").open()]


@pytest.mark.parametrize("line", GOLDEN, ids=lambda line: f"{line['source']} {line['key']} {line['a']}")
def test_the_papers_examples_have_the_papers_answers_and_prompts(line):
    row = TASKS[line["key"]]
    a = row.representation.parse(line["a"])
    single = row.name in ("get_digit", "count", "sig")
    b = None if line["b"] is None else (Integer if single else row.representation).parse(line["b"])
    assert str(row.solve(a, b)) == line["answer"]
    problem = Problem(row.name, row.representation.name, line["a"], line["b"], line["answer"], 1)
    assert prompt(problem).endswith(line["tail"])


def test_the_table_holds_the_41_pairs_of_the_paper_and_53_tasks():
    paper = {(row.name.removesuffix("_easy").removesuffix("_hard"), row.representation.name) for row in TASKS.values()}
    assert len(paper) == 41
    assert len(TASKS) == 53
    per_representation = [
        sum(pair[1] == name for pair in paper) for name in ("integer", "float", "fraction", "scientific")
    ]
    assert per_representation == [17 - 1, 12, 7, 6]  # Table 1's rows; an integer is not converted to float


def test_hard_tasks_end_at_20_digits_and_easy_ones_at_100():
    assert TASKS["add_integer"].difficulty is HARD
    assert TASKS["to_float_fraction"].difficulty is HARD
    assert TASKS["max_fraction"].difficulty is HARD
    assert TASKS["to_float_scientific"].difficulty is EASY
    assert [TASKS["add_integer"].range_of(n) for n in (1, 4, 5, 8, 9, 14, 15, 20)] == list("SSMMLL") + ["XL"] * 2
    assert [TASKS["max_integer"].range_of(n) for n in (10, 11, 20, 21, 60, 61, 100)] == list("SMMLL") + ["XL"] * 2
    with pytest.raises(TaskError, match="lengths are 1 to 20"):
        TASKS["add_integer"].range_of(21)


def test_numbers_too_short_to_be_tested_belong_to_training():
    assert TASKS["add_integer"].tested_lengths == range(3, 21)
    assert TASKS["add_fraction"].tested_lengths == range(1, 21)
    assert TASKS["max_integer"].tested_lengths == range(5, 101)
    assert TASKS["max_float"].tested_lengths == range(3, 101)


def test_an_unknown_task_is_named_with_its_neighbours():
    with pytest.raises(TaskError, match=r"no task 'ad_integer'.*add_integer"):
        task("ad_integer")


@pytest.mark.parametrize("key", TASKS)
@settings(max_examples=8, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_every_answer_agrees_with_the_standard_library(key, data, seed):
    """An independent oracle: fractions and decimal, on the texts that the model sees."""
    length = data.draw(st.integers(1, TASKS[key].difficulty.longest))
    for problem in block(Cell(TASKS[key], length), "train", seed, 0):
        assert problem.answer == _expected(problem), problem


def _exact(text: str) -> fractions.Fraction:
    return fractions.Fraction(text)


def _expected(problem: Problem) -> str:
    name = problem.task.removesuffix("_easy").removesuffix("_hard")
    a, b = problem.a, problem.b
    if name in ("add", "sub", "multiply", "truediv", "floordiv", "mod"):
        x, y = _exact(a), _exact(b or "0")
        operations = {
            "add": lambda: x + y,
            "sub": lambda: x - y,
            "multiply": lambda: x * y,
            "truediv": lambda: x / y,
            "floordiv": lambda: x // y,
            "mod": lambda: x % y,
        }
        value = fractions.Fraction(operations[name]())
        return _written(value, TASKS[f"{problem.task}_{problem.representation}"].answer.name)
    if name in ("max", "min"):
        return {"max": max, "min": min}[name](a, b or "", key=_exact)
    digits = a.replace(".", "")
    if name == "get_digit":
        return digits[int(b or "")]
    if name == "length":
        return str(len(digits))
    if name == "count":
        return str(digits.count(b or ""))
    if name == "to_float":
        return _written(_exact(a), "float")
    if name == "to_scient":
        return _written(_exact(a), "scientific")
    if name == "sig" and a == "0":
        return f"0.{'0' * (int(b or '') - 1)}e0"
    if name == "sig":
        with localcontext(prec=int(b or ""), rounding=ROUND_HALF_UP):
            mantissa, _, power = f"{+Decimal(a):.{int(b or '') - 1}e}".partition("e")
        return f"{mantissa}e{int(power)}"
    return _column_by_column(name, a, b or "")


def _column_by_column(name: str, a: str, b: str) -> str:
    (whole_a, _, decimals_a), (whole_b, _, decimals_b) = a.partition("."), b.partition(".")
    width, depth = max(len(whole_a), len(whole_b)), max(len(decimals_a), len(decimals_b))
    x = whole_a.rjust(width, "0") + decimals_a.ljust(depth, "0")
    y = whole_b.rjust(width, "0") + decimals_b.ljust(depth, "0")
    rule = {"digit_max": max, "digit_min": min, "digit_add": lambda p, q: (p + q) % 10}[name]
    digits = "".join(str(rule(int(p), int(q))) for p, q in zip(x, y, strict=True))
    whole = str(int(digits[:width]))
    return whole if not depth else f"{whole}.{digits[width:].rstrip('0') or '0'}"


def _written(value: fractions.Fraction, representation: str) -> str:
    if representation == "integer":
        assert value.denominator == 1
        return str(value.numerator)
    if representation == "fraction":
        return f"{value.numerator}/{value.denominator}"
    with localcontext(prec=500):
        exact = Decimal(value.numerator) / Decimal(value.denominator)
        if representation == "float":
            whole, _, decimals = f"{exact:f}".partition(".")
            return f"{whole}.{decimals.rstrip('0') or '0'}"
        if not exact:
            return "0.0e0"
        mantissa, _, power = f"{exact.normalize():e}".partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(power)}"


def test_a_hard_comparison_shares_its_first_digits_and_its_length():
    problems = block(Cell(TASKS["max_hard_integer"], 8), "train", 0, 0)
    assert all(len(p.a) == len(p.b or "") == 8 and p.a != p.b for p in problems)
    shared = [next(i for i, (x, y) in enumerate(zip(p.a, p.b or "", strict=True)) if x != y) for p in problems]
    assert set(shared) >= set(range(7))


def test_scientific_sums_have_exponents_at_most_five_apart_of_every_offset():
    powers = [
        [int(text.partition("e")[2]) for text in (p.a, p.b or "")]
        for number in range(4)
        for p in block(Cell(TASKS["add_scientific"], 6), "train", 0, number)
    ]
    assert {abs(x - y) for x, y in powers} == {0, 1, 2, 3, 4, 5}
    assert max(max(pair) for pair in powers) <= 98


def test_easy_products_have_a_second_number_of_at_most_three_digits_a_part():
    for name, digits in (("integer", 3), ("float", 3), ("fraction", 3)):
        for p in block(Cell(TASKS[f"multiply_easy_{name}"], 9), "train", 0, 0):
            assert all(len(part) <= digits for part in (p.b or "").replace("/", ".").split("."))


def test_a_number_that_fits_no_representation_is_refused():
    with pytest.raises(ValueError, match="not a finite decimal"):
        TASKS["to_float_fraction"].solve(TASKS["to_float_fraction"].representation.parse("1/3"), None)
    with pytest.raises(ValueError, match="below 1"):
        TASKS["to_scient_float"].solve(Float.parse("0.5"), None)


def test_the_sum_of_several_integers_is_no_task_of_nupa_and_its_terms_have_no_order():
    with pytest.raises(TaskError, match="only models from scratch have this task"):
        task("sum_integers")
    asked = block(Cell(SUM, 3), "train", 0, 0)[0]
    with pytest.raises(TaskError, match="sum_integers: only models from scratch"):
        prompt(asked)
    turned = "+".join(reversed(asked.a.split("+")))
    assert split_of("integers", turned, None, 3, SUM.tested_lengths) == "train"
    assert unordered("45+3+12", None) == unordered("12+3+45", None)
    with pytest.raises(ValueError, match=r"not of the form 12\+345\+6"):
        Integers.parse("1 2+3")
    assert Integers.parse("12 + 3").sum() == Integer(15)
