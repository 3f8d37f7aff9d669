"""Attention along the paths of a tree is the attention of transformers with a mask of ancestors."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from lab.trees import paths as paths_module
from lab.trees.paths import (
    LONGEST,
    ROWS_AT_ONCE,
    Paths,
    attend_along_paths,
    attends_along_paths,
    path_attention,
    path_inputs,
    path_rows,
)
from lab.trees.prefix_tree import PrefixTree

sequences = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=70), min_size=1, max_size=3 * ROWS_AT_ONCE)


@given(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=40), min_size=1, max_size=6))
def test_every_node_is_a_query_once_and_is_found_again(sequences):
    tree = PrefixTree(sequences)
    rows = path_rows(tree)
    paths = Paths.of(rows)
    assert torch.equal(paths.queries_BQ.flatten()[paths.found_N], torch.arange(len(tree.tokens)))
    for row, keys, length in zip(rows, paths.keys_BK.tolist(), paths.lengths_B.tolist(), strict=True):
        assert length == len(row.keys)
        assert keys[:length] == row.keys == tree.paths[row.path][:length]
        assert row.keys[-len(row.queries) :] == row.queries


def test_a_long_path_becomes_several_rows_that_end_with_their_queries_and_short_rows_stand_first():
    rows = path_rows(PrefixTree([[1] * (LONGEST + 2), [1, 1, 2]]))
    assert [(row.path, len(row.keys), len(row.queries)) for row in rows] == [
        (1, 3, 1),
        (0, LONGEST, LONGEST),
        (0, LONGEST + 2, 2),
    ]


@settings(deadline=None, max_examples=25)
@given(sequences, st.booleans())
def test_outputs_and_gradients_are_those_of_attention_with_a_mask_of_ancestors(sequences, as_on_a_gpu):
    with pytest.MonkeyPatch.context() as patch:
        if as_on_a_gpu:
            patch.setattr(paths_module, "_parts", lambda lengths_B, groups, keys: [(slice(None), slice(None), keys)])
        check_outputs_and_gradients(sequences)


def test_a_gpu_computes_all_rows_at_once():
    assert paths_module._parts(torch.empty(20, device="meta"), 2, 9) == [(slice(None), slice(None), 9)]
    assert len(paths_module._parts(torch.ones(20), 2, 9)) == 3


def check_outputs_and_gradients(sequences):
    tree = PrefixTree(sequences)
    drawn = torch.Generator().manual_seed(1)
    query, key, value = (
        torch.randn(1, heads, len(tree.tokens), 8, generator=drawn).requires_grad_() for heads in (6, 2, 2)
    )
    given = path_inputs(path_rows(tree))
    paths = Paths(*(given[name] for name in Paths._fields))
    found, _ = path_attention(torch.nn.Identity(), query, key, value, given["attention_mask"], 0.3, paths)
    expected = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, tree.inputs()["attention_mask"], scale=0.3, enable_gqa=True
    ).transpose(1, 2)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(found.shape, generator=drawn)
    ours = torch.autograd.grad((found * weights).sum(), (query, key, value))
    theirs = torch.autograd.grad((expected * weights).sum(), (query, key, value))
    torch.testing.assert_close(ours, theirs)


def test_scores_are_in_float32_under_autocast_too():
    tree = PrefixTree([[1] * 40, [1, 2, 3]])
    drawn = torch.Generator().manual_seed(2)
    states = (torch.randn(1, heads, len(tree.tokens), 16, generator=drawn).bfloat16() for heads in (4, 2, 2))
    query, key, value = (4 * part for part in states)
    given = path_inputs(path_rows(tree))
    paths = Paths(*(given[name] for name in Paths._fields))

    def attended(**parts: torch.Tensor) -> torch.Tensor:
        return path_attention(torch.nn.Identity(), **parts, attention_mask=given["attention_mask"], paths=paths)[0]

    rounded = {"query": query, "key": key, "value": value}
    plain, exact = attended(**rounded), attended(**{name: part.double() for name, part in rounded.items()})
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(attended(**rounded), plain)
    assert (plain - exact).abs().max() < 0.02 * exact.abs().max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_few_queries_of_generation_attend_as_in_transformers(dtype):
    drawn = torch.Generator().manual_seed(3)
    query, key, value = (
        torch.randn(3, heads, tokens, 8, generator=drawn).to(dtype) for heads, tokens in ((6, 2), (2, 9), (2, 9))
    )
    room = torch.zeros(3, 2, 20, 8, dtype=dtype)  # a cache with free slots, of which attention gets a part
    room[:, :, :9] = key
    visible = torch.arange(9) <= torch.tensor([[[4], [5]], [[7], [8]], [[0], [1]]])[:, None]
    expected = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, visible, scale=0.3, enable_gqa=True
    ).transpose(1, 2)
    with torch.inference_mode():
        found, _ = path_attention(torch.nn.Identity(), query, room[:, :, :9], value, visible, 0.3)
        blind, _ = path_attention(torch.nn.Identity(), query, room[:, :, :9], value, visible & False, 0.3)
    torch.testing.assert_close(found, expected, **({} if dtype == torch.float32 else {"atol": 0.02, "rtol": 0.02}))
    assert blind.isfinite().all(), "padding sees nothing"


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=9, hidden_size=24, intermediate_size=32, num_hidden_layers=2, num_attention_heads=6,
        num_key_value_heads=2, attn_implementation="sdpa",
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def test_a_model_computes_the_same_along_paths(model):
    tree = PrefixTree([[1, 2, 3, 4], [1, 2, 5], [6, 7]])
    expected = model(**tree.inputs(), use_cache=False).logits
    attend_along_paths(model)
    given = path_inputs(path_rows(tree))
    paths = Paths(*(given.pop(name) for name in Paths._fields))
    found = model(**tree.tokens_and_depths(), **given, paths=paths, use_cache=False).logits
    torch.testing.assert_close(found, expected)


def test_a_model_that_attends_along_paths_reads_ordinary_rows_as_before(model):
    rows, seen = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    alone, padded = model(rows[:1]).logits, model(rows, attention_mask=seen).logits
    attend_along_paths(model)
    assert attends_along_paths(model)
    torch.testing.assert_close(model(rows[:1]).logits, alone)
    torch.testing.assert_close(model(rows, attention_mask=seen).logits[:, :2], padded[:, :2])
