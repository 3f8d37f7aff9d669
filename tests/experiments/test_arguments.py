"""A script takes its own arguments, passes others on, and refuses those that nobody knows."""

import pytest

from experiments.shared.arguments import (
    counts,
    one_of,
    own,
    own_and_listed,
    own_and_others,
    some_of,
    true_or_false,
    whole_number,
    whole_numbers,
)
from lab.errors import ConfigError


def test_own_arguments_are_told_from_those_of_a_config():
    given, others = own_and_others(["seeds=0,1", "training.max_steps=2", "only=a=b"], "seeds", "only")
    assert given == {"seeds": "0,1", "only": "a=b"}
    assert others == ["training.max_steps=2"]


@pytest.mark.parametrize("argument", ["seed=0", "seeds", "--seeds=0"])
def test_an_unknown_argument_is_refused_with_the_names_that_there_are(argument):
    with pytest.raises(ConfigError, match=rf"^{argument}: this script has only seeds=, sums=$"):
        own([argument], "seeds", "sums")


def test_labels_are_all_or_those_that_are_listed():
    assert some_of({"a": 1, "b": 2}, None) == ["a", "b"]
    assert some_of(["a", "b, c"], "b, c/a") == ["b, c", "a"]
    with pytest.raises(ConfigError, match=r"^only=d: should be some of a / b$"):
        some_of(["a", "b"], "d/a")


def test_whole_numbers_are_read_or_refused_with_an_example():
    assert whole_numbers({"seeds": "0,12"}, "seeds", "0") == [0, 12]
    assert whole_numbers({}, "seeds", "3,4") == [3, 4]
    with pytest.raises(ConfigError, match=r"^seeds=0,x: should be whole numbers, such as seeds=3,4$"):
        whole_numbers({"seeds": "0,x"}, "seeds", "3,4")
    assert whole_number({"sums": "7"}, "sums", 5) == 7
    assert whole_number({}, "sums", 5) == 5
    with pytest.raises(ConfigError, match=r"^sums=-7: should be a whole number, such as sums=5$"):
        whole_number({"sums": "-7"}, "sums", 5)


def test_what_is_listed_is_told_from_keys_and_nothing_listed_is_refused():
    assert own_and_listed(["a,b", "sums=3", "c"], "runs", "sums") == ({"sums": "3"}, ["a", "b", "c"])
    with pytest.raises(ConfigError, match=r"^nothing to measure: give runs, with commas between them$"):
        own_and_listed(["sums=3"], "runs", "sums")
    with pytest.raises(ConfigError, match=r"^x=1: this script has no arguments$"):
        own(["x=1"])


def test_true_and_false_and_labels_are_read_or_refused():
    assert true_or_false({"measure": "false"}, "measure", True) is False
    assert true_or_false({}, "measure", True) is True
    with pytest.raises(ConfigError, match=r"^measure=yes: should be true or false$"):
        true_or_false({"measure": "yes"}, "measure", True)
    assert one_of(["a", "b"], {"words": "b"}, "words", "a") == "b"
    with pytest.raises(ConfigError, match=r"^words=c: should be one of a, b$"):
        one_of(["a", "b"], {"words": "c"}, "words", "a")


def test_lengths_may_say_how_many_problems_they_have():
    assert counts({"digits": "8,100x48"}, "digits", "8", 96) == {8: 96, 100: 48}
    for text in ("8", "8xx2", "x"):
        with pytest.raises(ConfigError, match=rf"^digits={text}: should be lengths and how many of each, such as "):
            counts({"digits": text}, "digits", "6x12")
