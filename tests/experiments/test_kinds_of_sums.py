from experiments.shared.kinds_of_sums import in_words


def test_kinds_of_sums_are_named_in_words_alone_and_after_a_task():
    assert in_words("nines_short") == "nines and a short number"
    assert in_words("add_integer, nines") == "add_integer, nines and a long number"
    assert [in_words(row) for row in ("add_integer", "carries")] == ["add_integer", "carries"]
