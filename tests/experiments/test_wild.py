import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments.wild.assemble import lower
from experiments.wild.cases import CELLS, cases
from experiments.wild.digits import drawn, expected
from experiments.wild.problems import UNKNOWN, Prompt, group, meaning
from experiments.wild.states import Tree
from experiments.wild.train_digits import decisive, missed_stops
from experiments.wild.wordings import wordings
from lab.second_reading.adapted import OPERATIONS, SIGNS, grid
from lab.second_reading.reader import ASKED, ROLES

SPLITS = ["training", "validation"]


def by_hand(operation: str, first: int, second: int) -> int | str:
    if operation == "compare":
        return "<" if first < second else ">" if first > second else "="
    return first + second if operation == "add" else first - second


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_expected_digits_are_those_of_the_answer(operation: str) -> None:
    rng = random.Random(operation)
    for length in range(1, 12):
        pair = drawn(operation, length, rng)
        places = grid([pair]).first_NP.shape[1]
        signs = "".join(SIGNS[sign] for sign in reversed(expected([pair], places)[0].tolist()))
        answer = by_hand(*pair)
        assert (signs[0] if operation == "compare" else int(signs)) == answer


def test_the_walk_is_told_to_stop_at_the_nearest_lower_place_that_decides() -> None:
    told = grid([("add", 3581, 2417), ("compare", 3581, 3482)])
    assert decisive(told).tolist() == [[True, False, False, True, True], [True, False, True, False, False]]
    right = torch.zeros(1, 1, 5, 5)
    for blank, stop in ((1, 0), (2, 0), (3, 0), (4, 3)):
        right[0, 0, blank, stop] = 1
    alone = grid([("add", 3581, 2417)])
    assert missed_stops([right], alone) == 0
    assert missed_stops([right.roll(1, -1)], alone) > 1


def texts(part: object) -> Iterator[str]:
    """All texts in nested lists and dictionaries."""
    if isinstance(part, str):
        yield part
    else:
        for each in part.values() if isinstance(part, dict) else part:  # type: ignore[attr-defined]
            yield from texts(each)


def test_no_wording_of_validation_is_one_of_training() -> None:
    training, validation = (set(texts(wordings(split))) for split in SPLITS)
    may_be_shared = {*wordings("training")["leads"], *wordings("training")["question_marks"]}
    assert len(training) > 3000
    assert len(validation) > 400
    assert training & validation <= may_be_shared


@pytest.mark.parametrize("split", SPLITS)
def test_every_question_says_which_numbers_it_asks_about(split: str) -> None:
    words = wordings(split)
    groups = [words["plain"], words["headings"], words["chat"]]
    groups += [
        scene[kind] for scene in words["scenes"].values() for kind in ("completions", "questions") if kind in scene
    ]
    for keys in groups:
        for key in keys:
            asked, signs = meaning(key)
            assert asked == "does" or (asked in ASKED and bool(signs) == (asked != "none"))
    for key, templates in words["plain"].items():
        for template in templates:
            assert all(f"{{{slot}}}" in template for slot in meaning(key)[1]), template


def number_of(prompt: Prompt, end: int) -> Fraction:
    """The number whose last run of digits ends there, without its sign."""
    written = ""
    for atom in prompt.atoms:
        run = prompt.text[atom.start : atom.end]
        between = prompt.text[atom.start - 1 : atom.start]
        written = written + between.replace(",", "") + run if atom.joins == 1 else run
        if atom.end == end:
            return Fraction(written)
    raise AssertionError


@pytest.mark.parametrize("split", SPLITS)
def test_the_marked_numbers_of_a_prompt_give_its_answer(split: str) -> None:
    rng, asks = random.Random(split), 0
    for prompt in (one for _ in range(300) for one in group(split, rng)):
        assert all(prompt.text[atom.start : atom.end].isdigit() for atom in prompt.atoms)
        marked = [atom for atom in prompt.atoms if atom.role > 0]
        if prompt.asked == ASKED.index("none"):
            assert not marked
            continue
        asks += 1
        values = [number_of(prompt, atom.end) * (1 if ROLES[atom.role] == "plus" else -1) for atom in marked]
        right = {"sum": sum, "larger": max, "smaller": min, "distance": lambda pair: abs(pair[0] - pair[1])}
        assert right[ASKED[prompt.asked]](values) == prompt.answer
    assert asks > 300


@pytest.mark.parametrize("split", SPLITS)
def test_what_is_told_comes_before_the_question_in_all_prompts_of_a_scene(split: str) -> None:
    rng = random.Random(split)
    for _ in range(50):
        prompts = [one for one in group(split, rng, "people") if one.kind != "cut"]
        told = {one.text[: one.told] for one in prompts}
        assert len(told) == 1
        assert len({one.text for one in prompts}) > 1


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=6))
def test_a_tree_has_the_tokens_of_each_text_and_shares_those_of_common_beginnings(rows: list[list[int]]) -> None:
    tree = Tree.of(rows)
    assert [[tree.tokens_U[node] for node in path] for path in tree.paths] == rows
    assert len(tree.tokens_U) == len({tuple(row[:end]) for row in rows for end in range(1, len(row) + 1)})
    sees = tree.sees()
    for path in tree.paths:
        for index, node in enumerate(path):
            assert sees[node].nonzero()[:, 0].tolist() == sorted(path[: index + 1])


@pytest.mark.parametrize("name", CELLS)
def test_the_cases_of_a_cell_depend_on_its_name_alone_and_ask_what_it_says(name: str) -> None:
    first, again = ([one.text for one in islice(cases("validation", name), 6)] for _ in range(2))
    assert first == again
    assert len(set(first)) > 3
    assert all((one.answer is None) == (name == "nothing is asked") for one in islice(cases("validation", name), 6))


def test_only_the_last_mention_of_a_number_counts() -> None:
    rng = random.Random(3)
    for prompt in (one for _ in range(200) for one in group("training", rng, "chat")):
        marked = [prompt.text[atom.start : atom.end] for atom in prompt.atoms if atom.role > 0]
        assert len(marked) <= 4
        assert all(atom.role in (UNKNOWN, 0, 1, 2) for atom in prompt.atoms)


def test_adapters_that_are_cut_to_their_own_rank_add_the_same_and_to_a_lower_rank_nearly() -> None:
    torch.manual_seed(0)
    up, down = torch.randn(30, 4), torch.randn(4, 20)
    down[3] *= 1e-3
    whole, less = (torch.matmul(*lower(up, down, rank)) for rank in (4, 3))
    torch.testing.assert_close(whole, up @ down, atol=1e-5, rtol=1e-4)
    assert 0 < (less - up @ down).norm() / (up @ down).norm() < 1e-2
