import importlib.util
from pathlib import Path

import pytest

from lab.command import COMMANDS
from lab.config.commands import command_of
from lab.config.loading import keys_of
from lab.list import main, opening
from lab.numbers.tasks import TASKS
from lab.runs import Run
from lab.shipped import shipped_configs

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_every_task_is_listed_with_an_example_that_is_right(capsys):
    main(["tasks"])
    listed = capsys.readouterr().out
    assert all(f" {key} " in listed for key in TASKS)
    assert "50, 7287" in listed
    assert "7337" in listed


@pytest.mark.parametrize("path", shipped_configs().values(), ids=lambda path: path.stem)
def test_every_shipped_config_says_what_it_is_for_and_has_a_command(path):
    assert command_of(keys_of(path))
    assert len(opening(path)) > 15


def test_runs_are_listed_with_their_status(capsys, tmp_path):
    with Run.open(tmp_path / "first", "name: first\nadapter: {}\n"):
        pass
    main(["runs", str(tmp_path)])
    listed = capsys.readouterr().out
    assert "first" in listed
    assert "finetune" in listed
    assert "finished" in listed


def test_a_fresh_clone_and_an_empty_folder_have_no_runs_and_that_is_no_error(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    main(["runs", "checkpoints/zoo"])
    assert capsys.readouterr().out == "no runs in checkpoints/zoo\n"
    monkeypatch.chdir(tmp_path)
    main(["runs"])
    assert capsys.readouterr().out == "no runs in checkpoints\n"
    main(["runs", str(tmp_path)])
    assert "no runs in" in capsys.readouterr().out


def test_a_run_whose_status_was_lost_is_still_a_run(capsys, tmp_path):
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "config.yaml").write_text("name: lost\nformat: {}\n")
    main(["runs", str(tmp_path)])
    assert "damaged" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["--help"], ["runs", "--help"], ["tasks", "-h"]])
def test_help_is_printed_wherever_it_is_asked_for(words, capsys):
    main(words)
    assert "lab list runs [FOLDER ...]" in capsys.readouterr().out


def test_every_command_is_a_module_of_its_name():
    assert all(importlib.util.find_spec(f"lab.{name}") for name in COMMANDS)


@pytest.mark.parametrize("words", [["taks"], ["runs", "nowhere"]])
def test_what_cannot_be_listed_is_one_line(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit:
        main(words)
    assert exit.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(Path().iterdir())
