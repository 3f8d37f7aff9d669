import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.numbers.metrics import score
from lab.numbers.representations import Float, Fraction, Integer, Scientific
from lab.numbers.sampling import Cell, block, task_of
from lab.numbers.tasks import TASKS
from lab.numbers.taxonomy import classify
from lab.text.answers import ALL_READINGS, READINGS, decided, without_thoughts
from lab.text.wording import wording_of
from tests.text.linear import ATOMS, assert_linear

REPRESENTATIONS = [Integer, Float, Fraction, Scientific]
representations = st.sampled_from(REPRESENTATIONS)


def extract(text, representation, reading, setting="base"):
    return wording_of(setting).extract(text, representation, reading)


@pytest.mark.parametrize(
    ("text", "representation", "strict", "loose"),
    [
        (" 1287", Integer, "1287", "1287"),
        (" 1287.\nSo", Integer, "1287", "1287"),
        (" the answer is 42", Integer, None, "42"),
        (" $42$", Integer, None, "42"),
        (" -3", Integer, None, None),  # a number is read whole or not at all
        (" 5,000 or 6", Integer, None, "6"),
        (" 12", Float, None, None),
        (" 12.5.3", Float, None, None),
        (" is 3/4", Fraction, None, "3/4"),
        (" 1.5e-8", Scientific, None, None),
        (" 1.5e8", Scientific, "1.5e8", "1.5e8"),
        (" ٣", Integer, None, None),
        ("", Integer, None, None),
    ],
)
def test_the_two_readings_of_an_answer(text, representation, strict, loose):
    assert extract(text, representation, "strict") == strict
    assert extract(text, representation, "loose") == loose


@given(st.text(st.sampled_from("0123456789./e -=x\n"), max_size=30), representations)
def test_what_is_read_is_of_the_grammar_and_in_the_text(text, representation):
    for reading in READINGS:
        answer = extract(text, representation, reading)
        assert answer is None or (representation.pattern.fullmatch(answer) and answer in text)


@given(
    st.text(st.sampled_from("0123456789./e -=x\n"), max_size=20),
    st.text(st.sampled_from("0123456789./e -=x\n"), max_size=20),
    representations,
)
def test_once_decided_nothing_that_follows_changes_any_reading(begun, rest, representation):
    if decided(begun, representation):
        for reading in ALL_READINGS:
            assert extract(begun + rest, representation, reading) == extract(begun, representation, reading)


@pytest.mark.parametrize(
    ("text", "setting", "strict", "loose"),
    [
        ("1287", "chat", "1287", "1287"),
        ("744 + 543 = 1287", "chat", "744", "1287"),
        ("The answer is 1287.", "chat", None, "1287"),
        ("The answer is 1287.", "api", "1287", "1287"),
        ("The answer is: 1287", "api", "1287", "1287"),
        ("744 + 543 = 1287. The answer is 1287", "api", "1287", "1287"),
        ("1287", "api", "1287", "1287"),  # obeys the format, not the words around it
        ("The answer is [1287]", "api", None, "1287"),
        ("I cannot.", "api", None, None),
    ],
)
def test_a_chat_model_answers_after_its_own_words(text, setting, strict, loose):
    assert extract(text, Integer, "strict", setting) == strict
    assert extract(text, Integer, "loose", setting) == loose


def test_thoughts_are_no_part_of_the_answer():
    assert without_thoughts("<think>12 + 30\nis 42</think>\n42") == ("\n42", "12 + 30\nis 42")
    assert without_thoughts("\n<think>it never ends: 41") == ("", "it never ends: 41")
    assert without_thoughts("42 <think>too late</think>") == ("42 <think>too late</think>", "")
    # Many chat templates open the thoughts themselves.
    assert without_thoughts("12 and 30 make 42.</think>\n42") == ("\n42", "12 and 30 make 42.")
    assert not decided("<think>\n12 + 3", Integer)
    assert not decided("<think>12 + 3</think> 1", Integer)
    assert not decided("<think>12 + 3</think> 15.", Integer)  # it may become 15.5, or 15. No, 16
    assert decided("<think>12 + 3</think> 15.\n", Integer)


