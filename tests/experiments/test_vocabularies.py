import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.shared.vocabularies import llama_3_vocabulary
from lab.errors import ModelError
from lab.models import sources
from lab.text.digit_groups import groups


@pytest.fixture(scope="module")
def llama():
    return llama_3_vocabulary()


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index that has another wheel under the right name; the cache is empty."""

    def download(command, **kwargs):
        folder = Path(command[command.index("--dest") + 1])
        (folder / "llama_models-0.3.0-py3-none-any.whl").write_bytes(b"not the wheel")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(sources.subprocess, "run", download)
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_every_entry_is_there(llama):
    assert len(llama) == 128_256
    assert sorted(llama.get_vocab().values()) == list(range(128_256))
    assert (llama.bos_token, llama.bos_token_id) == ("<|begin_of_text|>", 128_000)
    assert (llama.eos_token, llama.eos_token_id) == ("<|end_of_text|>", 128_001)
    # llama_models/llama3/tests/api/test_tokenizer.py, test_encode_dialog
    turn = ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    assert llama.convert_tokens_to_ids(turn) == [128_006, 128_007, 128_009]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        # llama_models/llama3/tests/api/test_tokenizer.py, test_encode and test_encode_dialog
        ("This is a test sentence.", [2028, 374, 264, 1296, 11914, 13]),
        ("This is a response.", [2028, 374, 264, 2077, 13]),
        ("assistant", [78191]),
        ("\n\n", [271]),
        # Meta-Llama-3-8B on the hub
        ("Hello world", [9906, 1917]),
    ],
)
def test_ids_are_those_of_the_published_tokenizer(llama, text, ids):
    assert llama.encode(text, add_special_tokens=False) == ids


@pytest.mark.parametrize(
    ("text", "pieces"),
    [  # what the published pattern's \p{N}{1,3} and \s+ say
        ("1234567", ["123", "456", "7"]),
        (" 123", [" ", "123"]),
        ("12 + 3456 = 3468", ["12", " +", " ", "345", "6", " =", " ", "346", "8"]),
        ("0.12345", ["0", ".", "123", "45"]),
        ("1.5e10", ["1", ".", "5", "e", "10"]),
        ("1/1234", ["1", "/", "123", "4"]),
        ("x2", ["x", "2"]),
    ],
)
def test_numbers_are_cut_where_the_published_pattern_cuts_them(llama, text, pieces):
    assert [llama.decode([i]) for i in llama.encode(text, add_special_tokens=False)] == pieces


@given(digits=st.text("0123456789", min_size=1))
def test_digits_go_three_to_a_token_from_the_left(llama, digits):
    pieces = [digits[i : i + 3] for i in range(0, len(digits), 3)]
    assert llama.tokenize(digits) == pieces


@given(st.from_regex("[0-9]{1,24}", fullmatch=True))
def test_digits_cut_as_a_model_from_scratch_cuts_them_are_tokens_of_a_pretrained_one_too(llama, digits):
    for kind, alignment in (("aligned", "right"), ("aligned", "left"), ("left", "right")):
        cut = groups(digits, kind, 3, alignment)
        ids = llama.convert_tokens_to_ids(cut)
        assert None not in ids
        assert llama.decode(ids) == digits
    assert llama.tokenize(digits) == groups(digits, "left", 3, "right")
    assert llama.convert_tokens_to_ids(groups("1234567", "aligned", 3, "right")) == llama.convert_tokens_to_ids(
        ["1", "234", "567"]
    )


@given(text=st.text(st.characters(codec="utf-8")))
def test_text_comes_back_as_it_was(llama, text):
    assert llama.decode(llama.encode(text, add_special_tokens=False)) == text


def test_the_beginning_of_text_comes_first_where_special_tokens_are_added(llama):
    assert dict(llama("Hello world")) == {"input_ids": [128_000, 9906, 1917], "attention_mask": [1, 1, 1]}
    assert llama.decode(llama("Hello world").input_ids, skip_special_tokens=True) == "Hello world"


def test_a_wheel_with_another_sha256_is_refused_and_nothing_is_left(index):
    with pytest.raises(ModelError, match=r"sha256 is [0-9a-f]{64}, expected 7f77f78f") as caught:
        llama_3_vocabulary()
    assert "\n" not in str(caught.value)
    assert list(index.iterdir()) == []


def test_an_index_without_the_wheel_is_named_in_one_line(index, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "noise\nERROR: No matching distribution found")
    monkeypatch.setattr(sources.subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(ModelError, match=r"^llama-models==0.3.0 cannot be downloaded.*No matching distribution found$"):
        llama_3_vocabulary()
    assert list(index.iterdir()) == []


def test_a_damaged_copy_is_one_line_that_says_what_to_remove(index):
    kept = index / "llama-3"
    kept.mkdir()
    (kept / "tokenizer_config.json").write_text("{}")
    (kept / "tokenizer.json").write_text('{"version"')
    with pytest.raises(
        ModelError, match=rf"cannot be loaded.*remove {re.escape(str(kept))} to fetch it again$"
    ) as caught:
        llama_3_vocabulary()
    assert "\n" not in str(caught.value)
