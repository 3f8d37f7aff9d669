from lab.numbers.sampling import Cell, Problem, problem
from lab.numbers.tasks import TASKS
from lab.text.prompts import completion, prompt


def test_a_prompt_is_the_format_hint_of_the_answer_and_the_question_up_to_the_equals_sign():
    asked = Problem("add", "integer", "744", "543", "1287", 3)
    assert prompt(asked) == (
        "Directly return the answer as an integer without any comma separator, like 123 . Add two numbers: 744 + 543 ="
    )
    assert completion(asked) == " 1287"
    fraction = Problem("truediv", "integer", "744", "543", "248/181", 3)
    assert prompt(fraction).startswith("Directly return the answer as an **irreducible** fraction without any comma")
    scientific = Problem("sig", "float", "65.669", "2", "6.6e1", 3)
    assert "The float part should be in the range [1, 10). Convert the number" in prompt(scientific)


def test_every_task_has_a_prompt_that_names_its_operands_and_ends_in_an_equals_sign():
    prompts = set()
    for key, task in TASKS.items():
        asked = problem(Cell(task, 6), "train", 0, 0)
        text = prompt(asked)
        assert text.endswith(" =")
        assert asked.a in text
        assert asked.b is None or asked.b in text
        assert "{" not in text
        prompts.add((text.split(asked.a)[0], key.removeprefix(task.name), asked.b is None))
    assert len(prompts) > 30
