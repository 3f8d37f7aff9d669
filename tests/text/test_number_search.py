import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.text.number_search import NumberSearch
from tests.text.linear import ATOMS, assert_linear

HINTED, BACKWARDS = r"<\d+\.\d+>[0-9]", r"[0-9]>\d+\.\d+<"
FORMS = {
    "integer": NumberSearch("[0-9]"),
    "float": NumberSearch("[0-9]", r"\.[0-9]+"),
    "fraction": NumberSearch("[0-9]", "/[0-9]+"),
    "scientific": NumberSearch("[0-9]", r"\.[0-9]+e[0-9]+"),
    "hinted integer": NumberSearch(HINTED, "", BACKWARDS),
    "hinted float": NumberSearch(HINTED, rf"\.(?:{HINTED})+", BACKWARDS),
}
TEXTS = st.lists(st.sampled_from("0123456789./e<> \u0663x") | st.sampled_from(["<0.1>7", "12", "1.5e8"]), max_size=25)


@given(TEXTS.map("".join), st.sampled_from(list(FORMS)))
def test_it_finds_what_re_finds(text, form):
    found, expected = FORMS[form].search(text), FORMS[form].number.search(text)
    assert (found and found.span()) == (expected and expected.span())


@pytest.mark.parametrize("form", FORMS)
def test_it_takes_time_in_proportion_to_the_text(form):
    seconds = 0.2 if "hinted" in form else 0.05
    for atom in ATOMS:
        assert_linear(FORMS[form].search, atom, 2**15, seconds)
