"""What the findings say, so far as it can be checked: their front matter, commands, artefacts and key figures."""

import importlib
import importlib.util
import re
import shlex
import sys
from pathlib import Path

import pytest

from lab.errors import RunError
from lab.site.findings import Page, findings, read

ROOT = Path(__file__).parents[1]
PAGES = findings(ROOT / "experiments")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
WITHOUT_WEIGHTS = ("F-040",)
"""Pages that name models whose cost is only calculated."""
FRONT = """---
id: F-001
claim: It adds.
status: holds
group: length
models: [a model]
seeds: 1
n: 100 sums
device: one core
date: 2026-11-22
commands: [make it]
artefacts: [made.md]
headline: 100 %
---
"""

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.parent.name)


def script(path: Path):
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def told(page: Page) -> str:
    """What a page says below its claim, without commands, figures and the addresses of links."""
    _, _, below = page.body.partition(page.finding.claim)
    text = re.sub(r"```.*?```|^!\[.*?$", "", below, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\]\([^)]*\)", "]", text)


def table(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def numbers(text: str) -> set[str]:
    return {number.rstrip(",") for number in NUMBER.findall(text)}


def test_ids_and_claims_are_of_one_finding_each():
    assert len(PAGES) > 30
    for said in ([page.finding.id for page in PAGES], [page.finding.claim for page in PAGES]):
        assert len(set(said)) == len(said)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("id: F-001", "id: F-1", "id: String should match pattern"),
        ("It adds.", "word " * 26, "claim: Value error, should have at most 25 words"),
        ("status: holds", "status: true", "status: Input should be 'holds', 'negative', 'open' or 'superseded'"),
        ("group: length", "group: width", "group: Input should be 'length'"),
        ("seeds: 1", "seeds: -1", "seeds: Input should be greater than or equal to 0"),
        ("n: 100 sums\n", "", "n: Field required"),
        ("n: 100 sums", "n: 100 sums\nmood: good", "mood: Extra inputs are not permitted"),
        ("[make it]", "[]", "commands: List should have at least 1 item"),
        ("n: 100 sums", "n: a: b", "mapping values are not allowed here"),
        ("---\n", "", "should begin with front matter between two lines of ---"),
    ],
)
def test_front_matter_that_is_incomplete_is_refused_in_a_line_that_names_the_page(tmp_path, old, new, said):
    page = tmp_path / "README.md"
    page.write_text(FRONT)
    assert read(page).finding.id == "F-001"
    page.write_text(FRONT.replace(old, new))
    with pytest.raises(RunError, match=re.escape(said)) as refused:
        read(page)
    assert str(refused.value).startswith(f"{page}: ")
    assert "\n" not in str(refused.value)


@every_page
def test_a_page_is_headed_by_its_claim_and_says_how_to_run_it_again(page):
    found = page.finding
    assert page.body.startswith(f"\n# {found.id}: {found.claim}\n")
    assert re.findall("^## (.*)", page.body, re.MULTILINE) == ["What must be said with it", "How to run it again"]
    assert page.body.endswith("```bash\n" + "\n".join(found.commands) + "\n```\n")


@every_page
def test_a_page_is_short(page):
    text = told(page)
    words = len(text.split()) - len(" ".join(table(text)).split())
    assert 150 <= words <= 250
    assert 1 <= len(table(text)) - 2 <= 8


@every_page
def test_each_artefact_and_each_page_or_figure_that_is_linked_is_there(page):
    linked = re.findall(r"\]\(([^)]*)\)", page.body)
    places = [ROOT / name for name in page.finding.artefacts] + [page.path.parent / name for name in linked]
    assert [place for place in places if not place.is_file()] == []


@every_page
def test_each_figure_of_a_page_is_one_of_its_artefacts(page):
    shown = {Path(name).name for name in re.findall(r"!\[.*?\]\((.*?)\)", page.body)}
    assert shown <= {Path(name).name for name in page.finding.artefacts}


@every_page
def test_each_number_of_the_headline_stands_below_the_claim(page):
    assert numbers(page.finding.headline)
    assert numbers(page.finding.headline) <= numbers(told(page))


@every_page
def test_a_page_about_the_embedded_model_says_that_its_weights_are_dequantized(page):
    named = [model for model in page.finding.models if "SmolLM2-135M" in model]
    assert not named or page.finding.id in WITHOUT_WEIGHTS or any("Q4_1" in model for model in named)


@every_page
def test_a_finding_that_is_superseded_says_by_which(page):
    assert (page.finding.status == "superseded") == bool(re.search(r"^Superseded by \[F-\d{3}\]", page.body, re.M))


NOW = [page.finding.commands for page in PAGES if not page.finding.commands[0].startswith("git checkout ")]
"""The commands of the pages whose programs are not gone."""


@pytest.mark.parametrize("command", sorted({command for commands in NOW for command in commands}))
def test_each_command_starts_something_that_is_there_with_a_config_that_loads(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    words = [word for word in shlex.split(command) if not re.match(r"[A-Z_]+=", word)]
    if words[0] == "make":
        assert re.search(f"^{words[1]}:", Path("Makefile").read_text(), re.MULTILINE)
        return
    assert words.pop(0) == "python"
    if words[0] == "-m":
        check_module(words[1], words[2:])
    else:
        check_script(Path(words[0]), words[1:], monkeypatch)


def check_module(name: str, arguments: list[str]) -> None:
    module = importlib.import_module(name)
    if not any(word.endswith(".yaml") for word in arguments):
        assert all(Path(word).is_file() for word in arguments if word.endswith(".py"))
        return
    with pytest.raises(SystemExit) as stopped:
        module.main([*arguments, "--dry-run"])
    assert stopped.value.code == 0


def check_script(path: Path, arguments: list[str], monkeypatch) -> None:
    assert path.is_file()
    if path.name != "sweep.py":
        return

    grid = script(ROOT / path)
    monkeypatch.setattr(grid, "sweep", lambda arguments: sys.exit(0))  # its config has been loaded by then
    with pytest.raises(SystemExit) as stopped:
        grid.main(arguments)
    assert stopped.value.code == 0


def test_the_index_is_what_the_generator_writes():
    written = (ROOT / "experiments" / "README.md").read_text()
    assert written == script(ROOT / "experiments" / "index.py").index(PAGES), "run: python experiments/index.py"
    assert all(f"findings/{page.path.parent.name}/README.md" in written for page in PAGES)
