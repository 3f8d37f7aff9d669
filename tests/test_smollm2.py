"""The embedded model itself: fetched, loaded, tuned and scored, as the README's commands do it."""

from pathlib import Path

import pytest
import torch

from lab.config.schema import ModelConfig
from lab.finetune import main
from lab.models import pretrained
from lab.text.examples import encode_prompt
from tests.records import records

ROOT = Path(__file__).parents[1]
SMALL = [
    "adapter.rank=8",
    "data.tasks=[max_integer, add_fraction]",
    "data.lengths={hard: [1, 3], easy: [1, 6]}",
    "training.batch_size=8",
    "training.micro_batch_size=4",
    "training.log_every=1",
    "training.valid_problems=4",
    "evaluation.lengths={hard: [1, 3], easy: [5, 6]}",
    "evaluation.problems_per_range=1",
]


@pytest.fixture(scope="module")
def loaded():
    return pretrained.load(ModelConfig(name="smollm2-135m-instruct"))


@pytest.mark.slow
def test_the_embedded_model_has_a_token_for_each_digit_and_knows_its_english(loaded):
    model, tokenizer = loaded
    assert [tokenizer.decode([i]) for i in encode_prompt("= 1287", tokenizer)][-4:] == ["1", "2", "8", "7"]
    ids = tokenizer("The capital of France is", return_tensors="pt").to(model.device)
    with torch.inference_mode():
        assert tokenizer.decode(model(**ids).logits[0, -1].argmax()) == " Paris"


@pytest.mark.slow
def test_the_papers_config_runs_on_the_embedded_model(tmp_path):
    arguments = ["model.name=smollm2-135m-instruct", "training.max_steps=2", "training.evaluate_every=2", *SMALL]
    main([str(ROOT / "configs" / "llama_lora.yaml"), *arguments, f"output={tmp_path}"])
    losses = records(tmp_path / "llama_lora" / "metrics.jsonl")
    assert [row["step"] for row in losses if "loss" in row] == [1, 2]
    assert (tmp_path / "llama_lora" / "summary.json").exists()


@pytest.mark.slow
def test_a_quantized_model_learns_with_an_eight_bit_optimizer(tmp_path):
    arguments = [
        "training.max_steps=4",
        "training.learning_rate=2e-3",
        "training.warmup_steps=1",
        "training.evaluate_every=4",
        "training.micro_batch_size=8",  # weights are unpacked once for each
        f"output={tmp_path}",
    ]
    main([str(ROOT / "configs" / "smollm2_qlora.yaml"), *SMALL, *arguments, "data.tasks=[max_integer]"])
    losses = [row["loss"] for row in records(tmp_path / "smollm2_qlora" / "metrics.jsonl") if "loss" in row]
    assert losses[-1] < 0.8 * losses[0]
