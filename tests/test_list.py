import importlib.util
from pathlib import Path

import pytest

from lab.command import COMMANDS
from lab.config.commands import command_of
from lab.config.loading import keys_of
from lab.config.parts import MODULES
from lab.list import left_open, main, purpose
from lab.numbers.representations import Float, Integer
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


def test_what_prompts_leave_open_is_decided_as_the_list_and_the_guide_say(capsys):
    decided = {row[0]: str(row[1]).split(", ") for row in left_open().rows}
    guide = (Path(__file__).parents[1] / "docs/guides/ask-and-list.md").read_text(encoding="utf-8")
    for decision, tasks in decided.items():
        assert f"| {decision} | {', '.join(f'`{task}`' for task in tasks)} |" in guide
    # an example of each, from the task itself
    for task, operands, answer in (
        ("digit_max_integer", (Integer(5), Integer(23)), "25"),
        ("digit_min_integer", (Integer(105), Integer(22)), "2"),
        ("digit_add_integer", (Integer(95), Integer(15)), "0"),
        ("digit_add_float", (Float.parse("44.418"), Float.parse("65.669")), "9.077"),
        ("get_digit_float", (Float.parse("12.34"), Integer(2)), "3"),
        ("length_float", (Float.parse("12.34"), None), "4"),
        ("truediv_integer", (Integer(6), Integer(3)), "2/1"),
        ("add_float", (Float.parse("1.5"), Float.parse("1.5")), "3.0"),
        ("to_scient_integer", (Integer(300000), None), "3.0e5"),
        ("sig_integer", (Integer(55445), Integer(4)), "5.545e4"),
    ):
        assert str(TASKS[task].solve(*operands)) == answer
        assert any(task in tasks for tasks in decided.values())
    main(["tasks"])
    assert "leave open" in capsys.readouterr().out


@pytest.mark.parametrize("path", shipped_configs().values(), ids=lambda path: path.stem)
def test_every_shipped_config_says_what_it_is_for_and_has_a_command(path):
    assert command_of(keys_of(path))
    assert len(purpose(path)) > 15


def test_every_part_is_listed_with_its_keys(capsys):
    main(["parts"])
    listed = capsys.readouterr().out
    assert all(f"parts.{kind}\n" in listed for kind in MODULES)
    assert "    heads: integer >= 1 (required)\n" in listed


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
