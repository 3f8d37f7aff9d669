"""What a dry run says of a fine-tuning job, against what is counted and measured on real models."""

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from lab.config.finetuning import FinetuneConfig, LoraConfig
from lab.finetune import main
from lab.models.adapters import attach
from lab.models.free_memory import kept_by
from lab.tune.planning import PUBLISHED, Shape, count_tokens, memory, plan, shape_of

SMALL = LlamaConfig(
    vocab_size=512,
    hidden_size=128,
    intermediate_size=384,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
)
SHAPE = Shape(3, 128, 384, 4, 2, 32, 512, tied=False)
CONFIG = FinetuneConfig.model_validate({"name": "x", "model": {"name": "small"}, "adapter": {"rank": 8}})


def test_published_shapes_have_as_many_parameters_as_their_model_cards_say():
    found = {name.partition("/")[2]: Shape(*numbers).parameters for name, numbers in PUBLISHED.items()}
    assert found["Llama-3.1-8B"] == 8_030_261_248
    assert found["Llama-3.2-1B"] == 1_235_814_400
    assert found["SmolLM2-135M"] == 134_515_008


def test_a_model_on_this_machine_is_counted_as_it_is(toy_model):
    shape = shape_of(str(toy_model))
    model = AutoModelForCausalLM.from_pretrained(toy_model)
    assert shape
    assert shape.parameters == sum(weight.numel() for weight in model.parameters())
    tuned = attach(model, LoraConfig(rank=2), 0)
    trained = sum(weight.numel() for weight in tuned.parameters() if weight.requires_grad)
    assert shape.adapters(2, LoraConfig().targets) == trained
    assert shape_of("nobody/knows-it") is None


def test_activations_are_estimated_to_a_third_of_what_is_measured():
    tokens = 200
    torch.manual_seed(0)
    model = attach(LlamaForCausalLM(SMALL), CONFIG.adapter, 0).train()
    ids_RT = torch.randint(0, 512, (1, tokens))
    measured = kept_by(lambda: model(ids_RT, labels=ids_RT, use_cache=False).loss, list(model.parameters()))
    estimated = memory(SHAPE, CONFIG, 4, tokens, tokens).activations
    assert 2 / 3 < estimated / measured < 4 / 3


def test_each_way_to_need_less_memory_needs_less():
    def bytes_of(**changes):
        config = FinetuneConfig.model_validate({**CONFIG.model_dump(), **changes})
        return memory(SHAPE, config, 2, 100, 10)

    plain = bytes_of()
    assert bytes_of(model={"name": "small", "quantization": "nf4"}).weights < plain.weights
    assert bytes_of(training={"optimizer": "adamw_8bit"}).optimizer < plain.optimizer
    assert bytes_of(training={"gradient_checkpointing": True}).activations < plain.activations / 2
    assert bytes_of(adapter={"rank": 16}).adapters == 2 * plain.adapters


def test_tokens_that_problems_share_are_counted_once(toy_model):
    given = {"name": "x", "model": {"name": str(toy_model)}, "data": {"tasks": ["add_integer"]}}
    shared, alone = (
        count_tokens(FinetuneConfig.model_validate({**given, "training": {"micro_batch_size": size}}), str(toy_model))
        for size in (32, 1)
    )
    assert alone.computed == alone.prompt + alone.answer - 1
    assert shared.computed < alone.computed / 2


def test_a_dry_run_says_what_the_job_takes_and_writes_nothing(toy_model, tmp_path, capsys):
    arguments = [
        "smollm2_lora",
        f"model.name={toy_model}",
        f"output={tmp_path}",
        "data.tasks=[add_integer]",
        "--dry-run",
    ]
    with pytest.raises(SystemExit, match="0"):
        main(arguments)
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("# ")]
    for word in ("parameters", "adapters", "optimizer", "activations", "free on cpu", "time, about", "test problems"):
        assert word in "\n".join(said)
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_does_not_fit_is_said_not_to_fit_and_what_helps(toy_model, monkeypatch):
    monkeypatch.setattr("lab.models.free_memory.free_memory", lambda device: 1e3)
    given = {"name": "x", "model": {"name": str(toy_model)}, "evaluation": {"problems_per_range": 1}}
    assert "DOES NOT FIT: model.quantization=nf4 or" in plan(FinetuneConfig.model_validate(given), 448)
