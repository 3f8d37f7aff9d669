import pytest
from transformers import AutoModelForCausalLM

from benchmarks import cost_at_scale as cost
from benchmarks.cost_at_scale import SHAPES, Shape
from lab.config.finetuning import LoraConfig
from lab.models.adapters import attach


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("SmolLM2-135M", 134_515_008),
        ("SmolLM2-1.7B", 1_711_376_384),
        ("Llama-3.1-8B", 8_030_261_248),
        ("Llama-3.1-70B", 70_553_706_496),
    ],
)
def test_a_shape_has_as_many_parameters_as_its_model_is_published_with(name, parameters):
    assert SHAPES[name].parameters == parameters


def test_what_is_counted_on_paper_is_what_a_model_and_its_adapters_have(toy_model):
    model = AutoModelForCausalLM.from_pretrained(toy_model)
    shape = Shape(2, 32, 64, 4, 2, 8, model.config.vocab_size, tied=False)
    assert shape.parameters == sum(weight.numel() for weight in model.parameters())
    tuned = attach(model, LoraConfig(rank=3), seed=0)
    assert shape.adapters(3) == sum(weight.numel() for weight in tuned.parameters() if weight.requires_grad)


def test_what_a_sample_costs_on_paper_is_what_its_tokens_cost(toy_model):
    from transformers import AutoTokenizer

    from lab.config.finetuning import FinetuneConfig
    from lab.config.loading import load

    config = load(
        FinetuneConfig,
        cost.ROOT / "configs" / "llama_lora.yaml",
        ["training.batch_size=4", "training.micro_batch_size=4"],
    )
    tokenizer = AutoTokenizer.from_pretrained(toy_model)
    alone, together = (cost.count_tokens(tokenizer, config, steps=2, micro_batch=size) for size in (1, 4))
    assert (alone.computed, alone.answers) == (alone.alone, together.answers)
    assert together.answers < together.computed <= together.alone
    shape = cost.Shape(1, 1, 1, 1, 1, 1, vocabulary=10, tied=True)
    expected = 4 * 7 * alone.computed + 6 * 14 * alone.computed + 40 * alone.answers + 14 * alone.pairs
    assert cost.operations(shape, 1, alone) == pytest.approx(expected)
    assert [cost.duration(hours) for hours in (0.5, 2.345, 1234)] == ["30 min", "2.3 h", "1,234 h"]
