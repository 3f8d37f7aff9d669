"""Lines and columns of traces, against rows worked out by hand."""

import pytest
import torch

from lab.parts.segments import segments
from lab.parts.token_facts import TokenFacts
from tests.from_scratch import position_ids

WORDS = [
    "<pad>",
    "<begin>",
    "<end>",
    "=",
    "<add_integer>",
    ";",
    "answer",
    "is",
    *map(str, range(10)),
    '"',
    '""',
    "add:",
]
FACTS = TokenFacts.of(WORDS)

SUM = '<begin> 8 2 <add_integer> 5 = 8 5 3 1 ; 2 "" 3 0 ; answer is 3 3 <end>'
CALL = '<begin> 8 2 <add_integer> 5 = 7 ; add: " 8 2 " " 5 " ; 8 3 ; 2 3 ; " 3 3 " ; 4 " 1 2 " 6 ; answer is 3 <end>'


def encoded(text: str) -> torch.Tensor:
    return torch.tensor([[WORDS.index(word) for word in text.split()]])


def coupled(ids: torch.Tensor) -> torch.Tensor:
    return position_ids("coupled", 64, ids, FACTS)


def test_a_line_has_the_id_of_the_place_that_it_handles_and_each_column_its_segment():
    ids = encoded(SUM)
    assert position_ids("coupled", 64, ids, FACTS)[0].tolist() == [0, 1, 2, 0, 1, 0, *[1] * 5, *[2] * 5, 3, 0, 1, 2, 3]
    assert segments(ids, FACTS)[0].tolist() == [0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 3, 4, 5, 6, 7, 3, 4, 15, 15, 15, 0]


def test_lines_count_from_the_word_with_which_a_function_begins_and_quoted_digits_have_their_own_places():
    ids = encoded(CALL)
    question, first, entry = [0, 1, 2, 0, 1, 0], [1, 1], [0, 0, 1, 2, 0, 0, 1, 0, 0]
    turns, whole, mixed, answer = [1] * 3 + [2] * 3, [3, 1, 2, 3, 3], [4, 4, 1, 2, 4, 4, 4], [5, 0, 1, 2]
    assert (
        position_ids("coupled", 64, ids, FACTS)[0].tolist() == question + first + entry + turns + whole + mixed + answer
    )
    assert segments(ids, FACTS)[0, 8:17].tolist() == [4, 5, 5, 5, 6, 7, 7, 8, 3]


@pytest.mark.parametrize("text", [SUM, CALL, SUM + " " + CALL])
def test_ids_and_segments_do_not_depend_on_later_words(text):
    ids = encoded(text)
    for end in range(1, ids.shape[1]):
        assert torch.equal(coupled(ids[:, :end]), coupled(ids)[:, :end])
        assert torch.equal(segments(ids[:, :end], FACTS), segments(ids, FACTS)[:, :end])


def test_a_problem_that_follows_another_in_a_row_has_the_same_lines():
    both, alone = encoded(SUM + " " + CALL), encoded(CALL)
    assert torch.equal(coupled(both)[:, -alone.shape[1] :], coupled(alone))
    assert torch.equal(segments(both, FACTS)[:, -alone.shape[1] :], segments(alone, FACTS))


def test_a_vocabulary_without_traces_has_no_lines():
    assert TokenFacts.of([word for word in WORDS if word not in (";", "is")]).trace is None
    assert torch.equal(position_ids("plain", 64, encoded(SUM), FACTS)[0], torch.arange(len(SUM.split())))
