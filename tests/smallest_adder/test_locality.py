"""What may change if one token changes, on tensors made by hand."""

import numpy as np
import torch

from lab.smallest_adder.layers.attention import _exchanged, _local, _scores_local, _summands_local

TOKENS = 4


def changed(shape: tuple[int, ...], *spots: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    one, other = torch.zeros(shape), torch.zeros(shape)
    for spot in spots:
        other[spot] = 1
    return one, other


def test_what_attention_reads_may_change_only_where_the_token_stands():
    places_B = np.array([1, 3])
    assert _local(*changed((2, TOKENS, 5), (0, 1, 2), (0, 1, 4), (1, 3, 0)), places_B, TOKENS)
    assert not _local(*changed((2, TOKENS, 5), (0, 1, 2), (1, 2, 0)), places_B, TOKENS)
    one_more = changed((2, TOKENS + 1, 5), (0, 2, 2), (1, 4, 0))  # all moved by one: a first key of its own
    assert _local(*one_more, places_B, TOKENS)
    assert not _local(*changed((2, TOKENS + 1, 5), (0, 2, 2), (1, 3, 0)), places_B, TOKENS)  # moved by one, and by none


def test_scores_may_change_in_the_row_and_in_the_column_of_the_token():
    row, column = [(1, key) for key in range(TOKENS)], [(query, 1) for query in range(TOKENS)]
    assert _scores_local(*changed((TOKENS, TOKENS), *row, *column), 1, TOKENS, False)
    assert not _scores_local(*changed((TOKENS, TOKENS), (2, 3)), 1, TOKENS, False)
    shifted = changed((TOKENS, TOKENS), *((2, key) for key in range(TOKENS)))
    assert _scores_local(*shifted, 1, TOKENS, True)  # all scores of a query alike: a softmax does not see it
    assert not _scores_local(*shifted, 1, TOKENS, False)


def test_no_mask_makes_a_change_of_scores_look_like_rounding():
    one, other = changed((TOKENS, TOKENS), (2, 3))
    for scores in (one, other):
        scores[:, 0] = torch.finfo(torch.float32).min
    assert not _scores_local(one, other, 1, TOKENS, True)
    tiny = [scores * 1e-8 for scores in changed((TOKENS, TOKENS), (2, 3))]
    tiny[0][1, 1] = tiny[1][1, 1] = 1e-8
    assert not _scores_local(tiny[0], tiny[1], 1, TOKENS, False)


def test_of_a_single_query_no_key_but_that_of_the_token_may_change():
    assert _scores_local(*changed((1, TOKENS), (0, 2)), 2, TOKENS, True)
    assert not _scores_local(*changed((1, TOKENS), (0, 2)), 0, TOKENS, True)


def test_products_before_the_sum_may_change_for_the_token_as_a_query_or_as_a_key():
    row, column = [(0, 2, key) for key in range(TOKENS)], [(1, query, 2) for query in range(TOKENS)]
    assert _summands_local(*changed((2, TOKENS, TOKENS), *row, *column), 2, TOKENS, 0)
    assert not _summands_local(*changed((2, TOKENS, TOKENS), *row, (0, 1, 3)), 2, TOKENS, 0)
    two_more = [(0, 6, key) for key in (2, 3, 4)]  # with two more keys, two may change, and not three
    assert _summands_local(*changed((2, 8, 10), *two_more[:2]), 2, 8, 2)
    assert not _summands_local(*changed((2, 8, 10), *two_more), 2, 8, 2)


def test_only_the_weights_of_the_changed_token_are_exchanged():
    before, after = torch.zeros(1, TOKENS, TOKENS), torch.ones(1, TOKENS, TOKENS)
    mixed = _exchanged(before, after, np.array([1]), 0, TOKENS, -1)[0]
    assert mixed.nonzero().tolist() == [[0, 1], [1, 0], [1, 1], [1, 2], [1, 3], [2, 1], [3, 1]]
    single = _exchanged(before[:, :1], after[:, :1], np.array([0]), 0, TOKENS, -1)[0]
    assert single.nonzero().tolist() == [[0, 0]]  # one query, which is not the token's own
    keys_first = _exchanged(before[:, :, :1], after[:, :, :1], np.array([2]), 0, TOKENS, -2)[0]
    assert keys_first.nonzero().tolist() == [[2, 0]]
