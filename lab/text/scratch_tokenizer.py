"""Builds a Hugging Face tokenizer for the words of a notation, so that models from scratch are saved like any other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab.text.notation import BEGIN, END, PAD

if TYPE_CHECKING:  # transformers takes seconds to import
    from transformers import PreTrainedTokenizerFast


def build_tokenizer(vocabulary: Sequence[str]) -> "PreTrainedTokenizerFast":
    """A tokenizer with one id per word, in the order of `vocabulary`; in texts, words are separated by spaces.

    add_special_tokens puts <begin> first; skip_special_tokens leaves out only <pad>, <begin> and <end>. There is no
    token for unknown words, because a number that lost a digit would still look like a number. A text with an unknown
    word raises an Exception (the plain one of the library tokenizers, which says that [UNK] is missing).
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ids = {word: i for i, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(ids))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{BEGIN} $A", special_tokens=[(BEGIN, ids[BEGIN])])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=BEGIN,
        eos_token=END,
        clean_up_tokenization_spaces=False,  # it would remove the space before "."
        model_input_names=["input_ids", "attention_mask"],  # Llama's forward takes no token types
    )
