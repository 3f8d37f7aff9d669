"""Places that a model counts itself, by hand, and against countdown ids, which it should come to."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.parts.counted_ids import CountedIds, CountedIdsConfig
from lab.parts.positions import Positions
from lab.parts.relative_keys import RelativeKeys, RelativeKeysConfig
from lab.parts.token_facts import TokenFacts
from tests.from_scratch import position_ids

WORDS = ["<pad>", "<begin>", "<end>", "=", "<add_integer>", *map(str, range(10))]
FACTS = TokenFacts.of(WORDS)
numerals = st.integers(1, 10**6).map(str)


def encode(text: str) -> torch.Tensor:
    return torch.tensor([[WORDS.index(word) for word in text.split()]])


def counter(counted: str = "") -> CountedIds:
    """One that counts the words of `counted` and no others; without any, a new one."""
    made = CountedIds(CountedIdsConfig(), len(WORDS))
    if counted:
        shares = torch.tensor([1.0 if word in counted.split() else -1.0 for word in WORDS])
        made.learned.data = shares
    return made


def test_the_example_of_the_docstring_is_true():
    row = encode("1 2 5 <add_integer> 9 7 =")
    before = counter().train().places(row, FACTS)[0, :6]
    torch.testing.assert_close(before, torch.tensor([0.98, 0.97, 0.94, 0.88, 0.75, 0.5]), atol=0.006, rtol=0)
    after = counter("0 1 2 3 4 5 6 7 8 9").train().places(row, FACTS)[0, :6]
    assert after.tolist() == [3, 2, 1, 0, 2, 1]


@settings(deadline=None, max_examples=50)
@given(numerals, numerals, st.integers(0, 3))
def test_a_counter_of_digits_gives_countdown_ids_in_training_and_outside_of_it(a, b, padding):
    answer = str(int(a) + int(b)).zfill(max(len(a), len(b)) + 1)
    row = encode(" ".join(["<begin>", *a, "<add_integer>", *b, "=", *answer, *["<pad>"] * padding]))
    told, digits = (
        position_ids("countdown", 128, row, FACTS)[0, : row.shape[1] - padding],
        counter("0 1 2 3 4 5 6 7 8 9"),
    )
    for mode in (True, False):
        found = digits.train(mode).places(row, FACTS)[0, : len(told)]
        assert found.tolist() == told.tolist()
        assert found.is_floating_point() == mode


def test_words_of_a_number_that_are_not_counted_end_it():
    row = encode("<begin> 1 2 5 <add_integer> 9 7 = 0 2 2 2")
    assert counter("1 5 7 9 <add_integer>").eval().places(row, FACTS).tolist() == [[0, 1, 0, 4, 3, 2, 1, 6, 6, 6, 6, 6]]


def test_places_have_gradients_until_the_shares_are_certain():
    row = encode("<begin> 1 2 <add_integer> 9 7 = 1 0 9")
    for made, moves in ((counter(), True), (counter("0 1 2 7 9"), False)):
        made.train().places(row, FACTS).sum().backward()
        assert made.learned.grad is not None
        assert bool(made.learned.grad.abs().sum() > 0) == moves


def test_relative_keys_are_read_between_whole_distances():
    keys = RelativeKeys(RelativeKeysConfig(), 1, 1, 2)
    positions = Positions.of(torch.tensor([[0.0]]), torch.tensor([[0.25, -1.5, 9.0, 2.0]]))
    found = keys.distances_of(positions)[0, 0]
    expected = torch.zeros(4, 9)
    expected[0, [4, 5]] = torch.tensor([0.75, 0.25])
    expected[1, [2, 3]] = 0.5
    expected[2, 8] = expected[3, 6] = 1
    torch.testing.assert_close(found, expected)
