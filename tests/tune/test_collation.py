from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM

from lab.config.finetuning import Swap
from lab.config.schema import ModelConfig
from lab.errors import ModelError
from lab.models import swaps
from lab.text.examples import IGNORED, EncodedExample
from lab.trees.losses import tree_loss
from lab.tune.collation import PrefixTreeCollator

TWO = [EncodedExample([1, 2, 7, 3], [9, 0]), EncodedExample([1, 2, 4, 3], [8, 0])]


def test_a_tree_of_two_worked_out_by_hand():
    inputs = PrefixTreeCollator()(TWO)
    assert inputs["input_ids"].tolist() == [[1, 2, 4, 3, 8, 7, 3, 9]]
    assert inputs["position_ids"].tolist() == [[0, 1, 2, 3, 4, 2, 3, 4]]
    assert inputs["shift_labels"].tolist() == [[IGNORED] * 3 + [8, 0] + [IGNORED, 9, 0]]
    assert inputs["attention_mask"][0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0, 1, 0, 0],
        [1, 1, 0, 0, 0, 1, 1, 0],
        [1, 1, 0, 0, 0, 1, 1, 1],
    ]


def test_a_problem_that_comes_twice_counts_twice():
    inputs = PrefixTreeCollator()([TWO[0], TWO[0]])
    assert (inputs["shift_labels"] != IGNORED).sum() == 4


def test_loss_and_gradients_along_paths_are_those_of_one_example_at_a_time(toy_model):
    swap = Swap.model_validate({"parts": {"coupled": {}}, "format": {"reverse": "total"}})
    model, tokenizer = swaps.load(ModelConfig(name=str(toy_model), dtype="float32", device="cpu"), swap)
    torch.nn.init.normal_(model.parts["coupled"].bias)
    texts = [("12 + 345 =", " 753"), ("12 + 9 =", " 12"), ("and 5 + 6 =", " 11"), ("12 + 345 =", " 753")]
    batch = [EncodedExample(tokenizer.encode(a), [*tokenizer.encode(b), 0]) for a, b in texts]
    whole = tree_loss(model, PrefixTreeCollator(model)(batch))
    whole.backward()
    found = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    alone = torch.zeros(())
    for prompt, completion in batch:
        logits = model(torch.tensor([[*prompt, *completion[:-1]]])).logits[0, len(prompt) - 1 :]
        alone = alone + cross_entropy(logits, torch.tensor(completion), reduction="sum")
    alone.backward()
    torch.testing.assert_close(whole, alone)
    for name, weight in model.named_parameters():
        torch.testing.assert_close(found[name], weight.grad, atol=1e-4, rtol=1e-3)


examples = st.lists(
    st.builds(
        EncodedExample,
        st.lists(st.integers(1, 3), min_size=1, max_size=8),
        st.lists(st.integers(1, 250), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=6,
)


@pytest.fixture(scope="module")
def model(toy_model):
    return AutoModelForCausalLM.from_pretrained(toy_model, dtype=torch.float64, attn_implementation="sdpa")


@settings(max_examples=25, deadline=None)
@given(examples)
def test_loss_and_gradients_are_those_of_one_example_at_a_time(model, batch):
    inputs = PrefixTreeCollator()(batch)
    logits_TV = model(
        input_ids=inputs["input_ids"], position_ids=inputs["position_ids"], attention_mask=inputs["attention_mask"]
    ).logits[0]
    tree_loss = cross_entropy(logits_TV, inputs["shift_labels"][0], ignore_index=IGNORED, reduction="sum")
    plain_loss = torch.zeros((), dtype=torch.float64)
    for prompt, completion in batch:
        ids_T = torch.tensor([*prompt, *completion])
        logits_TV = model(input_ids=ids_T[None, :-1]).logits[0, len(prompt) - 1 :]
        plain_loss = plain_loss + cross_entropy(logits_TV, ids_T[len(prompt) :], reduction="sum")
    assert tree_loss.item() == pytest.approx(plain_loss.item(), rel=1e-6)
    weight = model.model.layers[0].self_attn.q_proj.weight
    (tree_gradient,) = torch.autograd.grad(tree_loss, weight)
    (plain_gradient,) = torch.autograd.grad(plain_loss, weight)
    # The norms of Llama compute in float32 whatever the weights are.
    torch.testing.assert_close(tree_gradient, plain_gradient, rtol=1e-4, atol=1e-6)


def test_a_row_that_is_longer_than_some_layers_see_is_refused():
    model = SimpleNamespace(config=SimpleNamespace(sliding_window=5, model_type="mistral"))
    collator = PrefixTreeCollator(model)
    assert collator([EncodedExample([1, 2, 3], [4, 5])])["input_ids"].shape == (1, 4)
    with pytest.raises(ModelError, match="some layers see only 5 tokens back, but a problem with its answer takes 6"):
        collator([EncodedExample([1, 2, 3, 4, 5], [6, 7])])
