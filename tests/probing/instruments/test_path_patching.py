"""Paths of adders whose circuit is known, and against TransformerLens' own direct paths of models drawn at random."""

import numpy as np
import pytest
import torch
from transformer_lens import patching as stock
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from lab.errors import ModelError
from lab.probing.addition.columns import ColumnPairs
from lab.probing.addition.pairs import carry_only, cross_digit
from lab.probing.answered import Answered
from lab.probing.benchmark.known import END, PAD, WORDS, FieldSums
from lab.probing.bridge import bridge
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments.lenses import logit_lens
from lab.probing.instruments.patching import Patch
from lab.probing.instruments.patching import margins as patched
from lab.probing.instruments.path_patching import Receiver, margins, patch_paths, receivers
from tests.probing.known_adders import ADDERS, BY_HAND, EQUAL, random_model

HEADS = [Component("head", 0, head) for head in range(5)]
CARRY_MLP, SUM_MLP = Component("mlp", 0), Component("mlp", 1)


@pytest.fixture(scope="module", params=ADDERS)
def adder(request):
    return ADDERS[request.param]()


def test_the_circuit_of_the_adder_is_found_edge_by_edge_and_no_other_edge(adder):
    into = receivers(adder)
    paths = patch_paths(adder, BY_HAND, [*HEADS, CARRY_MLP, SUM_MLP], into)
    edges = {("L0H2", "L0 mlp"): [1, 0], ("L0H3", "L0 mlp"): [1, 0]}
    edges |= {("L0 mlp", "L1 mlp"): [1, 1], ("L1 mlp", "logits"): [1, 1]}
    for sender in paths.effect.axes["sender"]:
        for receiver in paths.effect.axes["receiver"]:
            found = paths.effect.at(sender=sender, receiver=receiver)
            if not found.n.any():  # the receiver comes before the sender
                continue
            np.testing.assert_allclose(found.value, edges.get((sender, receiver), [0, 0]), **EQUAL)
    there = ~np.isnan(paths.effect.value[0])
    assert there[0].sum() == sum(receiver.layer == 1 for receiver in into) + 1
    assert there[-1].sum() == 1


def test_controls_are_other_heads_of_the_same_layer_and_are_not_senders_where_that_can_be(adder):
    pairs = carry_only(3, 1, 6, seed=0)
    senders = [*HEADS[2:4], SUM_MLP]  # neither of the two heads may be the control of the other
    paths = patch_paths(adder, pairs, senders, [Receiver("mlp", 0), Receiver("mlp", 1), Receiver("logits", 1)])
    stand_ins = paths.control.axes["sender"]
    assert set(stand_ins[:2]) <= {"L0H0", "L0H1", "L0H4"}
    assert stand_ins[2].startswith("L1H")
    assert paths.effect.at(sender="L0H3", receiver="L0 mlp").value[0] > 0.7
    np.testing.assert_allclose(paths.control.value[~np.isnan(paths.control.value)], 0, **EQUAL)


def test_senders_without_another_head_in_their_layer_have_no_control(adder):
    every = [Component("head", 0, head) for head in range(adder.heads)]
    with pytest.raises(ModelError, match=r"in the layers of L0H0, .*, no head outside the circuit"):
        patch_paths(adder, BY_HAND, every, [Receiver("mlp", 1)])


def test_the_write_of_a_head_goes_nowhere_but_into_the_receiver(adder):
    # replacing the carry's MLP itself moves the answer; its path into the logits does not
    paths = patch_paths(adder, BY_HAND, [CARRY_MLP], [Receiver("logits", 1), Receiver("mlp", 1)])
    np.testing.assert_allclose(paths.effect.value[:, 0], [[0, 1], [0, 1]], **EQUAL)


