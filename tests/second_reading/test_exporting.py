import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from lab.errors import ModelError
from lab.second_reading import saving
from lab.second_reading.adapted import SecondReading
from lab.second_reading.exporting import export
from lab.second_reading.reader import Reader

TEXTS = ("12 and 30 make", "My name is")
WITHOUT_THE_LAB = """
import json, sys
sys.modules["lab"] = None  # importing it is an error
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, *texts = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True, dtype=torch.float32)
tokenizer = AutoTokenizer.from_pretrained(folder)
for text in texts:
    ids = tokenizer(text, return_tensors="pt")
    print(json.dumps(model.generate(**ids, max_new_tokens=12)[0, ids["input_ids"].shape[1] :].tolist()))
"""


@pytest.fixture
def folder(tmp_path: Path, toy_model: Path, finds: Callable[[str, str], Reader]) -> Path:
    """A model of two readings over a tiny Llama with a tokenizer of bytes."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(toy_model, bos_token="<eos>")
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=17,
        num_attention_heads=6,
        num_key_value_heads=2,
        eos_token_id=0,
        initializer_range=0.3,
    )
    llama = LlamaForCausalLM(config).bfloat16()
    llama.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    second = SecondReading(llama.float().eval(), tokenizer, rank=4, walkers=2, walking=range(14, 17))
    settings = saving.Config(
        base=str(tmp_path / "base"),
        rank=4,
        walkers=2,
        walking=(14, 17),
        reader_width=16,
        reader_depth=1,
        threshold=0.5,
        likely=0.0,
    )
    saving.save(tmp_path / "saved", settings, second, [finds("sum", "plus")])
    return tmp_path / "saved"


@pytest.mark.slow
def test_transformers_alone_writes_what_the_lab_writes_token_for_token(folder: Path, tmp_path: Path) -> None:
    export(str(folder), tmp_path / "exported")
    here, found = saving.load(folder), []
    for text in TEXTS:
        prompt = here.tokenizer.encode(text, add_special_tokens=False)
        found.append(here.continued(prompt, 12, {here.tokenizer.eos_token_id}))
    assert found[0].computed
    command = [sys.executable, "-c", WITHOUT_THE_LAB, str(tmp_path / "exported"), *TEXTS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [one.tokens for one in found]


def test_another_model_is_refused(toy_model: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="to=transformers is for models of two readings"):
        export(str(toy_model), tmp_path / "exported")
