"""Verdicts are kept in the lab's cache, and made again when the submission or the verifier has changed."""

import json
from pathlib import Path

import pytest

from lab.errors import TaskError
from lab.smallest_adder import stored_verdicts
from lab.smallest_adder.contract import category, seeds
from lab.smallest_adder.trace.child import Limits
from lab.smallest_adder.verdict import Verdict, Verification

SUBMISSIONS = Path(__file__).parent / "submissions"


@pytest.fixture
def cache(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "verdicts"


@pytest.fixture
def tried(monkeypatch, cache) -> list[str]:
    """The sources that were verified; no process is started."""
    sources: list[str] = []

    def verify(source: str, limits: Limits) -> Verification:
        sources.append(source)
        return Verification([Verdict("accuracy", False, "why")], 3, 10, 7, None, None, 1.0, ["seccomp"])

    monkeypatch.setattr("lab.smallest_adder.verify.verify", verify)
    return sources


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "submission.py"
    path.write_text((SUBMISSIONS / "honest_by_hand.py").read_text())
    return path


def test_a_verdict_is_made_once(path, tried):
    first = stored_verdicts.verdict_of(path, Limits())
    assert stored_verdicts.verdict_of(path, Limits()) == first
    assert len(tried) == 1
    assert first["right"] == 3


def test_another_source_or_another_verifier_makes_it_again(path, tried, monkeypatch):
    stored_verdicts.verdict_of(path, Limits())
    path.write_text(path.read_text() + "# changed\n")
    stored_verdicts.verdict_of(path, Limits())
    monkeypatch.setattr(stored_verdicts, "VERSION", -1)
    stored_verdicts.verdict_of(path, Limits())
    assert len(tried) == 3


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"version": 2}'])
def test_a_stored_file_that_is_no_verdict_is_made_again(path, tried, cache, text):
    stored_verdicts.verdict_of(path, Limits())
    (kept,) = cache.iterdir()
    kept.write_text(text)
    assert stored_verdicts.known(path) is None
    stored_verdicts.verdict_of(path, Limits())
    assert len(tried) == 2
    assert json.loads(kept.read_text())["problems"] == 10


def test_a_verdict_that_lies_beside_a_submission_is_not_believed(path, tried):
    forged = stored_verdicts.verdict_of(path, Limits()) | {"qualified": True, "right": 10_010}
    path.write_text(path.read_text() + "# another\n")
    path.with_suffix(".verdict.json").write_text(json.dumps(forged))
    assert stored_verdicts.known(path) is None
    assert stored_verdicts.verdict_of(path, Limits())["qualified"] is False


def test_submissions_are_found_and_other_files_passed_over(path, tmp_path):
    (tmp_path / "broken.py").write_text("def (:")
    (tmp_path / "other.py").write_text("x = 1")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    (tmp_path / "small.py").write_text(path.read_text())
    assert list(stored_verdicts.submissions([tmp_path])) == [("run", path), ("small", tmp_path / "small.py")]


def test_a_folder_that_is_not_there_is_the_users_mistake(tmp_path):
    with pytest.raises(TaskError, match="there is no such folder"):
        list(stored_verdicts.submissions([tmp_path / "none"]))


@pytest.mark.parametrize(
    ("source", "stated"),
    [
        ("CATEGORY = 'trained'", "trained"),
        ('"""An adder.\n\nCategory: hand-coded.\n"""', "hand-coded"),
        ("CATEGORY = '<b>best</b>'", "unstated"),
        ("CATEGORY = open('x')", "unstated"),
        ("", "unstated"),
    ],
)
def test_the_category_is_one_of_two_as_the_file_states_it(source, stated):
    assert category(source) == stated


@pytest.mark.parametrize(
    ("source", "stated"),
    [
        ('"""An adder.\n\nSeeds: 40.\n"""', 40),
        ('"""Seeds: many"""', None),
        ("", None),
        ('"""Seeds: ' + "9" * 5000 + '"""', None),
    ],
)
def test_how_many_seeds_there_were_is_what_the_file_states(source, stated):
    assert seeds(source) == stated