@pytest.mark.slow
@pytest.mark.parametrize(("key_value_heads", "inputs"), [(4, "qkv"), (2, "q")])
def test_margins_are_those_of_the_stock_direct_paths(key_value_heads, inputs):
    subject = random_model(key_value_heads)
    answered = Answered(subject, cross_digit(3, 2, 1, seed=0))
    query = int(answered.contrast.base.query_at_BK[0, answered.contrast.column])

    def metric(logits_1TV: torch.Tensor) -> torch.Tensor:
        return (
            logits_1TV[0, query, answered.contrast.source_id_BQ[:, 0][0]]
            - logits_1TV[0, query, answered.contrast.base_id_BQ[:, 0][0]]
        )

    base_1T, source_1T = answered.contrast.base.tokens_BT[:1], answered.contrast.source.tokens_BT[:1]
    with torch.inference_mode():
        _, of_source = subject.bridge.run_with_cache(source_1T)
        _, of_base = subject.bridge.run_with_cache(base_1T)
        for name in inputs:
            expected = stock.get_act_patch_direct_path(
                subject.bridge, base_1T, of_source, of_base, metric, 0, 2, name, verbose=False
            )
            into = [Receiver(name, layer, head) for layer in (1, 2) for head in range(4)]
            found = margins(answered, [Component("head", 0, 2)], into, batch_size=6)
            np.testing.assert_allclose(found[0, 0], expected[1:].flatten(), atol=1e-4)
            assert np.ptp(found[0, 0]) > 0.01


def test_if_only_the_logits_come_after_patching_the_path_is_patching_the_component():
    subject = random_model(2)
    answered = Answered(subject, carry_only(3, 1, 3, seed=0))
    last = Component("mlp", 2)
    found = margins(answered, [last], [Receiver("logits", 2)])
    np.testing.assert_allclose(found[:, 0, 0], patched(answered, [Patch((last,), EVERYWHERE)])[:, 0], atol=1e-4)


def test_under_grouped_query_attention_keys_and_values_are_those_of_groups():
    subject = random_model(2)
    names = [str(receiver) for receiver in receivers(subject)]
    assert names[:6] == ["L0H0.q", "L0H1.q", "L0H2.q", "L0H3.q", "L0H0-1.k", "L0H2-3.k"]
    with pytest.raises(ModelError, match=r"^random has no receiver L1H2\.v: .* 4 query heads and 2 key-value heads"):
        patch_paths(subject, carry_only(3, 1, 1, seed=0), [HEADS[0]], [Receiver("v", 1, 2)])
    answered = Answered(subject, carry_only(3, 1, 3, seed=0))
    into = [Receiver(name, 1, head) for name in ("k", "v") for head in (0, 1)]
    found = margins(answered, [Component("head", 0, 1)], into)
    assert (np.abs(found[:, 0] - answered.corrupt_B[:, None]).max(0) > 1e-4).all()


def test_paths_into_mlps_beside_the_heads_of_their_layer_are_refused():
    """A change of the stream between heads and MLP would not reach the MLP of a parallel block, so every path into it
    would measure as 0."""
    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        use_parallel_residual=True, max_position_embeddings=64, architectures=["GPTNeoXForCausalLM"],
        attn_implementation="eager", pad_token_id=PAD, eos_token_id=END,  # type: ignore[call-arg]
    )  # fmt: skip
    subject = bridge("parallel", GPTNeoXForCausalLM(config).eval(), FieldSums())
    with pytest.raises(ModelError, match=r"^parallel: its MLPs read the same stream as the heads of their layer"):
        patch_paths(subject, carry_only(4, 1, 2, seed=0), [Component("head", 0, 0)], [Receiver("mlp", 1)])
    # what reads the stream alone does without the site between them
    assert subject.sites == ("pre", "post")
    found = logit_lens(subject, ColumnPairs(subject.sums([(1234, 4321)] * 2))).accuracy
    assert found.axes["site"] == ["pre", "post"]


def test_senders_that_send_nothing_of_their_own_are_refused(adder):
    with pytest.raises(ModelError, match=r"^L0 post sends nothing of its own"):
        patch_paths(adder, BY_HAND, [Component("post", 0)], receivers(adder))
    with pytest.raises(ModelError, match="has no L0H7"):
        patch_paths(adder, BY_HAND, [Component("head", 0, 7)], receivers(adder))
