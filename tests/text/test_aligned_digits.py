from lab.numbers.sampling import Problem
from lab.text.aligned_digits import NOWHERE, aligned_digits
from lab.text.examples import encode_prompt
from lab.text.wording import Wording


def looked_at(item: Problem, toy_model):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(toy_model)
    solved = Wording().example(item)
    found, prompt = aligned_digits(solved, tokenizer), encode_prompt(solved.prompt, tokenizer)
    answer = tokenizer.encode(solved.completion, add_special_tokens=False)
    assert len(found.first) == len(found.second) == len(answer) + 1
    return ["".join("-" if at == NOWHERE else str(tokenizer.decode([prompt[at]])) for at in side) for side in found]


def test_a_digit_of_a_sum_belongs_to_the_digits_of_its_column(toy_model):
    # " 1323<end>": the space, four digits, the end
    assert looked_at(Problem("add", "integer", "1234", "89", "1323", 4), toy_model) == ["-1234-", "---89-"]


def test_decimals_are_counted_from_the_point(toy_model):
    assert looked_at(Problem("add", "float", "12.5", "3.25", "15.75", 2), toy_model) == ["-12-5--", "--3-25-"]


def test_digits_of_scientific_numbers_have_the_place_that_their_exponent_says(toy_model):
    item = Problem("add", "scientific", "1.5e3", "2.5e2", "1.75e3", 2)
    assert looked_at(item, toy_model) == ["-1-5----", "---25---"]


def test_a_parameter_is_no_number_to_look_at(toy_model):
    item = Problem("get_digit", "integer", "1234", "2", "3", 4)
    assert looked_at(item, toy_model) == ["-4-", "---"]
