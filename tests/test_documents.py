"""What the documents say that can be looked up."""

import re
from pathlib import Path

import pytest

from lab.config.describing import help_text
from lab.config.evaluation import EvaluateConfig
from lab.numbers.operations import significant
from lab.numbers.representations import Integer
from lab.numbers.sampling import Cell, Problem, distinct_problems
from lab.numbers.tasks import TASKS
from lab.text.prompts import prompt

ROOT = Path(__file__).parents[1]
DEVIATIONS = (ROOT / "docs" / "deviations.md").read_text()
ROWS = [line.strip("| ").split(" | ") for line in DEVIATIONS.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_deviation_says_what_why_and_where_and_the_place_is_there(row):
    assert len(row) == 5
    assert all(row)
    assert (ROOT / row[4].strip("`")).is_file()


def test_settings_that_the_deviations_name_are_settings():
    known = {line.partition(":")[0] for line in help_text(EvaluateConfig).splitlines()}
    named = set(re.findall(r"(?<!/)\b(?:benchmark|sampling)\.[a-z_]+", DEVIATIONS))
    assert named
    assert named <= known


def exponents(key: str) -> list[list[int]]:
    drawn = [p for n in range(3, 21) for p in distinct_problems(Cell(TASKS[key], n), "test", 0, 30)]
    return [[int(text.partition("e")[2]) for text in (p.a, p.b or "", p.answer)] for p in drawn]


def test_deviations_of_scientific_numbers_are_what_is_drawn():
    products = exponents("multiply_hard_scientific")
    assert f"{100 * sum(answer > 99 for *_, answer in products) / len(products):.0f} % of the answers" in DEVIATIONS
    assert {min(a for a, *_ in products), max(a for a, *_ in products)} == {0, 99}
    assert {abs(a - b) for a, b, _ in exponents("add_scientific")} == set(range(6))
    assert {a - b for a, b, _ in exponents("sub_scientific")} == set(range(1, 6))


def test_deviations_of_the_text_are_what_is_written():
    asked = prompt(Problem("min", "integer", "12", "13", "12", 2))
    assert "like 123 . " in asked
    assert "Get the minimal number" in asked
    assert significant(Integer(55445), Integer(4)) == "5.545e4"


def test_no_document_is_cited_that_is_not_here():
    for path in ("pyproject.toml", "README.md", "docs/deviations.md"):
        text = (ROOT / path).read_text()
        sections = re.findall(r"\b([A-Z]{4,})(?:\.md)?,? (?:section|chapter)\b", text)
        cited = {f"{name}.md" for name in sections}
        cited |= set(re.findall(r"(?<![\w/])(?:docs|experiments)/[\w/.-]+\.md", text))
        assert not [name for name in cited if not (ROOT / name).exists()], path
