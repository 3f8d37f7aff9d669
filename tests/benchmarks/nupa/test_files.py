import json

import pytest

from lab.benchmarks.nupa.files import PUBLISHED_NAMES, read_published, write_dataset, write_published
from lab.benchmarks.nupa.problems import pick_problems, pick_published
from lab.errors import TaskError
from lab.numbers.sampling import Cell, task_of
from lab.numbers.tasks import TASKS
from lab.text.prompts import parse, prompt

EVERY_CELL = [Cell(task, n) for task in TASKS.values() for n in task.tested_lengths if n in (4, 5)]


@pytest.fixture(scope="module")
def problems():
    return pick_problems(EVERY_CELL, 0, 6)


def test_a_prompt_of_any_task_is_read_back_as_its_problem(problems):
    assert {task_of(item).key for item in problems} == set(TASKS)
    for item in problems:
        assert parse(prompt(item), task_of(item), item.length) == item


def test_the_published_layout_is_written_and_read_back(problems, tmp_path):
    write_published(problems, tmp_path / "test.json")
    assert sorted(read_published(tmp_path / "test.json")) == sorted(problems, key=lambda p: (*p[:3], p.b or "", *p[4:]))


def test_names_are_those_of_the_published_set():
    """The released code's keys: task, operand types, type of the answer."""
    assert {
        "add_Integer_Integer_Integer",
        "truediv_Integer_Integer_Fraction",
        "get_digit_Float_int_int",
        "length_Integer_none_int",
        "to_scient_Float_none_ScientificNotation",
        "sig_Integer_int_ScientificNotation",
    } <= set(PUBLISHED_NAMES)
    assert len(PUBLISHED_NAMES) == 53


def test_a_wrong_published_answer_is_replaced_by_the_exact_one(tmp_path):
    """55445 to 4 figures is 5.545e4, half up; the released code has 5.544e4."""
    hint = "Directly return the answer as a scientific notation without any comma separator, like 1.23e4 . "
    text = f"{hint}The float part should be in the range [1, 10). Convert the number to scientific notation: "
    text += "55445 and keep significant figures as 4 = 5.544e4"
    (tmp_path / "x.json").write_text(json.dumps({"sig_Integer_int_ScientificNotation": {"5": [text]}}))
    (problem,) = read_published(tmp_path / "x.json")
    assert (problem.a, problem.b, problem.answer, problem.length) == ("55445", "4", "5.545e4", 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", "Expecting value"),
        ("[]", "does not have the layout"),
        ('{"add_Integer": {}}', "no task 'add_Integer'"),
        ('{"add_Integer_Integer_Integer": ["1 + 1 ="]}', "does not have the layout"),
        ('{"add_Integer_Integer_Integer": {"three": []}}', "does not have the layout"),
        ('{"add_Integer_Integer_Integer": {"3": ["What is 1 + 1?"]}}', "not a question of this task"),
        ('{"add_Integer_Integer_Integer": {"3": [7]}}', "does not have the layout"),
    ],
)
def test_a_file_of_another_layout_is_one_line_that_says_where(tmp_path, content, message):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(TaskError, match=message) as caught:
        read_published(tmp_path / "x.json")
    assert len(str(caught.value).splitlines()) == 1


def test_a_sample_of_published_problems_is_spread_over_the_lengths(problems):
    cells = [cell for cell in EVERY_CELL if cell.task.key == "add_integer"]
    picked = pick_published(problems, cells, 2)
    assert len(picked) == 4  # two of S and two of M
    assert {item.task for item in picked} == {"add"}
    with pytest.raises(TaskError, match="holds no problem"):
        pick_published([], cells, 2)


def test_the_dataset_loads_with_its_card(problems, tmp_path):
    from datasets import load_dataset

    write_dataset(problems, 0, tmp_path / "nupa")
    data = load_dataset(str(tmp_path / "nupa"), split="test", cache_dir=str(tmp_path / "cache"))
    assert len(data) == len(problems)
    assert data[0]["prompt"] == prompt(problems[0])
    assert data[0]["completion"] == f" {problems[0].answer}"
    card = (tmp_path / "nupa" / "README.md").read_text()
    assert f"{len(problems)} test problems of 53 tasks" in card
    assert card.startswith("---\n")


@pytest.mark.parametrize(
    ("key", "question"), [("sub_integer", "3 - 5 ="), ("sub_fraction", "1/3 - 1/2 ="), ("floordiv_integer", "3 // 0 =")]
)
def test_a_question_whose_answer_has_no_form_here_is_none(key, question):
    task = TASKS[key]
    (problem,) = pick_problems([Cell(task, task.tested_lengths[0])], 0, 1)
    before = prompt(problem).partition(problem.a)[0]
    assert parse(before + question, task, 1) is None


def test_a_question_that_stands_twice_in_a_file_or_swapped_is_asked_once():
    cell = Cell(TASKS["add_integer"], 3)
    (problem,) = pick_problems([cell], 0, 1)
    swapped = problem._replace(a=problem.b, b=problem.a)
    assert pick_published([problem, problem, swapped], [cell], 10) == [problem]


def test_the_released_spelling_of_minimal_is_read_as_the_papers(tmp_path):
    text = "Directly return the answer as an integer without any comma separator, like 123 . "
    text += "Get the mininal number: 12345 and 12354 = 12345"
    (tmp_path / "x.json").write_text(json.dumps({"min_Integer_Integer_Integer": {"5": [text]}}))
    (problem,) = read_published(tmp_path / "x.json")
    assert (problem.task, problem.a, problem.b, problem.answer) == ("min", "12345", "12354", "12345")


def test_only_the_tasks_that_are_asked_for_are_read(problems, tmp_path):
    write_published(problems, tmp_path / "test.json")
    read = read_published(tmp_path / "test.json", {"max_float"})
    assert {(item.task, item.representation) for item in read} == {("max", "float")}
