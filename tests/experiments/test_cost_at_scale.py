import pytest
from transformers import AutoModelForCausalLM

from experiments.cost_at_scale import SHAPES, Shape
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
