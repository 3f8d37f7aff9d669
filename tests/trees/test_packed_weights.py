import pytest
import torch
from torch import nn

from lab.trees import packed_weights as packing
from lab.trees.packed_weights import packed_weights

CAN_PACK = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def two_layers(dtype: torch.dtype) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(24, 40), nn.Linear(40, 8, bias=False)).to(dtype)


def packed(model: nn.Sequential) -> list[bool]:
    return ["forward" in vars(layer) for layer in model]


@pytest.mark.skipif(not CAN_PACK, reason="this processor does not multiply in bfloat16")
@pytest.mark.parametrize("shape", [(24,), (1, 24), (3, 5, 24), (200, 24)])
def test_packed_weights_give_the_same_outputs_up_to_rounding(shape):
    model, x = two_layers(torch.bfloat16), torch.randn(shape).bfloat16()
    with torch.inference_mode():
        expected = model(x)
        with packed_weights(model):
            assert packed(model) == [True, True]
            found = model(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0.02)


def test_afterwards_a_model_uses_its_own_weights_again():
    model, x = two_layers(torch.bfloat16), torch.randn(3, 24).bfloat16()
    with pytest.raises(ZeroDivisionError), packed_weights(model):
        raise ZeroDivisionError
    assert packed(model) == [False, False]
    nn.init.zeros_(model[1].weight)
    assert not model(x).any()


def test_within_a_context_of_the_same_model_nothing_is_packed_again():
    model = two_layers(torch.bfloat16)
    with packed_weights(model):
        before = packed(model)
        with packed_weights(model):
            pass
        assert packed(model) == before


def test_models_in_float32_and_models_too_large_for_a_copy_stay_as_they_are(monkeypatch):
    with packed_weights(model := two_layers(torch.float32)):
        assert packed(model) == [False, False]
    monkeypatch.setattr(packing, "_MOST_BYTES", 100)
    with packed_weights(model := two_layers(torch.bfloat16)):
        assert packed(model) == [False, False]
