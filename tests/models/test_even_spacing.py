"""Evenly spaced numbers: their ids by hand, and a model whose sums do not depend on the words between numbers."""

import numpy as np
import torch
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from lab.config.finetuning import LocalityConfig, Swap, TextPositionsConfig, WalkConfig
from lab.config.notation import FormatConfig
from lab.config.schema import ModelConfig
from lab.models import swaps
from lab.models.even_spacing import EvenSpacing, even_ids

AS_WRITTEN = FormatConfig(reverse="none", pad="answer", carry_place=True)


def test_a_word_has_the_id_of_the_number_that_comes_next():
    #                         like 1  2  3  Add 5  7  and  8  =  0
    numbers_K = np.array([0, 0, 1, 1, 1, 0, 2, 2, 0, 0, 3, 0, 4])
    assert even_ids(numbers_K, 3).tolist() == [3, 3, 3, 3, 3, 6, 6, 6, 9, 9, 9, 12, 12]
    assert even_ids(np.zeros(3, dtype=int), 3).tolist() == [3, 3, 3]


def test_products_are_those_of_text_ids_with_words_and_of_even_ids_with_digits():
    rotary = LlamaRotaryEmbedding(LlamaConfig(hidden_size=16, num_attention_heads=1, head_dim=16))
    query, key = torch.randn(2, 1, 1, 4, 16)
    text, even = torch.tensor([[0, 7, 8, 20]]), torch.tensor([[3, 3, 6, 6]])
    is_digit = torch.tensor([[False, True, False, True]])

    def products(ids: torch.Tensor) -> torch.Tensor:
        turned_query, turned_key = apply_rotary_pos_emb(query, key, *rotary(query, position_ids=ids))
        return (turned_query @ turned_key.transpose(-1, -2))[0, 0]

    turns = even - text
    rotated = apply_rotary_pos_emb(query, key, *rotary(query, position_ids=text))
    queries, keys = EvenSpacing.by(rotary, query, turns, turns, is_digit).side_by_side(*rotated)
    found = (queries @ keys.transpose(-1, -2))[0, 0]
    assert torch.allclose(found, torch.where(is_digit, products(even), products(text)), atol=1e-5)


def answers(toy_model, spacing: int) -> list[torch.Tensor]:
    """What follows the first digit of an answer, with few and with many words between the numbers. Digits see no words,
    and the text begins with a digit, so only distances can tell the texts apart."""
    locality = LocalityConfig(words="none", spacing=spacing, walk=WalkConfig(heads=3, layers=(0, 1)))
    swap = Swap(positions=TextPositionsConfig(kind="coupled", locality=locality), format=AS_WRITTEN)
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
