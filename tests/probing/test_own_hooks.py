"""The hook points of the lab's own Llamas: they are TransformerLens' where it computes a model, and there where it does
not."""

import pytest
import torch
from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

from lab.probing.interventions import pattern
from lab.probing.live_patterns import make_live
from lab.probing.own_hooks import OwnBridge
from tests.scratch.test_llama import encode, tiny

TOKENS = torch.tensor([encode("<begin> 5 2 <add_integer> 7 = 9 5"), encode("<begin> 8 1 <add_integer> 3 = 1 2")])
BEYOND = [("relative window sticks", "coupled"), ("rope clipped", "coupled"), ("relative downward", "counted"),
          ("fire", "plain"), ("alibi", "plain"), ("learned", "coupled")]  # fmt: skip
POINTS = ["hook_resid_pre", "hook_resid_post", "hook_resid_mid", "hook_attn_out", "hook_mlp_out", "mlp.hook_post",
          *(f"attn.hook_{name}" for name in ("q", "k", "v", "pattern", "z"))]  # fmt: skip


@torch.inference_mode()
def test_every_hook_point_holds_what_that_of_transformer_lens_holds_and_a_change_there_has_the_same_effect():
    ours = OwnBridge(tiny("rope").eval())
    model = tiny("rope").eval()
    theirs = build_bridge_from_module(model, architecture="LlamaForCausalLM", hf_config=model.config, tokenizer=None)
    make_live(model, [block.attn for block in theirs.blocks])
    for layer in range(ours.cfg.n_layers):
        for name in (f"blocks.{layer}.{point}" for point in POINTS):
            kept: list[torch.Tensor] = []

            def double(activation: torch.Tensor, hook: object, kept=kept) -> torch.Tensor:
                kept.append(activation.clone())
                return 2 * activation

            logits = [one.run_with_hooks(TOKENS, fwd_hooks=[(name, double)]) for one in (ours, theirs)]
            assert len(kept) == 2, name
            torch.testing.assert_close(*kept, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(*logits, atol=1e-4, rtol=1e-4)
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        torch.testing.assert_close(getattr(ours.blocks[0].attn, name), getattr(theirs.blocks[0].attn, name))
    torch.testing.assert_close(ours.W_U, theirs.W_U)


@pytest.mark.parametrize(("encoding", "ids"), BEYOND)
@torch.inference_mode()
def test_heads_that_transformer_lens_does_not_know_open_with_the_models_own_logits_and_patterns_that_count(
    encoding, ids
):
    expected = tiny(encoding, ids).eval()(TOKENS).logits
    opened = OwnBridge(tiny(encoding, ids).eval())
    logits, kept = opened.run_with_cache(TOKENS)
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)
    assert set(kept) == {point.name for point in opened.hook_dict.values()}
    seen = opened.run_with_hooks(TOKENS, [pattern(0, torch.zeros_like)])
    assert not torch.allclose(seen, expected, atol=1e-3)
    z: list[torch.Tensor] = []
    keep = ("blocks.0.attn.hook_z", lambda activation, hook: z.append(activation))
    opened.run_with_hooks(TOKENS, [pattern(0, torch.zeros_like), keep])
    assert z[0].abs().max() == 0
    torch.testing.assert_close(opened.run_with_hooks(TOKENS, []), logits)


def test_hooks_are_gone_after_a_run_that_fails():
    opened = OwnBridge(tiny("rope").eval())

    def fail(activation: torch.Tensor, hook: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        opened.run_with_hooks(TOKENS, [("blocks.0.hook_mlp_out", fail)])
    assert not any(point.changes for point in opened.hook_dict.values())
