"""A Hugging Face tokenizer for the words of a notation, so that a model from scratch is saved as any model is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab.text.notation import BEGIN, END, PAD

if TYPE_CHECKING:  # transformers takes seconds to import
    from transformers import PreTrainedTokenizerFast


def build_tokenizer(vocabulary: Sequence[str]) -> "PreTrainedTokenizerFast":
    """One id a word, in the order of `vocabulary`, which is a notation's; in texts, spaces stand between words.

    <begin> comes first where special tokens are added; only <pad>, <begin> and <end> are left out where special tokens
    are skipped. There is no token for unknown words: a text with one raises (tokenizers' plain Exception, which says
    that [UNK] is missing), since a number of which a digit got lost would still look like a number.
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
        clean_up_tokenization_spaces=False,  # it would draw "." to the word before it
        model_input_names=["input_ids", "attention_mask"],  # Llama's forward takes no token types
    )
