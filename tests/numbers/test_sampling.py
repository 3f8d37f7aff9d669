import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import TaskError
from lab.numbers import sampling
from lab.numbers.representations import length
from lab.numbers.sampling import BLOCK, Cell, Curriculum, Mixture, block, distinct_problems, has_problems, problem
from lab.numbers.splits import split_of
from lab.numbers.tasks import TASKS, shorter_second

products = [(TASKS["multiply_easy_integer"], shorter_second(digits)) for digits in (1, 2)]
cells = st.sampled_from([*((task, None) for task in TASKS.values()), *products]).flatmap(
    lambda rule: st.builds(Cell, st.just(rule[0]), st.integers(1, rule[0].difficulty.longest), st.just(rule[1]))
)
splits = st.sampled_from(["train", "valid", "test"])


def operands(item):
    return tuple(sorted((item.a, item.b or "")))


@settings(max_examples=60, deadline=None)
@given(cells, st.integers(0, 1000))
def test_a_problem_is_exactly_as_long_as_it_was_asked_to_be(cell, seed):
    representation = cell.task.representation
    for item in block(cell, "train", seed, 0):
        first = length(representation.parse(item.a))
        second = 0
        if item.b is not None and cell.task.name not in ("get_digit", "count", "sig"):
            second = length(representation.parse(item.b))
        assert max(first, second) == cell.length == item.length


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(cells, splits, st.integers(0, 1000))
def test_a_problem_is_of_the_split_it_was_drawn_for(cell, split, seed):
    if has_problems(cell, split, seed):
        for item in block(cell, split, seed, 0):
            assert split_of(item.representation, item.a, item.b, item.length, cell.task.tested_lengths) == split


@settings(max_examples=40, deadline=None)
@given(cells, st.integers(0, 1000), st.integers(0, 1000))
def test_no_two_splits_share_operands_whatever_the_seeds(cell, seed, other):
    drawn = {
        split: {operands(item) for item in block(cell, split, seed if split == "train" else other, 0)}
        for split in ("train", "valid", "test")
        if has_problems(cell, split, seed) and has_problems(cell, split, other)
    }
    assert sum(map(len, drawn.values())) == len(set().union(*drawn.values()))


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_factor_may_be_cut_to_one_digit_and_the_problem_is_still_of_its_split(split):
    task = TASKS["multiply_easy_integer"]
    whole, cut = ([problem(Cell(task, 6, own), split, 0, i) for i in range(300)] for own in (None, shorter_second(1)))
    assert {item.b for item in cut} == set("0123456789")
    assert max(len(item.b) for item in whole) == 3
    for item in cut:
        assert int(item.answer) == int(item.a) * int(item.b)
        assert split_of("integer", item.a, item.b, 6, task.tested_lengths) == split


def test_swapped_operands_are_one_problem():
    assert split_of("integer", "123456", "98", 6, range(3, 21)) == split_of("integer", "98", "123456", 6, range(3, 21))


def test_lengths_too_short_to_be_tested_are_all_training():
    cell = Cell(TASKS["max_integer"], 4)
    assert not has_problems(cell, "test", 0)
    assert not has_problems(cell, "valid", 0)
    with pytest.raises(TaskError, match="max_integer has no test problems of length 4"):
        problem(cell, "test", 0, 0)


@settings(max_examples=25, deadline=None)
@given(cells, st.integers(0, 5 * BLOCK))
def test_any_problem_can_be_computed_alone(cell, index):
    alone = problem(cell, "train", 3, index)
    block.cache_clear()
    stream = [problem(cell, "train", 3, i) for i in range(index - index % BLOCK, index + 1)]
    assert stream[-1] == alone


@pytest.mark.parametrize("key", ["add_integer", "to_float_fraction", "mod_easy_integer", "max_hard_scientific"])
def test_a_thousand_distinct_test_problems_where_the_space_has_so_many(key):
    for digits in (3, 5):
        if digits in TASKS[key].tested_lengths:
            items = distinct_problems(Cell(TASKS[key], digits), "test", 0, 1000)
            assert len(items) == len({operands(item) for item in items}) == 1000


