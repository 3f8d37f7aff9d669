"""Evenly spaced numbers: their ids by hand, and a model whose sums do not depend on the words between numbers."""

import pytest
import torch
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from lab.config.finetuning import Swap
from lab.config.notation import FormatConfig
from lab.config.schema import ModelConfig
from lab.models import swaps
from lab.parts.even_spacing import EvenSpacing, EvenSpacingConfig, spaced_ids
from lab.parts.part import Step
from lab.text.places import row_spots, row_spots_downward
from lab.trees.paths import two_query_attention

AS_WRITTEN = FormatConfig(reverse="none", pad="answer", carry_place=True)


def even(words: str, ordinary: bool = True) -> list[int]:
    """The even ids of words that are separated by spaces, with a spacing of 3."""
    row = words.split(" ")
    spots = row_spots_downward(row, len(row), 2) if ordinary else row_spots(row, len(row), False, 2)
    ids = spaced_ids(spots, 3)
    return (ids.positions_Q + ids.turns_Q2[:, 1]).tolist()


def test_a_word_has_the_even_id_of_the_number_that_comes_next():
    assert even("like 1 2 3 Add 5 7 and 8 = 0 6") == [3, 3, 3, 3, 6, 6, 6, 9, 9, 12, 12, 12]
    assert even("no number here") == [3, 3, 3]


@pytest.mark.parametrize("ordinary", [True, False])
def test_a_point_has_the_even_id_of_its_number_whether_or_not_more_digits_follow(ordinary):
    whole = "is 1 2 . 5 + 3 . 5 = 1 6 . 0 0"
    assert even(whole, ordinary) == [3, 3, 3, 3, 3, 6, 6, 6, 6, 9, 9, 9, 9, 9, 9]
    begun = len("is 1 2 . 5 + 3 . 5 =")
    for end in (begun, begun + len(" 1 6 ."), begun + len(" 1 6 . 0")):
        assert even(whole[:end], ordinary) == even(whole, ordinary)[: len(whole[:end].split(" "))]


def test_digits_are_rotated_by_their_even_ids_and_words_by_those_in_the_text():
    row = ["a", "1", "2", "b", "c", "8"]
    ids = spaced_ids(row_spots_downward(row, 3, 2), 3)
    assert ids.positions_Q.tolist() == [2, 3, 6]
    assert ids.turns_Q2.tolist() == [[0, 4], [0, 3], [-2, 0]]


def test_words_are_seen_by_text_ids_and_digits_by_even_ids():
    rotary = LlamaRotaryEmbedding(LlamaConfig(hidden_size=16, num_attention_heads=1, head_dim=16))
    query, key, value = torch.randn(1, 4, 3, 16), torch.randn(1, 2, 3, 16), torch.randn(1, 2, 3, 16)
    text, even = torch.tensor([[0, 7, 20]]), torch.tensor([[3, 3, 6]])
    is_digit, mask = torch.tensor([[False, True, False]]), torch.zeros(1, 1, 3, 3)
    mask[..., 0, 2] = float("-inf")

    def rotated(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return apply_rotary_pos_emb(query, key, *rotary(query, position_ids=ids))

    def scores(ids: torch.Tensor) -> torch.Tensor:
        queries, keys = rotated(ids)
        return queries @ keys.repeat_interleave(2, 1).transpose(-1, -2)

    weights = (torch.where(is_digit, scores(even), scores(text)) / 4 + mask).softmax(-1)
    ids = torch.where(is_digit, even, text)
    part = EvenSpacing(EvenSpacingConfig(), operands=2)
    inputs = {"turns_BQ2": torch.stack([text - ids, even - ids], -1), "digits_BK": is_digit}
    queries, keys = rotated(ids)
    *both, digits = part.act(inputs, Step(query, rotary, training=False)).queries(queries)
    found = two_query_attention(tuple(both), keys, value, mask, digits, 1 / 4)
    assert torch.allclose(found, weights @ value.repeat_interleave(2, 1), atol=1e-5)


def answers(toy_model, spacing: int) -> list[torch.Tensor]:
    """What follows the first digit of an answer, with few and with many words between the numbers. Digits see no words,
    and the text begins with a digit, so only distances can tell the texts apart."""
    parts: dict = {"coupled": {"words": "none"}, "walk": {"heads": 3, "layers": (0, 1)}}
    if spacing:
        parts["even_spacing"] = {"distance": spacing}
    swap = Swap.model_validate({"parts": parts, "format": AS_WRITTEN})
    model, tokenizer = swaps.load(ModelConfig(name=str(toy_model), dtype="float32", device="cpu"), swap)
    texts = ["581 + 417 = 0", "581 birds came in spring, and long after that, in autumn, 417 more. In all: 0"]
    with torch.inference_mode():
        return [model(tokenizer.encode(text, return_tensors="pt")).logits[0, -1] for text in texts]


def test_a_digit_does_not_depend_on_how_many_words_stand_between_the_numbers(toy_model):
    few, many = answers(toy_model, spacing=3)
    assert torch.allclose(few, many, atol=1e-5)


def test_without_even_spacing_it_does(toy_model):
    few, many = answers(toy_model, spacing=0)
    assert (few - many).abs().max() > 1e-3
