import random
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from experiments.wild import held_out, wordings
from experiments.wild.arithmetic import Signed, computed
from experiments.wild.digits import drawn, expected, grid
from experiments.wild.problems import ROLES, prompt
from experiments.wild.reader import Reader
from experiments.wild.second_reading import OPERATIONS, SIGNS, SecondReading, decisive, missed_stops
from experiments.wild.two_readings import TwoReadings


class Letters:
    """A tokenizer with one token for each character."""

    bos_token_id = 1

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return [ord(letter) for letter in text]


@pytest.fixture
def small() -> tuple[LlamaForCausalLM, SecondReading]:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=128,
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
    )
    model = LlamaForCausalLM(config).eval()
    reading = SecondReading(model, Letters(), rank=4, walkers=2, walking=range(2, 4))
    for part in reading.parameters():  # as if it had been trained
        part.data.normal_(0, 0.2)
    return model, reading.eval()


def by_hand(operation: str, first: int, second: int) -> int | str:
    if operation == "compare":
        return "<" if first < second else ">" if first > second else "="
    return first + second if operation == "add" else first - second


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_expected_digits_are_those_of_the_answer(operation: str) -> None:
    rng = random.Random(operation)
    for length in range(1, 12):
        pair = drawn(operation, length, rng)
        places = grid([pair]).first_NP.shape[1]
        signs = "".join(SIGNS[sign] for sign in reversed(expected([pair], places)[0].tolist()))
        answer = by_hand(*pair)
        assert (signs[0] if operation == "compare" else int(signs)) == answer


def test_what_is_written_does_not_depend_on_the_other_problems_of_a_batch(
    small: tuple[LlamaForCausalLM, SecondReading],
) -> None:
    _, reading = small
    pairs = [("add", 1234, 98), ("subtract", 1000, 1), ("compare", 77, 1077), ("add", 5, 5)]
    together = reading(grid(pairs)).logits_NPV
    for row, pair in zip(together, pairs, strict=True):
        alone = reading(grid([pair])).logits_NPV[0]
        torch.testing.assert_close(row[: len(alone)], alone, atol=1e-5, rtol=1e-4)


def test_a_place_depends_on_no_place_above_it(small: tuple[LlamaForCausalLM, SecondReading]) -> None:
    _, reading = small
    short, long = (reading(grid([("add", first, 45)])).logits_NPV[0] for first in (123, 98123))
    torch.testing.assert_close(short[:3], long[:3], atol=1e-5, rtol=1e-4)


def test_the_walk_is_told_to_stop_at_the_nearest_lower_place_that_decides() -> None:
    told = grid([("add", 3581, 2417), ("compare", 3581, 3482)])
    assert decisive(told).tolist() == [[True, False, False, True, True], [True, False, True, False, False]]
    right = torch.zeros(1, 1, 5, 5)
    for blank, stop in ((1, 0), (2, 0), (3, 0), (4, 3)):
        right[0, 0, blank, stop] = 1
    alone = grid([("add", 3581, 2417)])
    assert missed_stops([right], alone) == 0
    assert missed_stops([right.roll(1, -1)], alone) > 1


@given(st.integers(-(10**6), 10**6), st.integers(0, 3), st.integers(-(10**6), 10**6), st.integers(0, 3))
def test_the_program_computes_signed_decimals_from_three_operations(
    first: int, places: int, second: int, others: int
) -> None:
    numbers = [
        Signed(-1 if digits < 0 else 1, abs(digits), decimals)
        for digits, decimals in ((first, places), (second, others))
    ]
    values = [number.value() for number in numbers]
    assert computed("sum", numbers, lambda *pair: str(by_hand(*pair))).value() == sum(values)


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=4))
def test_the_larger_and_the_smaller_of_several_numbers(digits: list[int]) -> None:
    numbers = [Signed(1, number, 0) for number in digits]
    assert computed("larger", numbers, lambda *pair: str(by_hand(*pair))).value() == max(digits)
    assert computed("smaller", numbers, lambda *pair: str(by_hand(*pair))).value() == min(digits)


@pytest.mark.parametrize(
    ("number", "grouped", "text"),
    [
        (Signed(1, 1234567, 0), True, "1,234,567"),
        (Signed(-1, 5, 2), False, "-0.05"),
        (Signed(-1, 0, 0), False, "0"),
        (Signed(1, 1200, 2), False, "12.00"),
    ],
)
def test_how_a_number_is_written(number: Signed, grouped: bool, text: str) -> None:
    assert number.written(grouped) == text
    assert Signed.read(text.lstrip("-"), -1 if "-" in text else 1).value() == number.value()


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_the_marked_numbers_of_a_prompt_are_those_of_its_answer(split: str) -> None:
    for seed in range(300):
        made = prompt(split, random.Random(seed))
        assert all(made.text[atom.start : atom.end].isdigit() for atom in made.atoms)
        if made.asked:
            signed = [atom for atom in made.atoms if atom.role > 0]
            assert len(signed) >= 2
            assert made.answer is not None
            whole = all(atom.joins <= 0 for atom in made.atoms)
            if made.asked == 1 and whole:
                total = sum(
                    (1 if ROLES[atom.role] == "plus" else -1) * int(made.text[atom.start : atom.end]) for atom in signed
                )
                assert Fraction(total) == made.answer


