import pytest
import torch

from lab.second_reading.reader import LAYERS, NO_WORD, Reader, Vocabulary, lower_states
from tests.second_reading.conftest import Characters


def test_a_reader_sees_only_the_last_digit_of_each_run() -> None:
    text = "a 123, 45 b"
    at, words = Vocabulary(Characters()).seen(Characters().encode(text))
    assert "".join(text[index] for index in at) == "a 3, 5 b"
    assert len(words) == len(at)


def test_words_and_numbers_are_the_same_if_they_are_written_alike() -> None:
    text = "A a b 12 21 12 ;"
    at, words = Vocabulary(Characters()).seen(Characters().encode(text))
    of = {text[index] + str(index): word for index, word in zip(at, words, strict=True)}
    assert of["A0"] == of["a2"] != of["b4"]
    assert of["27"] == of["213"] != of["110"]
    assert of[" 1"] == of[";15"] == NO_WORD


def test_texts_of_a_batch_are_read_as_they_are_alone() -> None:
    torch.manual_seed(0)
    reader = Reader(24, size=16, depth=2).eval()
    states_BTLD, words_BT = (
        torch.randn(2, 7, len(LAYERS), 24),
        torch.tensor([[1, 2, 1, 3, 4, 5, 1], [1, 1, 2, 0, 0, 0, 0]]),
    )
    together = reader(states_BTLD, words_BT, torch.tensor([7, 3]))
    alone = reader(states_BTLD[1:, :3], words_BT[1:, :3], torch.tensor([3]))
    torch.testing.assert_close(together.asked_BC[1:], alone.asked_BC)
    torch.testing.assert_close(together.roles_BTC[1:, :3], alone.roles_BTC)


@pytest.mark.parametrize("layer", LAYERS)
def test_the_states_are_those_of_the_model(llama, layer: int) -> None:
    ids = torch.tensor([Characters().encode("12 and 30 make ")])
    right = llama(ids, output_hidden_states=True).hidden_states[layer]
    torch.testing.assert_close(lower_states(llama, ids)[:, :, LAYERS.index(layer)], right)
