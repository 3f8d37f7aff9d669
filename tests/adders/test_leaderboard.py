"""The leaderboard ranks declared adders and Python apart, shows hostile names as text, and goes on whatever a file does."""  # noqa: E501

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lab.adder import main
from lab.adders import leaderboard
from lab.adders.leaderboard import adders, boards, known, published, verdict_of, write
from lab.adders.verdict import FOREIGN, Looks, Verdict
from lab.errors import TaskError
from tests.adders.test_challenge import HONEST, harmful

ROOT = Path(__file__).parents[2]
HOSTILE = "x</script><script>alert(1)</script>|y\n# z"
RECORD = ROOT / "experiments" / "plain-adder" / "adder_47.json"


def verdict(parameters: int | None = 56, right: int = 10_010, form: str = "declared", **more: object) -> Verdict:
    looks = Looks("transformer", 0.2, 0.1, 0.0, 1000) if form == "declared" else None
    own = {"objections": [], "verified": "2026-01-01"} | more
    return Verdict(form, right, 10_010, 1, parameters, parameters, looks, "trained", 40, **own)  # type: ignore[arg-type]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.seen.add(tag)


def test_the_smallest_that_qualifies_is_first_and_the_earlier_of_two_alike_and_python_is_apart():
    shown = boards(
        {
            "large": verdict(100),
            "late": verdict(verified="2026-02-02"),
            "wrong": verdict(1, right=12),
            "early": verdict(),
            "foreign": verdict(2, form="python"),
            "broken": verdict(None, 0, "python", objections=["died"]),
        }
    )
    declared, python, records = (table for table, _ in shown)
    assert [(row[0], row[1]) for row in declared.rows] == [
        ("1", "early"),
        ("2", "late"),
        ("3", "large"),
        ("-", "wrong"),
    ]
    assert declared.better == {0, 1, 2}
    assert [(row[0], row[1], row[-1]) for row in python.rows] == [("1", "foreign", ""), ("-", "broken", "died")]
    assert FOREIGN in python.title
    assert "cannot exclude" in shown[1][1]
    assert records.title == "Published records"


def test_hostile_names_and_reasons_are_text_in_both_files(tmp_path):
    write({HOSTILE: verdict(5, form="python", objections=[HOSTILE])}, tmp_path)
    page = (tmp_path / "leaderboard.html").read_text()
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.seen
    assert "&lt;script&gt;alert(1)" in page
    markdown = (tmp_path / "leaderboard.md").read_text()
    assert "<script" not in markdown
    assert "\n# z" not in markdown
    assert "prefers-color-scheme: dark" in page
    assert not any(word in page for word in ("http", "src=", "href=", "@import", "url("))


def test_published_records_are_a_table_of_their_own():
    rows = published().rows
    assert ("trained", "on the board", "March 2026, the smallest", "36") in rows
    assert ("trained", "claimed", "board issue 83", "28") in rows
    assert ("hand-coded", "submitted", "board issue 71", "1") in rows


@pytest.fixture
def cache(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "verdicts"


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "adder.json"
    path.write_text(RECORD.read_text())
    return path


def test_a_verdict_is_made_once_and_again_for_another_file_or_another_judge(path, cache, monkeypatch):
    made: list[Path] = []

    def judge(path: Path) -> Verdict:
        made.append(path)
        return verdict()

    assert verdict_of(path, judge) == verdict_of(path, judge) == known(path)
    assert len(made) == 1
    path.write_text(path.read_text() + " ")
    verdict_of(path, judge)
    monkeypatch.setattr(leaderboard, "VERSION", -1)
    verdict_of(path, judge)
    assert len(made) == 3


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"looks": 3}', '{"form": "declared"}'])
def test_a_stored_file_that_is_no_verdict_is_made_again(path, cache, text):
    verdict_of(path, lambda path: verdict())
    (kept,) = cache.iterdir()
    kept.write_text(text)
    assert known(path) is None
    assert verdict_of(path, lambda path: verdict(7)).parameters == 7


def test_adders_are_found_and_other_files_passed_over(path, tmp_path):
    (tmp_path / "broken.py").write_text("def (:")
    (tmp_path / "other.json").write_text('{"x": 1}')
    (tmp_path / "config.yaml").write_text("x: 1")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    (tmp_path / "small.py").write_text(HONEST)
    assert list(adders([tmp_path])) == [("run", path), ("small.py", tmp_path / "small.py")]
    with pytest.raises(TaskError, match="there is no such folder"):
        list(adders([tmp_path / "none"]))


@pytest.mark.slow
def test_the_board_of_good_bad_and_hostile_files_is_written_and_each_is_judged_once(path, cache, tmp_path, capsys):
    (tmp_path / "honest.py").write_text(HONEST)
    for name in ("dies of a signal", "exits", "raises SystemExit"):
        (tmp_path / f"{name}.py").write_text(harmful(name))
    (tmp_path / "bad.json").write_text(json.dumps({"numbers": {}, "prompt": []}))
    main(["leaderboard", str(tmp_path), f"out={tmp_path / 'out'}", "seconds=60"])
    said = capsys.readouterr()
    assert "2 of 5 adders qualify" in said.out
    assert "error: 'bad': no verdict: " in said.err
    page = (tmp_path / "out" / "leaderboard.html").read_text()
    assert page.count("<tr class=good>") == 2
    stored = {kept.name: kept.stat().st_mtime_ns for kept in cache.iterdir()}
    assert len(stored) == 5
    main(["leaderboard", str(tmp_path), f"out={tmp_path / 'out'}"])
    assert {kept.name: kept.stat().st_mtime_ns for kept in cache.iterdir()} == stored
    assert (tmp_path / "out" / "leaderboard.html").read_text() == page
