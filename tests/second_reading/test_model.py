from collections.abc import Callable

import pytest
import torch
from transformers import LlamaForCausalLM

from lab.errors import TaskError
from lab.second_reading.model import LONGEST_COMPUTED, Continuation, Question, TwoReadings, decided
from tests.second_reading.conftest import Characters

TEXTS = ("12 and 30 make ", "My name is ", "In 1914 and 1918 ", "x,y\n1,2,")
Finds = Callable[..., TwoReadings]


def plainly(model: LlamaForCausalLM, text: str, count: int) -> list[int]:
    """What the model writes without anything else."""
    cache, unread, written = None, Characters().encode(text), []
    for _ in range(count):
        out = model(torch.tensor([unread]), past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache, unread = out.past_key_values, [int(out.logits[0, -1].argmax())]
        written += unread
    return written


def continued(model: TwoReadings, text: str) -> Continuation:
    return model.continued(Characters().encode(text), 12, {-1})


def test_every_text_has_the_untouched_models_logits(llama: LlamaForCausalLM, model_that_finds: Finds) -> None:
    ids = [torch.tensor([Characters().encode(text)]) for text in TEXTS]
    before = [llama(one).logits.clone() for one in ids]
    two = model_that_finds("sum", "plus")
    assert any(continued(two, text).computed for text in TEXTS)
    assert all(torch.equal(two.logits(one), logits) for one, logits in zip(ids, before, strict=True))


@pytest.mark.parametrize("text", TEXTS)
def test_where_nothing_is_asked_the_untouched_model_writes_alone(
    llama: LlamaForCausalLM, model_that_finds: Finds, text: str
) -> None:
    made = continued(model_that_finds("none", "plus"), text)
    assert not made.computed
    assert made.tokens == plainly(llama, text, 12)


def test_up_to_a_computed_number_the_untouched_model_writes_alone(
    llama: LlamaForCausalLM, model_that_finds: Finds
) -> None:
    two = model_that_finds("sum", "plus", likely=0.02)
    found = {text: made for text in TEXTS if (made := continued(two, text)).computed}
    assert found
    for text, made in found.items():
        before = made.tokens[: made.computed[0].start]
        assert plainly(llama, text, 12)[: len(before)] == before or before[-1] == ord(" ")


def test_no_digit_follows_a_computed_number(model_that_finds: Finds) -> None:
    made = continued(model_that_finds("sum", "plus"), TEXTS[0])
    first = made.computed[0]
    end = first.start + len(first.answer.written(False))
    assert Characters().decode(made.tokens[first.start : end]) == first.answer.written(False)
    assert not Characters().decode(made.tokens[end : end + 1]).isdigit()


def test_the_reader_is_shown_the_first_digits_of_a_number_and_the_second_reading_all(model_that_finds: Finds) -> None:
    two = model_that_finds("sum", "minus")
    tokens = Characters().encode("1234567890123 and 42 x")
    runs, shown = two._runs(tokens)
    assert "".join(map(chr, shown)) == "123456 and 42 x"
    assert [(first, last) for first, last, _ in runs] == [(0, 12), (18, 19)]
    _, question = two.read(tokens)
    assert question == Question("sum", ("1234567890123", "42"), (1, -1))


@pytest.mark.parametrize(
    ("asked", "chances", "roles"),
    [
        ("sum", [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], ["plus", "minus"]),
        ("sum", [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.6, 0.1, 0.3]], ["none", "plus", "minus"]),
        ("sum", [[0.0, 0.1, 0.9], [0.0, 0.4, 0.6]], ["minus", "plus"]),
        ("sum", [[0.0, 1.0, 0.0]] * 3, ["plus"] * 3),
        ("distance", [[0.1, 0.9, 0.0], [0.2, 0.8, 0.0], [0.3, 0.7, 0.0]], ["plus", "plus", "none"]),
        ("larger", [[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.7, 0.0, 0.3]], ["none", "plus", "minus"]),
        ("larger", [[0.0, 1.0, 0.0]], ["plus"]),
    ],
)
def test_roles_are_the_most_likely_ones_that_make_sense(
    asked: str, chances: list[list[float]], roles: list[str]
) -> None:
    assert decided(asked, torch.tensor(chances)) == roles


def test_a_number_that_is_too_long_is_refused(model_that_finds: Finds) -> None:
    long = "1" * (LONGEST_COMPUTED + 1)
    with pytest.raises(TaskError, match=r"^a number of 5,001 digits: this model computes with up to 5,000$"):
        model_that_finds("sum", "plus").answer(Question("sum", (long, "2"), (1, 1)))
