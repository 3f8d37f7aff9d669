from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.nupa.lines import completion, different_lines, ids, prompt, trained_cells, vocabulary
from experiments.nupa.measure import Writer, asked
from experiments.nupa.rules import TASKS, seen, step, worked
from experiments.nupa.rules.phases import LOOKS
from experiments.nupa.tape import BLANK, Line, Tape
from lab.errors import RuleError
from lab.numbers.sampling import Cell, posed, problem
from lab.numbers.tasks import TASKS as ALL


def written(task, a, b=None):
    return worked(posed(ALL[task], a, b, 1)).answer


@pytest.mark.parametrize("task", TASKS)
def test_rules_give_the_exact_answer_in_every_range(task):
    for lengths in ALL[task].difficulty.ranges.values():
        for length in (lengths[0], lengths[-1]):
            item = problem(Cell(ALL[task], length), "train", 0, length)
            assert worked(item).answer == item.answer, item


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(TASKS), st.integers(1, 12), st.integers(0, 10**6))
def test_rules_are_right_whatever_is_asked(task, length, index):
    item = problem(Cell(ALL[task], length), "train", 1, index)
    assert worked(item).answer == item.answer, item


@pytest.mark.parametrize(
    ("task", "a", "b", "answer"),
    [
        ("add_integer", "999", "1", "1000"),  # a carry into a new digit
        ("sub_integer", "1000", "999", "1"),  # leading zeros
        ("sub_integer", "7", "7", "0"),
        ("add_float", "0.5", "0.5", "1.0"),  # no decimals are left
        ("sub_float", "1.25", "1.2", "0.05"),
        ("multiply_hard_integer", "0", "57", "0"),
        ("floordiv_integer", "1000", "999", "1"),
        ("mod_integer", "100", "10", "0"),
        ("sig_integer", "99960", "3", "1.00e5"),  # rounding makes a new digit
        ("sig_float", "9.96", "2", "1.0e1"),
        ("to_scient_integer", "70000", None, "7.0e4"),
        ("get_digit_integer", "98765", "0", "9"),  # the first position
        ("length_integer", "1" * 100, None, "100"),  # a count of three digits
        ("count_integer", "7" * 100, "7", "100"),
        ("add_scientific", "9.9e9", "1.0e8", "1.0e10"),
        ("sub_scientific", "1.0e10", "9.9999e9", "1.0e5"),  # many leading zeros
        ("max_scientific", "9.9e9", "1.0e10", "1.0e10"),
        ("multiply_hard_float", "0.5", "0.2", "0.1"),
        ("multiply_hard_scientific", "2.5e9", "8.0e1", "2.0e11"),
        ("max_fraction", "1/3", "33/100", "1/3"),
        ("to_float_scientific", "1.2345e4", None, "12345.0"),
    ],
)
def test_edges_of_the_rules(task, a, b, answer):
    assert written(task, a, b) == answer


def test_a_task_without_a_rule_is_refused():
    with pytest.raises(RuleError, match="no rule for <truediv_fraction>; these tasks have one: "):
        worked(posed(ALL["truediv_fraction"], "1/2", "3/4", 1))


def test_sums_begin_at_the_ones_digit_and_carry():
    lines = [" ".join(line.words) for _, line in worked(posed(ALL["add_integer"], "58", "7", 2)).lines]
    assert lines == ["| add 0", "> add 1 ; 5", "> add 0 ; 6", "< drop", "< out is 6", "| whole is 5", ". done"]


def test_words_of_views_and_lines_are_in_the_vocabulary_and_lines_are_read_back():
    cells = trained_cells([ALL[task] for task in TASKS], 2)
    for lines in different_lines(cells, "train", 0, 0.02):
        for view, line in lines:
            assert len(prompt(view)) + len(completion(line)) < 30
            assert Line.read(line.words).words == line.words


def test_lines_that_are_none_are_not_read():
    for words in ([], [">"], ["add", ">"], [">", "add", *"1234567"], [">", "add", ";", *"12345"]):
        assert Line.read(words) is None


@pytest.mark.parametrize("task", ["add_integer", "digit_max_float", "max_hard_integer", "sub_integer"])
def test_long_numbers_lead_to_no_line_that_short_ones_do_not(task):
    """Why training on short numbers is enough: at each place, the rule sees nothing new."""
    cells = trained_cells([ALL[task]], 5)
    known = {tuple(view.words) for lines in different_lines(cells, "train", 0, 4) for view, _ in lines}
    longest = ALL[task].difficulty.longest
    new = {
        tuple(view.words) for i in range(5) for view, _ in worked(problem(Cell(ALL[task], longest), "test", 0, i)).lines
    }
    assert longest >= 4 * 5
    assert new <= known


def test_a_phase_sees_only_what_it_looks_at():
    tape = Tape(posed(ALL["add_scientific"], "1.5e3", "2.5e3", 1))
    tape.phase = "sink"
    assert seen(tape.view()).asked == (BLANK,) * 4
    assert LOOKS["sink"].cell == (1,)
    assert seen(tape.view()).operator == BLANK


class Config(NamedTuple):
    vocabulary: list[str]


class Output(NamedTuple):
    logits: torch.Tensor


class Follower(torch.nn.Module):
    """Writes what the rules write, except where it is told otherwise."""

    def __init__(self, instead=None):
        super().__init__()
        self.rows, self.instead = {}, instead or {}
        self.config = Config(list(vocabulary()))

    def forward(self, rows_BT):
        size = len(vocabulary())
        said = torch.zeros(*rows_BT.shape, size)
        for row, tokens in enumerate(rows_BT.tolist()):
            for end in range(1, len(tokens) + 1):
                if next_word := self.rows.get(tuple(tokens[:end])):
                    said[row, end - 1, next_word] = 1
        return Output(said)

    def learn(self, item):
        for view, line in worked(item).lines:
            row = prompt(view)
            for word in self.instead.get(tuple(view.words)) or completion(line):
                self.rows[tuple(row)] = word
                row = [*row, word]


def test_a_model_that_writes_the_rules_lines_is_right():
    items = [problem(Cell(ALL["sub_integer"], 12), "test", 0, index) for index in range(5)]
    model = Follower()
    for item in items:
        model.learn(item)
    found = asked(Writer(model), items)
    assert [one.answer for one in found] == [item.answer for item in items]
    assert [one.first_wrong for one in found] == [None] * 5
    assert found[0].words == sum(len(line.words) + 1 for _, line in worked(items[0]).lines)


@pytest.mark.parametrize("wrong", ["> add 0 ; 6 <end>", "> <end>", "> > > > > > > > > > > > > > > > > > > > > > >"])
def test_the_first_wrong_line_is_found(wrong):
    item = posed(ALL["add_integer"], "58", "7", 2)
    view = worked(item).lines[1][0]
    model = Follower({tuple(view.words): [ids()[word] for word in wrong.split()]})
    model.learn(item)
    (found,) = asked(Writer(model), [item])
    assert found.answer != item.answer
    assert found.first_wrong is not None
    assert found.first_wrong[0] == view
    assert step(view).words == [">", "add", "1", ";", "5"]
