"""A pretrained model with what a config swaps in it: tokens of digits, positions, the format that it is asked in."""

from pathlib import Path
from typing import Any

import torch
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.finetuning import Swap
from lab.config.schema import ModelConfig
from lab.errors import ModelError
from lab.models import pretrained
from lab.models.swapped import SwappedLlama
from lab.text.digit_tokens import DigitTokens, swap_digits
from lab.text.formats import TextFormat

FILE = "swap.json"
"""Beside adapters: the swap that they were trained with."""


def load(config: ModelConfig, swap: Swap) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """As `pretrained.load`, swapped; new tokens begin as the mean of what they stand for.

    Raises ModelError, also where the model cannot be swapped so.
    """
    if not swap.of_model:
        model, tokenizer = pretrained.load(config)
    else:
        model, tokenizer = pretrained.load(config, swap.positions)
        assert isinstance(model, SwappedLlama)
        tokens = swap_digits(tokenizer, swap.tokenizer.digits, TextFormat(swap.format, []).hints)
        tokenizer = tokens.tokenizer
        if swap.positions.kind == "coupled":
            _begin_texts(tokenizer)
        _make_room(model, tokens)
        words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        model.ordinary = swap.format.reverse == "answer"
        model.know_tokens(words, list(tokens.new), tokens.forbidden)  # type: ignore[arg-type]
    model.swap = swap  # type: ignore[assignment]
    return model, tokenizer


def swap_of(model: Any) -> Swap:
    """What a loaded model, with or without adapters around it, was swapped by."""
    return getattr(model, "swap", Swap())


def recorded(folder: Path) -> Swap:
    """The swap that adapters were trained with; raises ModelError when what is written of it is damaged."""
    try:
        return Swap.model_validate_json((folder / FILE).read_text())
    except FileNotFoundError:
        return Swap()
    except ValueError as error:
        raise ModelError(f"{folder / FILE}: not a swap: {str(error).splitlines()[0]}") from None


def _begin_texts(tokenizer: Any) -> None:
    """Give texts a first token, where the tokenizer gives them none, so that no digit is the first.

    Attention rests on the first token (Xiao et al. 2024), which is left with little of its own. All digits of a number
    that nothing stands before would be such: they see nothing but themselves.
    """
    if not tokenizer.encode(""):
        first = tokenizer.bos_token or tokenizer.eos_token
        known = [(first, tokenizer.convert_tokens_to_ids(first))]
        tokenizer._tokenizer.post_processor = TemplateProcessing(single=f"{first} $A", special_tokens=known)


@torch.no_grad()
def _make_room(model: Any, tokens: DigitTokens) -> None:
    if not tokens.new:
        return
    rows = model.get_input_embeddings().weight.shape[0]
    model.resize_token_embeddings(max(rows, max(tokens.new) + 1), mean_resizing=False)
    tables = {id(layer.weight): layer.weight for layer in (model.get_input_embeddings(), model.get_output_embeddings())}
    for weight_VD in tables.values():
        for token, meant in tokens.new.items():
            weight_VD[token] = weight_VD[meant].float().mean(0).to(weight_VD.dtype)
