"""Lenses against adders whose last MLP is known to write the digit, and nothing else to."""

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

from lab.errors import ModelError
from lab.probing import bridge
from lab.probing.addition.columns import ColumnPairs
from lab.probing.benchmark.known import FieldSums, KnownAdder
from lab.probing.instruments.lenses import direct_attribution, logit_lens
from tests.probing.known_adders import llama_adder, native_adder

NUMBERS = [(int(a), int(b)) for a, b in np.random.default_rng(0).integers(100, 1000, (60, 2))]


@pytest.fixture(scope="module", params=[native_adder, llama_adder, lambda: llama_adder(key_value_heads=1)])
def adder(request: pytest.FixtureRequest) -> KnownAdder:
    return request.param()


def test_the_digit_appears_where_the_last_mlp_writes_it(adder: KnownAdder):
    found = logit_lens(adder, ColumnPairs(adder.sums(NUMBERS)), batch_size=25)
    for layer, site in ((0, "mid"), (0, "post"), (1, "mid")):
        assert (found.accuracy.at(layer=layer, site=site, answer="right").value[:3] < 0.35).all()
    end = {name: getattr(found, name).at(layer=1, site="post") for name in found._fields}
    assert (end["accuracy"].at(answer="right").value == 1).all()
    assert (end["rank"].at(answer="right").value == 0).all()
    assert (end["accuracy"].at(answer="of the source").value[:3] < 0.35).all()
    assert (end["probability"].at(answer="right").value > 0.5).all()
    # all sums have three digits, and those from 1000 on have a fourth
    assert end["accuracy"].at(answer="right").n.tolist() == [60] * 3 + [sum(a + b >= 1000 for a, b in NUMBERS)]


def test_the_lens_at_the_end_is_the_model_itself(adder: KnownAdder):
    sums = adder.sums(NUMBERS[:10])
    found = logit_lens(adder, ColumnPairs(sums)).probability.at(layer=1, site="post", answer="right")
    with torch.inference_mode():
        chosen_BT = adder.logits(sums).log_softmax(-1).exp().gather(2, sums.tokens_BT.roll(-1, 1)[:, :, None])[..., 0]
    probability_BK = chosen_BT.gather(1, sums.query_at_BK.clamp(min=0))
    np.testing.assert_allclose(found.value[:3], probability_BK.mean(0)[:3], rtol=1e-4)


def test_all_of_the_right_digit_is_from_the_last_mlp_and_the_heads_write_none(adder: KnownAdder):
    found = direct_attribution(adder, ColumnPairs(adder.sums(NUMBERS)), batch_size=25)
    assert found.axes["component"][:2] == ["embedding", "L0H0"]
    right = found.at(answer="right").value - found.at(answer="of the source").value
    share = dict(zip(found.axes["component"], right[:, :3], strict=True))
    assert (share["L1 MLP"] > 5).all()
    for name in ("L0H0", "L0H4", "L0 MLP", "L1H2", "bias"):
        assert np.abs(share[name]).max() < 0.1


def test_a_digits_attribution_is_worked_out_by_hand():
    # 12 + 34 = 46: the last MLP writes the digit 6, which the unembedding multiplies by 2 d for the logit of digit d.
    # So 6 gets 72, and the other nine digits get 12 * 39 / 9 = 52 on average
    adder = native_adder()
    found = direct_attribution(adder, ColumnPairs(adder.sums([(12, 34)]))).at(column=0, answer="right")
    assert found.at(component="L1 MLP").value == pytest.approx(20, abs=0.01)
    # the constant: -36 for 6, and for the others -(285 - 36) / 9
    assert found.at(component="embedding").value == pytest.approx(-36 + 249 / 9, abs=0.01)


def test_components_sum_to_the_logits_of_any_model_and_those_of_unmerged_adapters_are_refused():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=15, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, initializer_range=0.2, architectures=["LlamaForCausalLM"],
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    subject = bridge.bridge("drawn", model, FieldSums())
    sums = subject.sums(NUMBERS[:8])
    found = direct_attribution(subject, ColumnPairs(sums)).at(answer="right")
    with torch.inference_mode():
        logits_BTV = subject.logits(sums)
    logits_BV = logits_BTV[torch.arange(8), sums.query_at_BK[:, 1]]
    digits_BC, right_B1 = logits_BV[:, :10], torch.from_numpy(sums.columns.sum[:, 1:2])
    expected_B1 = (10 * digits_BC.gather(1, right_B1) - digits_BC.sum(1, keepdim=True)) / 9
    assert found.at(column=1).value.sum() == pytest.approx(float(expected_B1.mean()), abs=1e-3)

    tuned = get_peft_model(LlamaForCausalLM(config).eval(), LoraConfig(r=4, target_modules=["o_proj"]))
    for name, weight in tuned.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight)
    with pytest.raises(ModelError, match=r"^tuned: what its components write sums to logits that are off by .* merged"):
        direct_attribution(bridge.bridge("tuned", tuned, FieldSums()), ColumnPairs(sums))  # type: ignore[arg-type]
