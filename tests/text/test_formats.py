import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.config.notation import FormatConfig
from lab.errors import TaskError
from lab.numbers.representations import Float, Integer, Scientific
from lab.numbers.sampling import Cell, Problem, problem, task_of
from lab.numbers.tasks import TASKS
from lab.text import formats
from lab.text.formats import TextFormat
from lab.text.wording import Wording
from tests.text.linear import ATOMS, assert_linear

SUM = Problem("add", "integer", "1234", "89", "1323", 4)
DECIMAL = Problem("add", "float", "12.5", "3.25", "15.75", 2)
POWER = Problem("add", "scientific", "1.5e12", "2.5e12", "4.0e12", 2)
FRACTION = Problem("multiply_easy", "fraction", "12/7", "1/35", "12/245", 2)


def written(item: Problem, **format: str) -> tuple[str, str]:
    found = TextFormat(FormatConfig(**format), [task_of(item)]).example(item)  # type: ignore[arg-type]
    return found.prompt[-40:], found.completion


@pytest.mark.parametrize(
    ("item", "format", "question", "answer"),
    [
        (SUM, {"reverse": "integer"}, "Add two numbers: 4321 + 98 =", " 3231"),
        (SUM, {"pad": "operands"}, "Add two numbers: 1234 + 0089 =", " 1323"),
        (SUM, {"pad": "all", "reverse": "integer"}, "Add two numbers: 4321 + 9800 =", " 3231"),
        (DECIMAL, {"reverse": "integer"}, "Add two numbers: 21.5 + 3.25 =", " 51.75"),
        (DECIMAL, {"reverse": "each"}, "Add two numbers: 21.5 + 3.52 =", " 51.57"),
        (DECIMAL, {"reverse": "total"}, "Add two numbers: 5.21 + 52.3 =", " 57.51"),
        (DECIMAL, {"pad": "operands"}, "Add two numbers: 12.50 + 03.25 =", " 15.75"),
        (POWER, {"reverse": "integer"}, "Add two numbers: 1.5e21 + 2.5e21 =", " 4.0e21"),
        (FRACTION, {"reverse": "integer"}, "Multiply two numbers: 21/7 * 1/53 =", " 21/542"),
    ],
)
def test_numbers_are_written_as_the_format_says(item, format, question, answer):
    prompt, completion = written(item, **format)
    assert prompt.endswith(question)
    assert completion == answer


def test_hints_stand_before_every_digit_of_question_and_answer():
    prompt, completion = written(Problem("add", "integer", "12", "9", "21", 2), index_hints="both")
    assert prompt.endswith("<0.1>1<0.0>2 + <0.0>9 =")
    assert completion == " <0.1>2<0.0>1"


def test_without_a_format_there_is_none():
    assert type(formats.written(FormatConfig(), [TASKS["add_integer"]])) is Wording


FORMATS = st.builds(
    FormatConfig,
    reverse=st.sampled_from(["none", "integer", "decimal", "each", "total"]),
    pad=st.sampled_from(["none", "operands", "all"]),
    index_hints=st.sampled_from(["none", "question", "both"]),
)


@given(
    FORMATS,
    st.sampled_from(["add_integer", "add_float", "multiply_easy_fraction", "add_scientific", "max_integer"]),
    st.integers(1, 6),
    st.integers(0, 50),
)
def test_what_is_written_is_read_back_in_both_readings(format, task, length, index):
    item = problem(Cell(TASKS[task], length), "train", 0, index)
    own = TextFormat(format, [TASKS[task]])
    completion = own.example(item, seed=index).completion
    answer = task_of(item).answer
    assert own.extract(completion + ".", answer, "strict") == item.answer
    assert own.extract("it is" + completion, answer, "loose") == item.answer
    assert own.extract("it is" + completion, answer, "strict") is None
    assert own.decided(completion + " ", answer)
    assert not any(own.decided(completion[:end], answer) for end in range(len(completion) + 1))


@given(st.sampled_from(["add_integer", "add_float", "multiply_easy_fraction", "add_scientific"]), st.integers(0, 50))
def test_the_plain_format_is_the_prompt_of_the_paper(task, index):
    item = problem(Cell(TASKS[task], 3), "train", 0, index)
    assert TextFormat(FormatConfig(), [TASKS[task]]).example(item) == Wording().example(item)


def test_a_number_in_another_form_than_the_answers_is_no_answer():
    own = TextFormat(FormatConfig(reverse="integer"), [TASKS["add_scientific"]])
    assert own.extract(" 15e3", Scientific, "strict") is None
    assert own.extract(" 12", Float, "strict") is None
    assert own.extract(" none", Integer, "loose") is None


def test_a_format_that_cannot_carry_a_task_is_refused():
    with pytest.raises(TaskError, match="pad=all"):
        TextFormat(FormatConfig(pad="all"), [TASKS["add_scientific"], TASKS["sig_integer"]])


@pytest.mark.parametrize("reading", ["strict", "loose"])
@pytest.mark.parametrize(
    "format",
    [
        FormatConfig(reverse="total"),
        FormatConfig(reverse="each", index_hints="both"),
        FormatConfig(reverse="total", index_hints="both"),
    ],
)
def test_reading_takes_time_in_proportion_to_the_text(format, reading):
    own = TextFormat(format, [TASKS["add_float"], TASKS["add_scientific"]])
    for atom in ATOMS:
        for representation in (Float, Scientific):
            assert_linear(lambda text, form=representation: own.extract(text, form, reading), atom, 2**14, seconds=2)
            assert_linear(lambda text, form=representation: own.decided(text, form), atom, 2**16, seconds=0.3)
