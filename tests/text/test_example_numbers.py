import re

from lab.config.finetuning import DataConfig
from lab.numbers.additions import addition
from lab.numbers.sampling import posed
from lab.numbers.tasks import TASKS
from lab.text.example_numbers import draw_example_number
from lab.text.formats import taught
from lab.text.templates import ManyTemplates
from lab.text.wording import Reworded, Wording

ITEM = Wording().example(addition("uniform", 3, 0, 0))


def test_the_example_has_any_length_up_to_the_longest_or_is_a_word_and_nothing_else_changes():
    wording = Reworded(Wording(), [draw_example_number])
    begin, _, end = ITEM.prompt.partition("123")
    examples = []
    for seed in range(0, 8 * 500, 8):
        item = wording.example(ITEM.problem, seed)
        assert item.prompt.startswith(begin)
        assert item.prompt.endswith(end)
        assert item[1:] == ITEM[1:]
        examples.append(item.prompt.removeprefix(begin).removesuffix(end))
    lengths = [0 if example == "this" else len(example) for example in examples]
    assert all(30 < lengths.count(length) < 90 for length in range(9))
    assert all(example == "this" or re.fullmatch("[1-9][0-9]*", example) for example in examples)
    assert {example[-1] for example in examples} >= {*"0123456789"}


def test_a_draw_is_the_samples_own_and_without_luck_the_example_stays():
    wording = Reworded(Wording(), [draw_example_number])
    assert wording.example(ITEM.problem, 7) == wording.example(ITEM.problem, 7)
    assert wording.example(ITEM.problem) == ITEM


def test_words_without_the_hint_stay_as_they_are():
    many = Reworded(Wording(), [ManyTemplates()])
    both = Reworded(Wording(), [ManyTemplates(), draw_example_number])
    plain = [many.example(ITEM.problem, seed) for seed in range(1000)]
    drawn = [both.example(ITEM.problem, seed) for seed in range(1000)]
    assert {one.prompt[:8] for one, other in zip(plain, drawn, strict=True) if one != other} == {"Directly"}
    halves = posed(TASKS["add_float"], "0.5", "0.25", 2)
    assert halves
    assert Reworded(Wording(), [draw_example_number]).example(halves, 3) == Wording().example(halves)


def test_training_draws_examples_if_the_config_says_so():
    wording = taught(Wording(), DataConfig(tasks=["add_integer"], example_number="drawn"))
    assert len({wording.example(ITEM.problem, seed).prompt for seed in range(0, 400, 8)}) > 40


def test_eight_successive_problems_have_the_same_example():
    wording = Reworded(Wording(), [draw_example_number])
    drawn = [wording.example(ITEM.problem, seed).prompt for seed in range(800)]
    assert all(drawn[seed] == drawn[seed // 8 * 8] for seed in range(800))
