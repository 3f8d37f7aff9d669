"""Kinds of sums (lab/numbers/additions.py) in words, as pages and figures name them."""

IN_WORDS = {"nines_short": "nines and a short number", "nines": "nines and a long number"}


def in_words(row: str) -> str:
    """The name of a row, such as "nines" or "add_integer, nines", with its kind of sums in words."""
    task, comma, stratum = row.rpartition(", ")
    return f"{task}{comma}{IN_WORDS.get(stratum, stratum)}"