def words_of(part: object) -> set[str]:
    """All texts in nested tuples and dictionaries."""
    if isinstance(part, str):
        return {part}
    return set().union(*map(words_of, part.values() if isinstance(part, dict) else part))  # type: ignore[attr-defined]


def test_no_wording_of_the_test_is_one_of_training_but_for_one_heading() -> None:
    lists = [name for name in vars(held_out) if name.isupper() and hasattr(wordings, name)]
    shared = {word for name in lists for word in words_of(getattr(held_out, name)) & words_of(getattr(wordings, name))}
    assert len(lists) > 10
    assert shared - {"{S}", "bricks"} == {"ratio"}


class Characters(Letters):
    eos_token_id = 0

    def decode(self, tokens: list[int]) -> str:
        return "".join(map(chr, tokens))

    def convert_ids_to_tokens(self, tokens: range) -> list[str]:
        return [chr(token) for token in tokens]

    def __len__(self) -> int:
        return 128


def plainly(model: LlamaForCausalLM, tokens: list[int], count: int) -> list[int]:
    """What the model writes without anything else."""
    cache, unread, written = None, tokens, []
    for _ in range(count):
        out = model(torch.tensor([unread]), past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache, unread = out.past_key_values, [int(out.logits[0, -1].argmax())]
        written += unread
    return written


def asks_for(asked: int, role: int) -> Reader:
    """A reader that finds the same in every text."""
    reader = Reader(24, size=16, depth=1)
    for head, best in ((reader.asked, asked), (reader.roles, role), (reader.joins, 0)):
        head.weight.data.zero_()
        head.bias.data.fill_(-5)
        head.bias.data[best] = 5 if head is not reader.joins else -5
    return reader


@pytest.fixture
def tall() -> tuple[LlamaForCausalLM, SecondReading]:
    """A model with as many layers as a reader reads."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=128,
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=17,
        num_attention_heads=6,
        num_key_value_heads=2,
        initializer_range=0.3,
    )
    model = LlamaForCausalLM(config).eval()
    reading = SecondReading(model, Characters(), rank=4, walkers=2, walking=range(2, 4))
    for part in reading.parameters():
        part.data.normal_(0, 0.2)
    return model, reading.eval()


TEXTS = ("12 and 30 make ", "My name is ", "In 1914 and 1918 ", "x,y\n1,2,")


def test_every_text_has_the_untouched_models_logits(tall: tuple[LlamaForCausalLM, SecondReading]) -> None:
    model, second = tall
    ids = [torch.tensor([Characters().encode(text)]) for text in TEXTS]
    before = [model(one).logits.clone() for one in ids]
    two = TwoReadings(model, Characters(), [asks_for(1, 1)], second, likely=0)
    assert any(two.generate(text, 8).computed for text in TEXTS)
    assert all(torch.equal(two.logits(one), logits) for one, logits in zip(ids, before, strict=True))


@pytest.mark.parametrize("text", TEXTS)
def test_where_nothing_is_asked_the_untouched_model_writes_alone(
    tall: tuple[LlamaForCausalLM, SecondReading], text: str
) -> None:
    model, second = tall
    two = TwoReadings(model, Characters(), [asks_for(0, 1)], second, likely=0)
    made = two.generate(text, 12)
    assert not made.computed
    assert made.text == "".join(map(chr, plainly(model, Characters().encode(text), 12)))


def test_up_to_a_computed_number_the_untouched_model_writes_alone(tall: tuple[LlamaForCausalLM, SecondReading]) -> None:
    model, second = tall
    two = TwoReadings(model, Characters(), [asks_for(1, 1)], second, likely=0.02)
    found = {text: two.generate(text, 12) for text in TEXTS}
    computed = {text: made for text, made in found.items() if made.computed}
    assert computed
    for text, made in computed.items():
        first = made.computed[0]
        alone = "".join(map(chr, plainly(model, Characters().encode(text), 12)))
        assert alone.startswith(made.text[: first.start].rstrip(" "))


def test_the_reader_is_shown_at_most_eight_digits_of_a_number_and_the_second_reading_all(
    tall: tuple[LlamaForCausalLM, SecondReading],
) -> None:
    model, second = tall
    two = TwoReadings(model, Characters(), [asks_for(1, 2)], second)
    text = "1234567890123 and 42 x"
    runs, shown = two._runs(Characters().encode(text))
    assert "".join(map(chr, shown)) == "12345678 and 42 x"
    assert [(first, last) for first, last, _ in runs] == [(0, 12), (18, 19)]
    _, question = two.read(Characters().encode(text))
    assert question is not None
    assert question.numbers == ("1234567890123", "42")
    assert question.signs == (-1, -1)
