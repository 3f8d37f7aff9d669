"""Models from scratch open in TransformerLens, with whatever their attention does with positions."""

import pytest
import torch

from lab.config.earlier import scratch_parts
from lab.config.notation import FormatConfig, TokenizerConfig
from lab.numbers.tasks import TASKS
from lab.text.notation import Notation
from lab.text.scratch_tokenizer import build_tokenizer
from tests.from_scratch import built

NOTATION = Notation(TokenizerConfig(), FormatConfig(), [TASKS["add_integer"]])


@pytest.mark.parametrize(
    ("encoding", "kind"),
    [("rope", "plain"), ("nope", "plain"), ("alibi", "plain"), ("fire", "plain"), ("learned", "coupled")],
)
def test_a_bridge_has_the_models_logits_and_attention_that_sums_to_one(encoding, kind):
    from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

    keys = {"encoding": encoding, "position_kind": kind, "segments": kind == "coupled"}
    model = built(NOTATION.vocabulary, scratch_parts(keys)["parts"])
    ids = torch.tensor([build_tokenizer(NOTATION.vocabulary).encode("1 2 3 <add_integer> 4 5 = 1 6 8")])
    # TransformerLens asks a tokenizer for "a", a word that no notation has
    bridge = build_bridge_from_module(model, architecture="LlamaForCausalLM", hf_config=model.config, tokenizer=None)
    with torch.inference_mode():
        expected = model(ids).logits
        logits, cache = bridge.run_with_cache(ids)
    assert torch.equal(logits, expected)
    for layer in range(2):
        pattern = cache[f"blocks.{layer}.attn.hook_pattern"]
        assert pattern.shape == (1, 4, 11, 11)
        torch.testing.assert_close(pattern.sum(-1), torch.ones(1, 4, 11))
