"""A tiny random Llama with one token for each character, its second reading, and readers that always find the same."""

from collections.abc import Callable

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from lab.second_reading.adapted import SecondReading
from lab.second_reading.model import TwoReadings
from lab.second_reading.reader import ASKED, ROLES, Reader


class Characters:
    """A tokenizer with one token for each character."""

    bos_token_id, eos_token_id, chat_template = 1, 0, None

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return [ord(letter) for letter in text]

    def decode(self, tokens: list[int], skip_special_tokens: bool = False) -> str:
        return "".join(chr(token) for token in tokens if token or not skip_special_tokens)

    def convert_ids_to_tokens(self, tokens: range) -> list[str]:
        return [chr(token) for token in tokens]

    def __len__(self) -> int:
        return 128


@pytest.fixture
def llama() -> LlamaForCausalLM:
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
    return LlamaForCausalLM(config).eval()


@pytest.fixture
def second(llama: LlamaForCausalLM) -> SecondReading:
    reading = SecondReading(llama, Characters(), rank=4, walkers=2, walking=range(14, 17))
    for part in reading.parameters():  # as if it had been trained
        part.data.normal_(0, 0.2)
    return reading.eval()


@pytest.fixture
def finds() -> Callable[[str, str], Reader]:
    """Makes a reader that finds the same in every text: what is asked, and the role of each number."""

    def reader_of(asked: str, role: str) -> Reader:
        reader = Reader(24, size=16, depth=1)
        for head, best in ((reader.asked, ASKED.index(asked)), (reader.roles, ROLES.index(role)), (reader.joins, 0)):
            head.weight.data.zero_()
            head.bias.data.fill_(-5)
            head.bias.data[best] = -5 if head is reader.joins else 5
        return reader

    return reader_of


@pytest.fixture
def model_that_finds(
    llama: LlamaForCausalLM, second: SecondReading, finds: Callable[[str, str], Reader]
) -> Callable[..., TwoReadings]:
    """Makes a model whose reader finds the same in every text."""
    return lambda asked, role, likely=0.0: TwoReadings(
        llama, Characters(), [finds(asked, role)], second, threshold=0.5, likely=likely
    )
