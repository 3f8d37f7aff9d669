import torch
from transformers import LlamaConfig

from lab.models.same_place import KINDS, NOWHERE, SamePlaceBias, SamePlaceLayer, Spot, kinds, spots


def biased(text: str, query: int) -> dict[int, int]:
    """The keys that a query has a bias for, by their place in a text, and its kind."""
    own, following = spots(list(text))
    found = kinds([following[query]], own[: query + 1])[0].tolist()
    return {key: kind for key, kind in enumerate(found) if kind}


def test_digits_are_counted_within_the_parts_of_their_numbers():
    own, following = spots(list("a 12.3e4/5 6"))
    assert own[2:10] == [
        Spot(1, 1, 1),
        Spot(1, 1, 2),
        NOWHERE,
        Spot(1, 2, 1),
        NOWHERE,
        Spot(1, 3, 1),
        NOWHERE,
        Spot(1, 4, 1),
    ]
    assert own[:2] == [NOWHERE, NOWHERE]
    assert own[11] == Spot(2, 1, 1)
    assert following[1] == Spot(1, 1, 1)
    assert following[3] == Spot(1, 1, 3)
    assert following[4] == Spot(1, 2, 1)
    assert following[10] == Spot(2, 1, 1)


def test_what_is_passed_over_neither_ends_a_number_nor_is_a_digit():
    own, _ = spots(["7", "", "4", "+", "2"])
    assert own == [Spot(1, 1, 1), NOWHERE, Spot(1, 1, 2), NOWHERE, Spot(2, 1, 1)]


def test_a_separator_outside_of_a_number_is_none():
    own, _ = spots(["e", "/", "3"])
    assert own == [NOWHERE, NOWHERE, Spot(1, 1, 1)]


def test_where_an_answer_begins_the_first_digits_of_both_operands_are_of_its_place():
    #        0123456789
    assert biased("4321+98=", 7) == {5: 2, 6: 3, 0: 5, 1: 6}


def test_the_third_digit_is_written_from_the_thirds_and_their_neighbours():
    assert biased("4321+98=32", 9) == {6: 1, 1: 4, 2: 5, 3: 6}


def test_decimals_have_the_decimals_of_the_numbers_before():
    assert biased("1.25+3.5=4.", 10) == {7: 2, 2: 5, 3: 6}


def test_numbers_farther_back_and_the_own_have_no_bias():
    assert biased("9 4+5=1", 6) == {4: 1, 2: 4}
    assert biased("9 4+5=", 5) == {4: 2, 2: 5}


def test_the_bias_is_a_number_for_each_layer_head_and_kind_and_nothing_for_kind_0():
    bias = SamePlaceBias(layers=2, heads=3)
    torch.nn.init.ones_(bias.bias)
    assert bias().shape == (2, 3, KINDS)
    assert bias()[..., 0].count_nonzero() == 0
    assert bias()[..., 1:].eq(1).all()


def test_a_layer_adds_its_own_numbers_to_the_scores_of_pairs():
    config = LlamaConfig(hidden_size=8, num_attention_heads=2, num_hidden_layers=2, intermediate_size=8)
    config._attn_implementation = "eager"
    layer = SamePlaceLayer(config, 1).eval()
    bias_LHC = torch.zeros(2, 2, KINDS)
    bias_LHC[1, 1, 5] = 30.0  # so much that the second head looks nowhere else
    kinds_BQK = torch.tensor([[[0, 0, 0], [0, 0, 0], [5, 0, 0]]])
    seen = []
    layer.self_attn.register_forward_hook(lambda module, inputs, output: seen.append(output[1]))
    still = (torch.ones(1, 3, 4), torch.zeros(1, 3, 4))
    mask = torch.full((3, 3), -1e9).triu(1)[None, None]
    layer(torch.randn(1, 3, 8), mask, bias_LHC, kinds_BQK, position_embeddings=still)
    pattern_HQK = seen[0][0]
    assert pattern_HQK[1, 2, 0] > 0.999
    assert pattern_HQK[0, 2, 0] < 0.99
    assert pattern_HQK[1, 1, 0] < 0.99
