"""What the documents say, so far as it can be checked."""

import os
import re
import shlex
from pathlib import Path

import pytest

from lab.command import COMMANDS, find_config, with_smoke
from lab.config.describing import help_text
from lab.config.evaluation import EvaluateConfig
from lab.config.loading import load
from lab.config.parts import MODULES, section_of
from lab.numbers.operations import significant
from lab.numbers.representations import Integer
from lab.numbers.sampling import Cell, Problem, distinct_problems
from lab.numbers.tasks import TASKS
from lab.sweeping.config import COMMANDS as SWEEPABLE
from lab.sweeping.config import SweepConfig
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


PAGES = ["README.md", "CONTRIBUTING.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
SCHEMAS = {"sweep": SweepConfig, **{name: command.schema for name, command in SWEEPABLE.items()}}
NOT_OF_THE_CONFIG = ("export=", "out=")
ADDED_BY_TUTORIALS = ("gcd_integer", "[resting]")
"""What the lab knows only after a tutorial has been followed (tests/test_tutorials.py)."""


def code(text: str) -> list[str]:
    """Lines of fenced blocks, and what stands between backticks elsewhere."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    lines = [line for block in fenced for line in block.replace("\\\n", " ").splitlines()]
    return lines + re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Every command of the lab that a text names, with the words after it. Words in capitals are placeholders."""
    found = [re.match(r"(?:[A-Z_]+=\S+ )?(?:lab |.*?-m lab\.)([a-z]+)\b(.*)", line) for line in code(text)]
    return [(match[1], words(match[2])) for match in found if match]


def words(rest: str) -> list[str]:
    """The words of a command. If the command itself stands in single quotes, the closing one is removed."""
    return shlex.split(rest.removesuffix("'") if rest.count("'") % 2 else rest, comments=True)


NAMED = [(page, name, words) for page, text in TEXTS.items() for name, words in commands(text)]


@pytest.mark.parametrize(("page", "name", "words"), NAMED, ids=lambda part: part if isinstance(part, str) else None)
def test_every_command_that_a_page_names_is_one_and_its_config_loads(page, name, words):
    assert name in COMMANDS
    words = words[1:] if words[:1] == ["train"] else words
    if (
        name not in SCHEMAS
        or not words
        or words[0].startswith(("-", "checkpoints", "verify", "import", "leaderboard", "benchmark", "CONFIG"))
    ):
        return
    of_the_config = [word for word in words[1:] if not word.startswith(("-", *NOT_OF_THE_CONFIG)) and "..." not in word]
    changes = [word for word in of_the_config if not any(name in word for name in ADDED_BY_TUTORIALS)]
    load(SCHEMAS[name], find_config(words[0]), with_smoke(SCHEMAS[name], changes))


def test_pages_name_enough_commands_for_that_test_to_say_something():
    assert {name for _, name, _ in NAMED} == set(COMMANDS)


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_of_a_page_leads_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", TEXTS[page])
    paths = [link.partition("#")[0] for link in links if "://" not in link]
    assert not [path for path in paths if path and not (ROOT / page).parent.joinpath(path).exists()]


def linked(page: str) -> set[str]:
    """The files that a page links to, by their path in the repository."""
    links = {
        link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    }
    return {os.path.normpath(Path(page).parent / link) for link in links if link and "://" not in link}


def test_the_readme_is_read_in_five_minutes_and_installs_before_it_asks():
    assert len(TEXTS["README.md"].split()) <= 900
    assert TEXTS["README.md"].index("make finetune") < TEXTS["README.md"].index("lab ask")


@pytest.mark.parametrize("start", ["README.md", "docs/index.md"])
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what did they find?", "experiments/README.md"),
        ("how do I run it on my model?", "docs/guides/evaluate.md"),
        ("which head carries?", "experiments/carry-head-of-smollm2/README.md"),
        ("how sure is that?", "docs/concepts.md"),
        ("how do I add a task?", "docs/tutorials/add-a-task.md"),
    ],
)
def test_what_a_newcomer_asks_is_answered_within_two_clicks(start, question, answer):
    first = {page for page in linked(start) if page.endswith(".md")}
    assert answer in first.union(*map(linked, first)), question


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page):
    named = re.findall(
        r"(?<![\w/])(?:lab|configs|experiments|tests|docs)/[\w./-]*\.(?:py|yaml|md|csv|png)\b", TEXTS[page]
    )
    assert not [path for path in named if not (ROOT / path).exists()]


def test_settings_that_pages_change_beside_a_config_are_settings():
    for kind in MODULES:
        section_of(kind)  # help shows the keys of parts that are imported
    lines = [line for schema in SCHEMAS.values() for line in help_text(schema).splitlines()]
    known = {line.partition(":")[0] for line in lines} | {"key.sub"}
    known |= {
        f"{key}.kind" for key, _, what in (line.partition(": ") for line in lines) if what.startswith("mapping of kind")
    }
    named = {
        key for text in TEXTS.values() for key in re.findall(r"(?<![\w./])([a-z_]+\.[a-z_.]+)=", "\n".join(code(text)))
    }
    assert len(named) > 40
    assert named <= known


@pytest.mark.parametrize(
    "card", sorted((ROOT / "checkpoints" / "zoo").glob("*/adapter_config.json")), ids=lambda card: card.parent.name
)
def test_the_card_of_a_tuned_model_says_what_finds_its_numbers_and_which_weights_it_was_tuned_from(card):
    said = card.with_name("README.md").read_text(encoding="utf-8")
    assert "## What it is not" in said
    assert "lab/text/places.py" in said
    assert "Q4_1" in said
