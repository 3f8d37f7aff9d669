"""The tokenizer of Llama-3 without the model's weights. No model hub is needed.

The wheel llama-models (Meta, Llama 3 Community License) contains it as a 2 MB file of byte-pair ranks. The wheel is
downloaded once and checked, like that of the embedded model, and converted to a Hugging Face tokenizer.
"""

import base64
from pathlib import Path

from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import TikTokenConverter
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.errors import ModelError, in_one_line
from lab.models.sources import Embedded, cached

NAME = "llama-3"
WHEEL = Embedded(
    requirement="llama-models==0.3.0",
    wheel_sha256="7f77f78ff13fca09f70d76a376aff6414cd901623fb9d57e69c2f8367a73032f",
    member="llama_models/llama3/tokenizer.model",
)

# Both as in the wheel's llama3/tokenizer.py. Hub models have other names for some tokens that no text uses.
_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPECIAL = [
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|reserved_special_token_0|>",
    "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>",
    "<|step_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
    "<|image|>",
    *(f"<|reserved_special_token_{i}|>" for i in range(2, 246)),
]


def llama_3_vocabulary() -> PreTrainedTokenizerBase:
    """The tokenizer, with 128,256 entries; downloads the package that contains it if it is not in the cache.

    Digits are grouped by three from the left, and a space before a number is a separate token. If special tokens are
    added, `<|begin_of_text|>` comes first; there is no padding token.

    Raises ModelError, in one line, if the wheel cannot be downloaded or is not the expected one (then nothing is left
    behind), or if the cached tokenizer is damaged.
    """
    folder = cached(NAME, WHEEL, _convert_llama_3)
    try:
        return PreTrainedTokenizerFast.from_pretrained(folder)
    except Exception as error:  # tokenizers raises plain Exception
        raise ModelError(
            f"vocabulary {NAME!r} cannot be loaded ({type(error).__name__}: {in_one_line(error)}); "
            f"remove {folder} to fetch it again"
        ) from error


class _RanksConverter(TikTokenConverter):
    @staticmethod
    def load_tiktoken_bpe(tiktoken_url: str) -> dict[bytes, int]:
        """Reads lines of a token in base64 and its rank. tiktoken's own reader leaves a copy in the temp folder."""
        pairs = map(str.split, Path(tiktoken_url).read_text().splitlines())
        return {base64.b64decode(token): int(rank) for token, rank in pairs}


def _convert_llama_3(ranks: Path, target: Path) -> None:
    converter = _RanksConverter(vocab_file=str(ranks), pattern=_PATTERN, extra_special_tokens=_SPECIAL)
    tokenizer: Tokenizer = converter.converted()
    begin, end, *_ = _SPECIAL
    opening = processors.TemplateProcessing(
        single=f"{begin} $A", pair=f"{begin} $A {begin}:1 $B:1", special_tokens=[(begin, tokenizer.token_to_id(begin))]
    )
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), opening])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=begin,
        eos_token=end,
        model_input_names=["input_ids", "attention_mask"],  # Llama's forward takes no token types
    ).save_pretrained(target)
