"""The pages of the findings: their front matter, their commands, and that data, page and figure agree."""

import importlib
import re
import shlex
from pathlib import Path

import pytest

from experiments.render import citing, rendered
from experiments.rendering.pages import Finding
from experiments.rendering.rows import read_rows
from lab.config.loading import load
from lab.errors import RunError
from lab.site.findings import findings, read
from lab.sweeping.config import SweepConfig

ROOT = Path(__file__).parents[1]
PAGES = findings(ROOT / "experiments")
CITING = "".join(page.read_text(encoding="utf-8") for page in citing(ROOT))
BY_HAND = ("carry-edges", "graft-heads", "heads-that-line-up", "many-tasks", "rule-lengths", "task-groups")
"""Pages whose table is not computed from their data yet; each of them says so."""
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
headline: 100 %
---
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("id: F-001", "id: F-1", "id: String should match pattern"),
        ("It adds.", "word " * 26, "claim: Value error, should have at most 25 words"),
        ("status: holds", "status: true", "status: Input should be 'holds', 'negative', 'open' or 'superseded'"),
        ("n: 100 sums\n", "", "n: Field required"),
        ("n: 100 sums", "n: 100 sums\nmood: good", "mood: Extra inputs are not permitted"),
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


def test_ids_and_claims_are_of_one_finding_each():
    assert 50 < len(PAGES) <= 60
    for said in ([page.finding.id for page in PAGES], [page.finding.claim for page in PAGES]):
        assert len(set(said)) == len(said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.parent.name)
def test_a_page_has_its_claim_its_parts_what_it_links_to_and_how_to_run_it_again(page):
    found, folder = page.finding, page.path.parent
    assert page.body.startswith(f"\n# {found.id}: {found.claim}\n")
    assert re.findall("^## (.*)", page.body, re.MULTILINE) == ["What must be said with it", "How to run it again"]
    assert page.body.endswith("```bash\n" + "\n".join(found.commands) + "\n```\n")
    assert (found.status == "superseded") == bool(re.search(r"^Superseded by \[F-\d{3}\]", page.body, re.M))
    assert any("Q4_1" in model for model in found.models) or not any("SmolLM2-135M" in model for model in found.models)
    linked = re.findall(r"\]\(([^)#:]+)\)", page.body)
    places = [ROOT / name for name in found.artefacts] + [folder / name for name in linked]
    assert [place for place in places if not place.exists()] == []


def test_every_page_and_figure_is_what_its_data_give():
    """Numbers, tables and figures of findings, the index, and numbers of findings in other pages."""
    differing = [file for file, text in rendered(ROOT, []) if not file.is_file() or file.read_text() != text]
    assert differing == [], "run: python -m experiments.render"


@pytest.mark.parametrize("folder", [page.path.parent for page in PAGES], ids=lambda folder: folder.name)
def test_a_finding_has_data_from_which_its_table_is_computed_and_every_slot_is_shown(folder):
    page, finding = (folder / "README.md").read_text(encoding="utf-8"), Finding(folder)
    assert (folder / "results.csv").is_file()
    assert [read_rows(file) for file in folder.glob("*.csv") if not file.name.startswith("table")]
    assert bool(finding.slots.tables) == (folder.name not in BY_HAND)
    assert "by hand" in page or finding.slots.tables
    assert not {slot for slot in finding.unused(page) if f" {slot}-->" not in CITING}


@pytest.mark.parametrize("command", sorted({command for page in PAGES for command in page.finding.commands}))
def test_each_command_starts_something_that_is_there_with_a_config_that_loads(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    words = [word for word in shlex.split(command) if not re.match(r"[A-Z_]+=", word)]
    if words[0] == "make":
        assert re.search(f"^{words[1]}:", Path("Makefile").read_text(), re.MULTILINE)
        return
    assert words[:2] == ["python", "-m"]
    module, arguments = words[2], words[3:]
    if module.startswith("experiments"):
        assert Path(*module.split(".")).with_suffix(".py").is_file()
        if module == "experiments.sweep":
            load(SweepConfig, ROOT / "configs" / "sweeps" / f"{arguments[0]}.yaml", [])
    elif any(word.endswith(".yaml") for word in arguments):
        with pytest.raises(SystemExit) as stopped:
            importlib.import_module(module).main([*arguments, "--dry-run"])
        assert stopped.value.code == 0
