import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.config.finetuning import DataConfig
from lab.config.notation import FormatConfig
from lab.numbers.additions import addition
from lab.numbers.tasks import TASKS
from lab.text import docstrings as documented
from lab.text.docstrings import docstrings
from lab.text.formats import TextFormat, taught
from lab.text.templates import FRESH, HELD_OUT, TRAINING, VALIDATION, ManyTemplates, random_template, worded
from lab.text.wording import Reworded, Wording

REVERSED = TextFormat(FormatConfig(reverse="total"), [TASKS["add_integer"]])


def test_numbers_stay_as_they_are_written():
    problem = addition("uniform", 5, 0, 0)
    asked = worded("What is {a} plus {b}?", REVERSED.example(problem))
    assert asked.prompt == f"What is {problem.a[::-1]} plus {problem.b[::-1]}?"
    assert asked.completion == f" {problem.answer[::-1]}"


def test_every_word_is_drawn_and_a_draw_is_the_samples_own():
    item = Wording().example(addition("uniform", 3, 0, 0))
    many = Reworded(Wording(), [ManyTemplates()])
    drawn = [many.example(item.problem, seed).prompt for seed in range(400)]
    assert drawn == [many.example(item.problem, seed).prompt for seed in range(400)]
    assert many.example(item.problem) == item
    assert set(drawn) == {item.prompt, *(worded(template, item).prompt for template in TRAINING)}


def test_mixed_templates_ask_half_of_the_problems_in_the_words_of_the_benchmark():
    item = Wording().example(addition("uniform", 3, 0, 0))
    mixed = taught(Wording(), DataConfig(tasks=["add_integer"], templates="mixed"))
    own = [mixed.example(item.problem, seed) == item for seed in range(1000)]
    assert 440 < sum(own) < 560


def test_varied_templates_ask_a_third_of_the_problems_each_in_the_words_of_the_benchmark_of_templates_and_at_random():
    item = Wording().example(addition("uniform", 3, 0, 0))
    varied = taught(Wording(), DataConfig(tasks=["add_integer"], templates="varied"))
    drawn = [varied.example(item.problem, seed).prompt for seed in range(1200)]
    written = {worded(template, item).prompt for template in TRAINING}
    own, templates = drawn.count(item.prompt), sum(prompt in written for prompt in drawn)
    assert 340 < own < 460
    assert 340 < templates < 460
    assert len(set(drawn)) > 1200 - own - templates  # random words hardly ever come twice


@given(st.integers(0, 2**64 - 1))
def test_random_words_are_those_of_documentation_around_two_numbers_that_they_separate_from_the_answer(seed):
    template = random_template(seed)
    words = template.split(" ")
    assert words.index("{a}") + 1 < words.index("{b}") < len(words) - 1
    assert {*words} - {"{a}", "{b}"} <= {*docstrings(documented.TRAINING).split()}
    assert not re.search(r"\d", template.format(a="", b=""))


def test_no_words_of_the_test_are_trained_on():
    everything = [*TRAINING, *VALIDATION, *HELD_OUT, *FRESH]
    assert len(set(everything)) == len(everything)


@pytest.mark.parametrize("template", [*TRAINING, *VALIDATION, *HELD_OUT, *FRESH])
def test_sums_in_templates_are_right_ones_digit_first(template):
    for numbers in re.findall(r"(\d+) \+ (\d+) = (\d+)", template):
        a, b, answer = (int(number[::-1]) for number in numbers)
        assert a + b == answer