@pytest.mark.slow
def test_a_hundred_thousand_random_texts_raise_nothing_and_score_in_range():
    draw = random.Random(0)
    alphabet = "0123456789" * 3 + "./e+-= x,\\n\t{}boxed\u0663\u00b2\ud800\U0001d7d9\x00"
    problems = [block(Cell(TASKS[key], 5), "test", 0, 0)[0] for key in KEYS]
    for number in range(100_000):
        text = "".join(draw.choices(alphabet, k=draw.randrange(24)))
        problem = problems[number % len(problems)]
        answer = task_of(problem).answer
        for reading in READINGS:
            given = extract(text, answer, reading, ("base", "chat", "api")[number % 3])
            exact, digits, dlength, _ = score(given, problem.answer, answer)
            assert 0 <= digits <= 1
            assert dlength >= 0
            assert exact == (given == problem.answer)
            assert not exact or (digits == 1 and dlength == 0)
            if given is not None and answer is Integer:
                kind = classify(given, problem.answer)
                assert (kind == "correct") == (int(given) == int(problem.answer))


KEYS = ("add_integer", "sub_float", "multiply_easy_fraction", "to_scient_integer")


@given(st.text(max_size=60), st.sampled_from(KEYS))
def test_any_text_has_a_score(text, key):
    problem = block(Cell(TASKS[key], 5), "test", 0, 0)[0]
    answer = task_of(problem).answer
    for reading in READINGS:
        found = score(extract(text, answer, reading), problem.answer, answer)
        assert 0 <= found.digit_match <= 1


@pytest.mark.slow
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_a_megabyte_of_whatever_is_read_in_fifty_milliseconds_by_every_representation_and_reading(
    representation, reading
):
    for atom in ATOMS:
        assert_linear(lambda text: extract(text, representation, reading), atom)


@pytest.mark.parametrize("setting", ["chat", "api", "rule_following"])
def test_reading_takes_time_in_proportion_to_the_text_in_every_setting(setting):
    for atom in ATOMS:
        for reading in READINGS:
            assert_linear(lambda text, how=reading: extract(text, Scientific, how, setting), atom, longest=2**14)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_what_is_thought_decided_and_scored_takes_time_in_proportion_to_the_text(representation):
    answer = {"integer": "12", "float": "1.5", "fraction": "1/2", "scientific": "1.5e8"}[representation.name]

    def whole(text):
        said, _ = without_thoughts(text)
        decided(said, representation)
        for reading in READINGS:
            score(extract(said, representation, reading), answer, representation)

    for atom in ATOMS:
        assert_linear(whole, atom, longest=2**14, seconds=0.3)


@given(
    st.lists(st.from_regex(r"[0-9]{1,3}|[0-9]\.[0-9]|[0-9]/[0-9]|[0-9]\.[0-9]e[0-9]|is", fullmatch=True)),
    representations,
)
def test_the_loose_reading_is_the_first_word_of_the_grammar(words, representation):
    expected = next((word for word in words if representation.pattern.fullmatch(word)), None)
    assert extract(", ".join(words), representation, "loose") == expected


@pytest.mark.parametrize(
    ("text", "representation", "setting", "released"),
    [
        (" 42", Integer, "base", "42"),
        ("42", Integer, "base", None),  # only " = " with both spaces is found, and the first ends the prompt
        (" 5,000", Integer, "base", "5"),
        (" 5.5", Integer, "base", "5"),
        (" 5e3", Integer, "base", "5"),
        (" -5", Integer, "base", None),
        (" 1.5e-8", Scientific, "base", "1.5e8"),
        (" 1.5E+8", Scientific, "base", "1.5e8"),
        (" 1.5e-8", Float, "base", "1.5"),
        ("12 + 30 = 42", Integer, "base", "42"),
        (" \u0663", Integer, "base", None),
        (" is 42", Integer, "base", None),
        ("The answer is 42, as 12 + 30 = 42", Integer, "api", "42"),
        ("42.5", Integer, "chat", "42"),
        ("12 + 30 = 42", Integer, "chat", "12"),
        ("So the answer is 42.5", Integer, "rule_following", "42"),
        ("42", Integer, "rule_following", "42"),
    ],
)
def test_the_released_code_reads_less_than_a_whole_number(text, representation, setting, released):
    assert extract(text, representation, "released", setting) == released


@pytest.mark.parametrize(
    ("text", "setting", "final"),
    [
        ("The answer is 12 + 30 = 42.", "chat", "42"),
        ("12 + 30 is 42.\nIt is **42**, and not 43", "chat", "42"),
        ("The answer is 41, sorry: 42", "api", "42"),
        (" 12 + 30 = 42\nAdd two numbers: 1 + 2 = 3", "base", "42"),  # a model that continues raw text asks on
        ("\n\n42 apples\n7", "base", "42"),
        ("3 1\nSo the answer is 41, no: 42.\n12", "rule_following", "42"),
    ],
)
def test_the_final_reading_takes_a_whole_message_or_the_line_of_raw_text_in_which_it_answers(text, setting, final):
    assert extract(text, Integer, "final", setting) == final
