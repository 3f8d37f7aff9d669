"""How digits are cut into groups."""

import itertools
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.numbers.philox import philox
from lab.text.digit_groups import groups, vocabulary

KINDS = ("aligned", "left", "mixed", "random")
numerals = st.text("0123456789", min_size=1, max_size=30)


def words_of(seed: int):
    return iter(philox("test", seed).random_raw, None)


@pytest.mark.parametrize(
    ("digits", "kind", "size", "alignment", "cut"),
    [
        ("1234567", "aligned", 3, "right", "1 234 567"),
        ("1234567", "aligned", 3, "left", "123 456 7"),
        ("12345", "aligned", 3, "left", "123 45"),
        ("123456", "aligned", 3, "right", "123 456"),
        ("1234567", "left", 3, "right", "123 456 7"),
        ("1234567", "left", 3, "left", "123 456 7"),
        ("12345", "aligned", 4, "right", "1 2345"),
        ("007", "aligned", 2, "right", "0 07"),
        ("90", "aligned", 1, "right", "9 0"),
        ("5", "aligned", 4, "left", "5"),
    ],
)
def test_groups_are_counted_from_where_their_kind_says(digits, kind, size, alignment, cut):
    assert groups(digits, kind, size, alignment) == cut.split()


def test_random_groups_are_as_long_as_the_words_modulo_the_size_and_one_more():
    assert groups("12345678", "random", 3, "right", iter([5, 0, 1, 2])) == ["123", "4", "56", "78"]


def test_random_groups_need_words():
    with pytest.raises(ValueError, match="random groups need random words"):
        groups("123", "random", 2, "right")


@given(numerals, st.sampled_from(KINDS), st.integers(1, 4), st.sampled_from(["right", "left"]), st.integers(0, 99))
def test_groups_are_the_digits_again_and_words_of_the_vocabulary(digits, kind, size, alignment, seed):
    cut = groups(digits, kind, size, alignment, words_of(seed))
    assert "".join(cut) == digits
    assert set(cut) <= set(vocabulary(kind, size))
    assert cut == groups(digits, kind, size, alignment, words_of(seed))


@given(numerals, st.integers(1, 4))
def test_aligned_groups_leave_their_short_one_at_the_far_end(digits, size):
    def reference(text):
        return [text[:size], *reference(text[size:])] if text else []

    assert groups(digits, "aligned", size, "left") == reference(digits)
    mirrored = [group[::-1] for group in reversed(reference(digits[::-1]))]
    assert groups(digits, "aligned", size, "right") == mirrored


def test_random_groups_have_every_length_equally_often():
    lengths = [len(group) for group in groups("7" * 6000, "random", 3, "right", words_of(0))]
    assert all(abs(lengths.count(length) / len(lengths) - 1 / 3) < 0.03 for length in (1, 2, 3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_vocabulary_has_every_digit_and_no_group_that_is_too_long_or_there_twice(kind, size):
    words = vocabulary(kind, size)
    assert words[:10] == list("0123456789")
    assert len(set(words)) == len(words)
    assert {len(word) for word in words} == set(range(1, size + 1))


def test_all_strings_are_in_the_vocabulary_with_leading_zeros():
    assert len(vocabulary("aligned", 3)) == 1110
    assert vocabulary("left", 2)[8:13] == ["8", "9", "00", "01", "02"]
    assert vocabulary("random", 4)[-1] == "9999"


@pytest.mark.parametrize(("size", "learned"), [(1, 0), (2, 50), (3, 500), (4, 5000)])
def test_byte_pairs_learn_half_as_many_groups_as_there_are_longest_ones(size, learned):
    assert len(vocabulary("mixed", size)) == 10 + learned


def test_mixed_groups_are_irregular():
    numbers = [f"{word % 10**9:09d}" for word in itertools.islice(words_of(1), 200)]
    cuts = {tuple(len(group) for group in groups(number, "mixed", 3, "right")) for number in numbers}
    assert len(cuts) > 10


_IN_A_FRESH_PROCESS = """
import json
from lab.text.digit_groups import groups, vocabulary
print(json.dumps([vocabulary("mixed", 3), [groups(str(n * n), "mixed", 3, "right") for n in range(1000, 1200)]]))
"""


@pytest.mark.parametrize("threads", ["1", "3"])
def test_byte_pairs_are_the_same_in_every_process(threads):
    environment = {**os.environ, "RAYON_NUM_THREADS": threads}
    command = [sys.executable, "-c", _IN_A_FRESH_PROCESS]
    there = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert there[0] == vocabulary("mixed", 3)
    assert there[1] == [groups(str(n * n), "mixed", 3, "right") for n in range(1000, 1200)]