def test_a_small_space_gives_what_it_has():
    items = distinct_problems(Cell(TASKS["max_fraction"], 1), "test", 0, 1000)
    others = distinct_problems(Cell(TASKS["max_fraction"], 1), "test", 1, 1000)
    assert 20 < len(items) < 1000
    assert {operands(item) for item in items} == {operands(item) for item in others}


@settings(max_examples=20, deadline=None)
@given(cells, splits, st.integers(0, 1000), st.integers(0, 150))
def test_distinct_problems_are_the_first_of_the_stream_without_repetition(cell, split, seed, count):
    if not has_problems(cell, split, seed):
        assert distinct_problems(cell, split, seed, count) == []
        return
    stream = [item for number in range(2) for item in block(cell, split, seed, number)]
    first = {operands(item): item for item in reversed(stream)}
    expected = [item for item in stream if first[operands(item)] is item]
    drawn = distinct_problems(cell, split, seed, count)
    assert drawn[: len(expected)] == expected[: len(drawn)]
    assert len(drawn) >= min(count, len(expected))


@pytest.mark.parametrize("count", [0, 1, 5, 200])
def test_nothing_is_drawn_beyond_the_last_distinct_problem(count, monkeypatch):
    """For long numbers, 15 of 16 draws are thrown away: a block of test problems costs 2,048 draws."""
    drawn = []

    def watched(*question):
        drawn.append(split_of(*question))
        return drawn[-1]

    monkeypatch.setattr(sampling, "split_of", watched)
    assert len(distinct_problems(Cell(TASKS["add_integer"], 9), "test", 7, count)) == count
    assert drawn.count("test") == count
    assert drawn[-1:] == ["test"] * (count > 0)


def test_the_test_set_of_a_seed_is_the_same_bytes_on_every_machine():
    lines = [
        "|".join(map(str, item))
        for task in TASKS.values()
        for digits in (task.tested_lengths[0], 10, task.difficulty.longest)
        for item in distinct_problems(Cell(task, digits), "test", 0, 20)
    ]
    # Made by this sampler's first version, on CPython 3.11 and numpy 2.4, x86-64.
    assert (
        hashlib.sha256("\n".join(lines).encode()).hexdigest()
        == "6928a1706ef6d4e0cfe5aeb39ff4d9f8fae1f1c0901382e60116d8845256ffe2"
    )


def test_a_mixture_visits_every_cell_once_a_round():
    chosen = [Cell(TASKS[key], digits) for key in ("add_integer", "max_float") for digits in (3, 4, 5)]
    mixture = Mixture(chosen, "train", 0, 60)
    rounds = [[(p.task, p.length) for p in (mixture[i] for i in range(6 * r, 6 * r + 6))] for r in range(10)]
    assert all(len(set(visited)) == 6 for visited in rounds)
    assert len({tuple(visited) for visited in rounds}) > 1
    assert [mixture[i] for i in (17, 3)] == [Mixture(chosen, "train", 0, 60)[i] for i in (17, 3)]
    with pytest.raises(IndexError):
        mixture[60]


def test_a_mixture_of_nothing_is_refused():
    with pytest.raises(TaskError, match="at least one task"):
        Mixture([], "train", 0, 10)


def test_lengths_of_a_curriculum_grow_stage_by_stage_to_all_cells():
    cells = [Cell(TASKS["add_integer"], n) for n in range(1, 7)] + [Cell(TASKS["max_integer"], n) for n in (4, 5)]
    curriculum = Curriculum(cells, "train", 0, 300, 3)
    longest = [
        {task: max(c.length for c in map(curriculum.cell, range(100 * s, 100 * s + 100)) if c.task.name == task)}
        for s in range(3)
        for task in ("add", "max")
    ]
    assert longest == [{"add": 2}, {"max": 4}, {"add": 4}, {"max": 4}, {"add": 6}, {"max": 5}]


def test_no_stage_of_a_curriculum_repeats_a_problem_of_an_earlier_one():
    cells = [Cell(TASKS["add_integer"], n) for n in range(8, 16)]
    curriculum = Curriculum(cells, "train", 0, 1000, 3)
    assert len({curriculum[i] for i in range(1000)}) == 1000
    assert {cell.length for cell in map(curriculum.cell, range(999, 1010))} <= set(range(8, 16))
