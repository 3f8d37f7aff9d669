"""Rows and places of running totals, against tables worked out by hand, and what a window then hides."""

import pytest
import torch

from lab.config.notation import FormatConfig
from lab.config.schema import RulesConfig
from lab.errors import ModelError
from lab.numbers.sampling import Cell
from lab.numbers.tasks import SUM, TASKS
from lab.parts import grid_ids
from lab.parts.grid_ids import GridFacts, GridIds, GridIdsConfig, ahead, grid_segments
from lab.parts.rows import Rows, Words
from lab.text.rule_notation import RuleNotation
from lab.text.running_totals import RunningTotals
from tests.from_scratch import built

NOTATION = RunningTotals([TASKS["multiply_hard_integer"], SUM])
PART = GridIds(GridIdsConfig())
PART.read(Words(NOTATION.vocabulary), "none")
FACTS = PART._grid
ROW = 2**16
PRODUCT = "<begin> 7 4 <multiply_hard_integer> 3 2 = part 1 4 1 total 1 4 1 part 4 9 0 total 8 0 1 answer 1 8 0 1 <end>"
LONG_SUM = (
    "<begin> <sum_integers> 5 2 1 <sum_integers> 7 9 <sum_integers> 3 = total 5 2 1 total 2 2 2 total 5 2 2 <end>"
)


def encoded(text: str) -> torch.Tensor:
    words = NOTATION.vocabulary
    return torch.tensor([[words.index(word) for word in text.split()]])


def ids_of(ids_BT: torch.Tensor) -> torch.Tensor:
    return PART.position_ids(Rows(ids_BT, Words(NOTATION.vocabulary)))


def rows_and_places(text: str) -> tuple[list[int], list[int]]:
    rows, places = grid_ids.rows_and_places(ids_of(encoded(text))[0])
    return rows.tolist(), places.tolist()


def test_the_rows_of_a_product_are_its_steps_and_its_answer_runs_along_the_sides_of_the_table():
    rows, places = rows_and_places(PRODUCT)
    question, steps, answer = slice(0, 7), slice(7, 23), slice(23, 28)
    assert rows[question] == [0, 0, 0, 0, 2, 3, 1]  # the first factor is in every row, each digit of the second in its
    assert places[question] == [0, 2, 3, 0, 0, 0, 1]  # own row, at every place
    assert rows[steps] == [2] * 8 + [3] * 8
    assert places[steps] == [1, 2, 3, 4] * 4
    assert rows[answer] == [1, 2, 3, 3, 3]
    assert places[answer] == [2, 2, 2, 3, 4]


def test_the_rows_of_a_sum_are_its_terms_with_their_totals():
    rows, places = rows_and_places(LONG_SUM)
    assert rows == [0, 2, 2, 2, 2, 3, 3, 3, 4, 4, 1, *[2] * 4, *[3] * 4, *[4] * 5]
    assert places == [0, 0, 2, 3, 4, 0, 2, 3, 0, 2, 1, *[1, 2, 3, 4] * 3, 1]


def test_segments_tell_the_kinds_of_numbers_apart():
    assert grid_segments(encoded(PRODUCT), FACTS)[0, :27].tolist() == [
        0,
        1,
        1,
        2,
        2,
        2,
        2,
        *([3] * 4 + [4] * 4) * 2,
        5,
        5,
        5,
        5,
    ]
    assert grid_segments(encoded(LONG_SUM), FACTS)[0].tolist() == [0, *[1] * 10, *[4] * 13]


@pytest.mark.parametrize("text", [PRODUCT, LONG_SUM])
def test_ids_and_segments_do_not_depend_on_later_words_or_on_padding(text):
    ids = encoded(text)
    whole, kinds = ids_of(ids), grid_segments(ids, FACTS)
    for end in range(1, ids.shape[1]):
        assert torch.equal(ids_of(ids[:, :end]), whole[:, :end])
        assert torch.equal(grid_segments(ids[:, :end], FACTS), kinds[:, :end])
    padded = torch.cat([torch.full((1, 3), 0), ids], 1)
    assert torch.equal(ids_of(padded)[:, 3:], whole)
    assert torch.equal(grid_segments(padded, FACTS)[:, 3:], kinds)


def test_a_key_that_is_everywhere_is_at_distance_zero_and_a_query_that_is_everywhere_sees_only_such_keys():
    at = {"begin": 0, "a": 0 * ROW + 3, "b": 2 * ROW, "part": 2 * ROW + 3, "total": 4 * ROW + 2}
    ids = torch.tensor([[*at.values()]])
    between = dict(zip(at, PART.positions(ids, ids).distances_BQK[0], strict=True))
    seen = {name: [key for key, far in zip(at, row, strict=True) if far <= 2] for name, row in between.items()}
    assert seen["part"] == ["begin", "a", "b", "part", "total"]
    assert seen["total"] == ["begin", "a", "b", "part", "total"]
    assert seen["a"] == ["begin", "a"]
    assert seen["b"] == ["begin", "b"]
    assert seen["begin"] == ["begin"]
    assert ahead(ids, ids)[:, 0, 3].tolist() == [[0, 0, 0, 0, 2], [0, 0, 0, 0, -1]]


def test_distances_obey_the_triangle_inequality_so_that_a_window_bounds_what_layers_see_together():
    ids = torch.tensor([[row * ROW + place for row in range(4) for place in range(4)]])
    between = PART.positions(ids, ids).distances_BQK[0]
    assert torch.all(between[:, None] <= between[:, :, None] + between[None])


def test_with_a_window_a_layer_stack_does_not_see_a_far_row():
    parts = {"grid_ids": {}, "window": {"reach": 1}, "relative_keys": {}, "segments": {}}
    model = built(NOTATION.vocabulary, parts, size="0.2M", layers=2)
    terms = " ".join(f"<sum_integers> {digit} 1" for digit in range(1, 9))
    one = encoded(
        f"<begin> {terms} = total 1 1 total 3 2 total 6 3 total 0 5 total 5 6 total 1 8 total 8 9 total 6 0 1"
    )
    other = one.clone()
    other[0, 2] = NOTATION.vocabulary.index("7")  # a digit of the first term
    changed = (model(one).logits != model(other).logits).any(-1)[0]
    totals = (one[0] == NOTATION.vocabulary.index("total")).nonzero()[:, 0].tolist()
    assert changed[totals[0] : totals[2]].any()
    assert not changed[totals[3] :].any()


def test_a_vocabulary_without_totals_is_refused_in_one_line():
    with pytest.raises(ModelError, match=r"needs data\.style=running_totals"):
        GridIds(GridIdsConfig()).read(Words(["<pad>", "<begin>", "<end>", "=", "1"]), "none")


def test_rules_that_have_a_variable_named_total_are_not_taken_for_running_totals():
    rules = RuleNotation(RulesConfig(unit=1), FormatConfig(reverse="integer"), [Cell(TASKS["add_integer"], 3)])
    assert "total" in rules.vocabulary
    assert GridFacts.of(rules.vocabulary, torch.zeros(len(rules.vocabulary), dtype=torch.long)) is None


def test_rows_and_places_do_not_run_into_each_other_in_long_numbers():
    digits = " ".join("1" * 3000)
    rows, places = rows_and_places(f"<begin> <sum_integers> {digits} <sum_integers> {digits} = total {digits}")
    assert max(places) == 3001
    assert set(rows) == {0, 1, 2, 3}
