"""`python -m lab.adder verify`: what is unusable, what qualifies, and what the shell learns of it."""

from pathlib import Path

import pytest

from lab.adder import main

SUBMISSIONS = Path(__file__).parent / "smallest_adder" / "submissions"


def refused(capsys, path: Path) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(path)])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_file_that_is_not_there_is_unusable(capsys, tmp_path):
    assert "there is no such file" in refused(capsys, tmp_path / "none.py")


def test_a_file_that_is_not_python_is_unusable(capsys, tmp_path):
    (tmp_path / "x.py").write_text("def (:\n")
    assert "not a Python file" in refused(capsys, tmp_path / "x.py")


def test_missing_exports_are_named(capsys, tmp_path):
    (tmp_path / "x.py").write_text("VOCAB_SIZE = 12\ndef encode(a, b): return []\n")
    assert "lacks build_model, decode, MAX_OUTPUT_LEN" in refused(capsys, tmp_path / "x.py")


def test_a_file_of_the_public_board_is_told_what_to_change(capsys):
    line = refused(capsys, SUBMISSIONS / "adderboard.py")
    assert "AdderBoard" in line
    assert "encode(a, b)" in line
    assert "VOCAB_SIZE and MAX_OUTPUT_LEN" in line


@pytest.mark.slow
@pytest.mark.parametrize(("name", "status"), [("honest_by_hand", 0), ("cheat_sum_in_prompt", 1)])
def test_the_exit_status_tells_whether_it_qualifies(name, status, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(SUBMISSIONS / f"{name}.py"), "seed=2025"])
    assert ended.value.code == status
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == ("not qualified" if status else "qualified")
    assert "of 10,010 (seed 2025)" in said


HOSTILE = """An adder.</script><script>alert(1)</script>

Category: trained</script>
"""


@pytest.mark.slow
def test_the_leaderboard_has_the_good_the_bad_and_the_hostile_and_tries_each_once(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    good = (SUBMISSIONS / "honest_by_hand.py").read_text()
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "submission.py").write_text(good)
    (tmp_path / "bad.py").write_text((SUBMISSIONS / "bad_exits.py").read_text())
    hostile = "x<" + "script>alert(2)<" + "script>"
    (tmp_path / f"{hostile}.py").write_text('"""' + HOSTILE + '"""\n' + good.partition('"""\n')[2])
    (tmp_path / "broken.py").write_text("def (:")
    (tmp_path / "adderboard.py").write_text((SUBMISSIONS / "adderboard.py").read_text())
    main(["leaderboard", str(tmp_path), f"out={tmp_path / 'out'}"])
    stored = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache" / "verdicts").iterdir()}
    assert len(stored) == 3
    page = (tmp_path / "out" / "leaderboard.html").read_text()
    assert "<script" not in page
    assert page.count("<tr class=good>") == 2
    assert "0 of 15" in page
    main(["leaderboard", str(tmp_path), f"out={tmp_path / 'out'}"])
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache" / "verdicts").iterdir()} == stored
    assert (tmp_path / "out" / "leaderboard.html").read_text() == page
    assert "Published records" in (tmp_path / "out" / "leaderboard.md").read_text()
