import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn

from lab.trees.fused_lora import LoraProduct, fuse, round_adapters


class Two(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 5, bias=False), nn.Linear(5, 3, bias=True)
        self.to(dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def adapted(dtype: torch.dtype, dropout: float = 0.0):
    torch.manual_seed(1)
    model = get_peft_model(Two(dtype), LoraConfig(r=2, lora_alpha=6, lora_dropout=dropout, target_modules=["first"]))  # type: ignore[arg-type]
    nn.init.normal_(model.base_model.model.first.lora_B["default"].weight)
    return model


def test_the_product_has_the_value_and_the_gradients_of_its_formula():
    torch.manual_seed(0)
    shapes = ((4, 6), (5, 6), (2, 6), (5, 2))
    x, weight, down, up = (torch.randn(shape, requires_grad=True) for shape in shapes)
    found = LoraProduct.apply(x, weight.detach(), down, up, 3.0)
    expected = x @ weight.detach().T + 3.0 * (x @ down.T) @ up.T
    torch.testing.assert_close(found, expected)
    probe = torch.randn_like(expected)
    gradients = [
        torch.autograd.grad((value * probe).sum(), (x, down, up), retain_graph=True) for value in (found, expected)
    ]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_a_fused_model_computes_what_peft_computes_up_to_rounding():
    model, x = adapted(torch.bfloat16), torch.randn(2, 4, 6).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        expected = model(x)
        fuse(model)
        found = model(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, atol=0.05, rtol=0.05)


def test_a_fused_model_without_its_adapters_is_the_base_model():
    model, x = adapted(torch.bfloat16), torch.randn(4, 6).bfloat16()
    fuse(model)
    with model.disable_adapter():
        assert torch.equal(model(x), Two.forward(model.base_model.model, x))
        bare = model.base_model.model.first.base_layer(x)
    assert not torch.equal(model.base_model.model.first(x), bare)


def test_without_gradients_the_base_layer_is_asked_itself_because_its_weights_may_be_packed():
    model, x = adapted(torch.bfloat16), torch.randn(2, 4, 6).bfloat16()
    fuse(model)
    base = model.base_model.model.first.base_layer
    with torch.no_grad():
        whole = model.base_model.model.first(x)
        base.forward = lambda x: torch.zeros(len(x), 5, dtype=x.dtype)
        adapters_alone = model.base_model.model.first(x)
        del base.forward
        torch.testing.assert_close(adapters_alone + base(x), whole, atol=0.05, rtol=0.05)
    torch.testing.assert_close(model.base_model.model.first(x), whole)


def test_rounding_the_adapters_once_changes_no_result():
    model, x = adapted(torch.bfloat16), torch.randn(4, 6).bfloat16()
    fuse(model)
    before = model(x)
    round_adapters(model)
    assert torch.equal(model(x), before)


@pytest.mark.parametrize(("dtype", "dropout"), [(torch.float32, 0.0), (torch.bfloat16, 0.5)])
def test_layers_in_float32_or_with_dropout_stay_as_they_are(dtype, dropout):
    model = adapted(dtype, dropout)
    fuse(model)
    assert "forward" not in vars(model.base_model.model.first)
