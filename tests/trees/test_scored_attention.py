"""Attention whose scores or weights parts compute, against sums over keys, one query at a time."""

import math
from types import SimpleNamespace

import pytest
import torch

from lab.parts.relative_keys import _Wanted
from lab.parts.stick_breaking import StickBreakingConfig, _Walking, earlier
from lab.trees.paths import scored_attention

HIDDEN = float("-inf")
B, H, T, D, C = 2, 3, 5, 4, 3


def inputs(kv_heads: int = H) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    heads = (H, kv_heads, kv_heads)
    query, key, value = (torch.randn(B, count, T, D, generator=draw) for count in heads)
    return query, key, value


LAYER = SimpleNamespace(layer_idx=1)


def attended(query, key, value, mask, *acts) -> torch.Tensor:
    return scored_attention(LAYER, acts, query, key, value, mask, 0.5)


def sticks(mask: torch.Tensor) -> _Walking:
    """One stick-breaking head."""
    return _Walking(StickBreakingConfig(heads=1), earlier(mask > HIDDEN), None)


def causal(hidden: bool = True) -> torch.Tensor:
    mask = torch.zeros(1, 1, T, T).masked_fill(~torch.ones(T, T).tril().bool(), HIDDEN)
    if hidden:
        mask[..., 4, 2] = HIDDEN
    return mask


def test_without_its_own_parts_it_is_the_usual_attention():
    query, key, value = inputs(kv_heads=1)
    found = attended(query, key, value, causal())
    usual = torch.nn.functional.scaled_dot_product_attention(query, key, value, causal(), scale=0.5, enable_gqa=True)
    torch.testing.assert_close(found, usual.transpose(1, 2))


def test_relative_keys_add_the_querys_product_with_the_vector_of_the_distance():
    query, key, value = inputs()
    vectors = torch.randn(2, H, C, D, generator=torch.Generator().manual_seed(1))
    which = torch.randint(C, (B, T, T), generator=torch.Generator().manual_seed(2))
    one_hot = torch.nn.functional.one_hot(which, C).float()
    found = attended(query, key, value, causal(), _Wanted(vectors, one_hot))
    for b, h, q in torch.cartesian_prod(torch.arange(B), torch.arange(H), torch.arange(T)).tolist():
        seen = [k for k in range(q + 1) if (q, k) != (4, 2)]
        scores = [0.5 * query[b, h, q] @ (key[b, h, k] + vectors[1, h, which[b, q, k]]) for k in seen]
        expected = torch.stack(scores).softmax(0) @ value[b, h, seen]
        torch.testing.assert_close(found[b, q, h], expected)


def test_the_last_heads_break_sticks_over_earlier_tokens_and_have_no_relative_keys():
    query, key, value = inputs()
    one_hot = torch.ones(B, T, T, C)
    vectors = torch.full((2, H, C, D), 3.0)
    wanted = _Wanted(vectors, one_hot)
    plain = attended(query, key, value, causal(), wanted)
    mixed = attended(query, key, value, causal(), wanted, sticks(causal()))
    torch.testing.assert_close(mixed[:, :, :2], plain[:, :, :2])
    for b, q in torch.cartesian_prod(torch.arange(B), torch.arange(T)).tolist():
        expected, going = torch.zeros(D), torch.tensor(1.0)
        earlier = [k for k in reversed(range(q)) if (q, k) != (4, 2)]
        for k in earlier:
            stops = (math.log(1 + len(earlier)) * 0.5 * query[b, 2, q] @ key[b, 2, k]).sigmoid()
            expected, going = expected + going * stops * value[b, 2, k], going * (1 - stops)
        torch.testing.assert_close(mixed[b, q, 2], expected)


@pytest.mark.parametrize("last", [1, 3])
def test_the_last_queries_see_what_they_see_in_the_whole_row(last):
    query, key, value = inputs()
    whole, mask = attended(query, key, value, causal(), sticks(causal())), causal()[..., -last:, :]
    part = attended(query[:, :, -last:], key, value, mask, sticks(mask))
    torch.testing.assert_close(part, whole[:, -last:])
