import subprocess
import sys

import pytest

from lab.report import main
from tests.site.site_runs import SCRATCH, write_run


def test_the_command_writes_a_site_and_says_where_it_is(runs, tmp_path, capsys):
    main([str(runs), f"out={tmp_path / 'report'}"])
    printed = capsys.readouterr().out
    assert f"7 runs; open {tmp_path / 'report' / 'index.html'}" in printed
    assert "old: summary.json: from another version of the lab" in printed
    assert "damaged: samples.jsonl: 1 line without a sample" in printed
    page = (tmp_path / "report" / "index.html").read_text()
    assert "http" not in page
    assert "python -m" not in page
    assert "s over several seeds, with Wilson" in page
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_one_run_is_one_run(runs, tmp_path, capsys):
    main([str(runs / "first"), f"out={tmp_path / 'report'}"])
    assert capsys.readouterr().out == f"1 run; open {tmp_path / 'report' / 'index.html'}\n"


def test_a_site_is_replaced_and_any_other_folder_is_left_alone(runs, tmp_path, capsys):
    arguments = [str(runs / "first")]
    main([*arguments, f"out={tmp_path / 'site'}"])
    stale = tmp_path / "site" / "runs" / "99"
    stale.mkdir(parents=True)
    main([*arguments, f"out={tmp_path / 'site'}"])
    assert not stale.exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("my own page")
    (tmp_path / "file").write_text("a file")
    for name, said in (("mine", "not a site of the lab"), ("file", "is a file")):
        with pytest.raises(SystemExit) as stopped:
            main([*arguments, f"out={tmp_path / name}"])
        assert stopped.value.code == 2
        assert said in capsys.readouterr().err
    assert (tmp_path / "mine" / "index.html").read_text() == "my own page"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine", "site"]


def test_bad_input_is_one_line_and_writes_nothing(tmp_path, capsys):
    for folder, said in ((tmp_path / "absent", "there is no such folder"), (tmp_path, "no run directory there")):
        with pytest.raises(SystemExit) as stopped:
            main([str(folder), f"out={tmp_path / 'report'}"])
        assert stopped.value.code == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_no_torch_is_imported():
    code = "import sys, lab.site.pages, lab.site.gather; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_site_that_is_watched_is_written_until_no_run_is_running(tmp_path, capsys, monkeypatch):
    status = write_run(tmp_path / "runs", "going", SCRATCH, "running") / "status"
    monkeypatch.setattr("lab.report.time.sleep", lambda seconds: status.write_text("finished\n"))
    main([str(tmp_path / "runs"), f"out={tmp_path / 'site'}", "watch=30"])
    assert capsys.readouterr().out.splitlines()[1:] == ["1 run running; again in 30 s"]
    (index,) = (tmp_path / "site").glob("*/index/0.js")
    assert '"status":"finished"' in index.read_text()
