"""Any causal model of Hugging Face opens by its name, whatever its architecture, with the lines of the guide."""

import re
from pathlib import Path

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from lab.errors import ModelError
from lab.probing.bridge import Subject

ROOT = Path(__file__).parents[2]
LLAMA = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
SMALL = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "gpt_neox": LLAMA,
    "qwen2": LLAMA | {"num_key_value_heads": 2},
    "mistral": LLAMA | {"num_key_value_heads": 2},
    "phi": LLAMA,
}


def tokenizer(*longer: str) -> PreTrainedTokenizerFast:
    words = ["<unk>", "<end>", *"0123456789+= ", *longer]
    made = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    pattern = r"\d+" if longer else "."
    made.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", unk_token="<unk>")


def saved(kind: str, folder: Path, words: PreTrainedTokenizerFast) -> str:
    torch.manual_seed(0)
    room = 16  # tokenizers of some architectures add words of their own
    config = AutoConfig.for_model(kind, vocab_size=len(words) + room, bos_token_id=1, eos_token_id=1, **SMALL[kind])
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("kind", SMALL)
@torch.inference_mode()
def test_any_architecture_opens_by_name_with_the_models_own_logits(kind, tmp_path):
    name = saved(kind, tmp_path, tokenizer())
    subject = Subject.from_name(name, "{a}+{b}=")
    sums = subject.sums([(12, 34), (58, 9)])
    expected_BTV = AutoModelForCausalLM.from_pretrained(name).eval()(sums.tokens_BT).logits
    torch.testing.assert_close(subject.logits(sums), expected_BTV, atol=1e-4, rtol=1e-4)
    assert (subject.layers, subject.heads, subject.width) == (2, 4, 32)


def test_a_model_whose_tokens_hold_several_digits_is_refused_in_one_line(tmp_path):
    name = saved("gpt2", tmp_path, tokenizer(*(str(number) for number in range(10, 1000))))
    with pytest.raises(ModelError) as refused:
        Subject.from_name(name, "{a}+{b}=").writer.digit_ids()
    assert "\n" not in str(refused.value)
    assert "several digits in one token" in str(refused.value)


def test_the_five_lines_of_the_guide_run_as_they_stand(tmp_path, capsys):
    guide = (ROOT / "docs" / "guides" / "probe.md").read_text()
    (code,) = re.findall(r"## Any model in five lines.*?```python\n(.*?)```", guide, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) == 5
    name = saved("qwen2", tmp_path, tokenizer())
    exec(code.replace("HuggingFaceTB/SmolLM2-135M", name), {})
    assert "layer" in capsys.readouterr().out
