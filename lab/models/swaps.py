"""Loads a pretrained model with what a config swaps: tokens of digits, parts, and the number format."""

from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.finetuning import Swap
from lab.config.schema import ModelConfig
from lab.errors import ModelError
from lab.graft.llama import GraftedLlama
from lab.models import pretrained
from lab.text.digit_tokens import DigitTokens, swap_digits
from lab.text.formats import TextFormat

FILE = "swap.json"
"""The file beside adapters that holds the swap with which they were trained."""


def load(config: ModelConfig, swap: Swap) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Like `pretrained.load`, with the swap. A new token's embedding starts as the mean of the tokens it replaces.

    Raises ModelError like `pretrained.load`, and if the swap does not fit the model.
    """
    if not swap.of_model:
        model, tokenizer = pretrained.load(config)
    else:
        model, tokenizer = pretrained.load(config, swap.parts)
        assert isinstance(model, GraftedLlama)
        tokens = swap_digits(tokenizer, swap.tokenizer.digits, TextFormat(swap.format, []).hints)
        tokenizer = tokens.tokenizer
        if any(part.BEGINS for part in swap.parts.values()):
            _begin_texts(tokenizer)
        _make_room(model, tokens)
        words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        model.know_tokens(words, list(tokens.new), tokens.forbidden, swap.format.reverse)  # type: ignore[arg-type]
    model.swap = swap  # type: ignore[assignment]
    return model, tokenizer


def swap_of(model: Any) -> Swap:
    """The swap of a loaded model, which may be wrapped in adapters."""
    return getattr(model, "swap", Swap())


def caveat(swap: Swap, adds: bool = False) -> str:
    """What a model cannot do because of its parts, in a sentence; "" if there is nothing to say.

    `adds`: whether it was tuned on sums alone.
    """
    return "; ".join(filter(None, (part.caveat(adds) for part in swap.parts.values())))


def recorded(folder: Path) -> Swap:
    """The swap with which the adapters in `folder` were trained. Raises ModelError if its file is damaged."""
    try:
        return Swap.model_validate_json((folder / FILE).read_text())
    except FileNotFoundError:
        return Swap()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
        raise ModelError(f"{folder / FILE}: not a swap: {what}") from None


def _begin_texts(tokenizer: Any) -> None:
    """If the tokenizer adds no first token to texts, make it add one, so that no text begins with a digit.

    The first token attracts much of the attention of later ones (an attention sink, Xiao et al. 2024), and its state
    then holds little else. Without this, all digits of a number at the beginning of a text would be such tokens,
    because they see only themselves.
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
