import torch

from lab.models.walking_heads import decisive, walk_down
from lab.text.places import RowSpots, row_spots_downward


def walked(text: str) -> str:
    """The digits that the last token of a text passes on its way down; the others are written as dots."""
    spots = RowSpots.stacked([row_spots_downward([*"9 8 7"], 1, 2), row_spots_downward([*text], 1, 2)])
    below = walk_down(spots, 2)["below_BQK"][1, 0, : len(text)]
    return "".join(word if seen else "." for word, seen in zip(text, below.tolist(), strict=True))


def test_an_answer_walks_down_the_digits_below_the_one_that_is_written_next():
    assert walked("is 3581 + 2417 =") == "..........2417.."
    assert walked("is 3581 + 2417 = 0") == "...........417...."
    assert walked("is 3581 + 2417 = 059") == ".............7......"
    assert walked("is 3581 + 2417 = 05998") == "......................"


def test_where_the_second_number_has_no_digit_the_walk_passes_the_first():
    assert walked("3581 + 17 =") == "35.....17.."
    assert walked("81 + 2417 =") == ".....2417.."
    assert walked("3581 + 17 = 0") == ".5.....17...."


def test_hundreds_of_rows_do_not_mix():
    row, other = (row_spots_downward([*text], 1, 2) for text in ("1234 + 5 =", "1 + 2345 ="))
    alone, together = (walk_down(RowSpots.stacked(rows), 2)["below_BQK"][0] for rows in ([row], [row, *[other] * 600]))
    assert torch.equal(alone, together)


def test_only_answers_walk():
    assert walked("3581 + 2417") == "..........."
    assert walked("like 123. Add 3581 + 2417") == "." * 25
    assert walked("3581 +") == "......"


def decides(text: str) -> str:
    """Like `walked`, with only the digits whose place decides about the carry."""
    spots = RowSpots.stacked([row_spots_downward([*text], 1, 2)])
    digits = torch.tensor([[int(word) if word.isdigit() else 0 for word in text]])
    seen = decisive(spots, 2, digits)[0, 0].tolist()
    return "".join(word if one else "." for word, one in zip(text, seen, strict=True))


def test_a_place_decides_if_its_digits_do_not_add_up_to_nine():
    assert decides("3581 + 2417 =") == ".......2..7.."
    assert decides("3981 + 17 =") == "3.......7.."  # 9 has no digit below it and passes a carry on, as 8 + 1 does
    assert decides("78 3581 + 2417 = 05") == ".............7....."
