import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.config.commands import command_of
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import keys_of, load
from lab.config.pretraining import PretrainConfig
from lab.errors import TaskError
from lab.numbers.additions import STRATA, VARIED, addition, unequal_pairs, vary
from lab.numbers.sampling import Cell, problem, task_of
from lab.numbers.splits import split_of
from lab.numbers.tasks import TASKS
from lab.shipped import shipped_configs


@given(st.sampled_from(sorted(STRATA)), st.integers(1, 120), st.integers(0, 5), st.integers(0, 10**6))
def test_every_stratum_adds_up_and_has_its_length(stratum, length, seed, index):
    item = addition(stratum, length, seed, index)
    assert int(item.answer) == int(item.a) + int(item.b)
    assert max(len(item.a), len(item.b)) == length
    assert item == addition(stratum, length, seed, index)
    assert "0" not in (item.a[0], item.b[0])


def test_nines_and_a_short_number_carry_through_every_place():
    for index in range(50):
        item = addition("nines_short", 20, 0, index)
        assert "9" * 20 in (item.a, item.b)
        assert min(len(item.a), len(item.b)) <= 4
        assert len(item.answer) == 21
    assert {item.a == "9" * 20 for item in (addition("nines_short", 20, 0, i) for i in range(50))} == {True, False}


def test_complements_make_chains_that_uniform_digits_hardly_ever_have():
    def longest(stratum: str, index: int) -> int:
        item = addition(stratum, 30, 0, index)
        nines = "".join("9" if int(x) + int(y) == 9 else " " for x, y in zip(item.a, item.b, strict=True))
        return max(map(len, nines.split()), default=0)

    assert max(longest("uniform", i) for i in range(200)) < 8
    assert sum(longest("carries", i) > 8 for i in range(200)) > 40


def test_an_unknown_stratum_is_one_line():
    with pytest.raises(TaskError, match="stratum 'odd' is not known; known: uniform, carries"):
        addition("odd", 3, 0, 0)


@given(st.integers(1, 30), st.integers(0, 10**4), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_what_is_varied_stays_a_training_problem_of_its_length(length, index, carries, short, nines):
    cell = Cell(TASKS["add_integer"], length)
    item = vary(problem(cell, "train", 0, index), carries, short, nines, 0, index)
    assert int(item.answer) == int(item.a) + int(str(item.b))
    assert max(len(item.a), len(str(item.b))) == item.length == length
    assert split_of("integer", item.a, item.b, length, task_of(item).tested_lengths) == "train"


def test_a_variation_varies_as_often_as_it_says():
    cell = Cell(TASKS["add_integer"], 12)
    drawn = [problem(cell, "train", 0, i) for i in range(400)]
    short = [vary(item, 0, 1, 0, 0, i) for i, item in enumerate(drawn)]
    assert sum(min(len(i.a), len(str(i.b))) < 6 for i in short) > 120  # five of the twelve lengths are below 6
    nines = [vary(item, 0, 0, 1, 0, i) for i, item in enumerate(drawn)]
    assert sum("9" * 12 in (i.a, i.b) for i in nines) > 300  # except for those that would be of another split
    assert sum(vary(item, 0, 0, 0, 0, i).answer == item.answer for i, item in enumerate(drawn)) == 400


def test_a_number_that_is_shortened_is_never_zero():
    drawn = [problem(Cell(TASKS["add_integer"], 8), "train", 0, index) for index in range(1000)]
    varied = [vary(item, 0, 1, 0, 0, index) for index, item in enumerate(drawn)]
    assert sum(len(part) == 1 for item in varied for part in (item.a, str(item.b))) > 80
    assert not any("0" in (item.a, item.b) for item in varied)


def test_other_tasks_are_not_varied():
    item = problem(Cell(TASKS["max_integer"], 5), "train", 0, 0)
    assert vary(item, 1, 1, 1, 0, 0) is item


@given(
    st.sampled_from(VARIED),
    st.integers(1, 20),
    st.integers(0, 10**4),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_what_is_varied_is_a_true_training_problem_that_is_not_longer(key, length, index, carries, short, nines):
    item = vary(problem(Cell(TASKS[key], length), "train", 0, index), carries, short, nines, 0, index)
    task, parse = TASKS[key], TASKS[key].representation.parse
    assert str(task.solve(parse(item.a), parse(str(item.b)))) == item.answer
    assert max(len(part) for text in (item.a, str(item.b)) for part in text.split(".")) == item.length <= length
    assert split_of(item.representation, item.a, item.b, item.length, task.tested_lengths) == "train"


@pytest.mark.parametrize("key", ["sub_integer", "add_float", "sub_float"])
def test_a_varied_problem_passes_a_carry_through_all_of_its_places(key):
    """Nines and a short number: as an addition, and as the subtraction that is its inverse."""
    drawn = [problem(Cell(TASKS[key], 6), "train", 0, index) for index in range(200)]
    varied = [vary(item, 0, 1, 1, 0, index) for index, item in enumerate(drawn)]
    texts = [{item.a, str(item.b), item.answer} for item in varied]
    nines = [any({*text.replace(".", "")} == {"9"} and len(text) > 4 for text in numbers) for numbers in texts]
    assert sum(nines) > 120


def _trainings():
    for name, path in shipped_configs().items():
        kind = {"finetune": FinetuneConfig, "pretrain": PretrainConfig}.get(command_of(keys_of(path)) or "")
        if kind:
            yield name, load(kind, path, []).data


TRAININGS = dict(_trainings())


@pytest.mark.parametrize("name", TRAININGS)
def test_a_config_trains_on_all_pairs_of_lengths_or_its_models_say_so(name):
    data, short = TRAININGS[name], TRAININGS[name].variation.short_second
    cells = [cell for cell in data.cells if cell.task.key in ("add_integer", "sub_integer")]
    longest = max((cell.length for cell in cells), default=0)
    found = set()
    for cell in cells:
        if cell.length == longest:
            drawn = [vary(problem(cell, "train", 0, index), 0, short, 0, 0, index) for index in range(2000)]
            found |= {tuple(sorted((len(item.a), len(item.b or "")))) for item in drawn}
    missing = {(least, longest) for least in range(1, longest + 1)} - found
    assert bool(missing) == bool(unequal_pairs(cells, short)), missing
