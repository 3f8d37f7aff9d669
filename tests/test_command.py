import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.command import COMMANDS, find_config, main, read_config, read_options
from lab.config.commands import command_of
from lab.config.describing import help_text
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import keys_of, load
from lab.config.schema import RunConfig, Section
from lab.errors import ConfigError
from lab.probe import main as probe
from lab.shipped import shipped_configs
from lab.sweeping.config import COMMANDS as SWEPT


class Job(RunConfig):
    COMMAND = "work"
    SMOKE = ("steps=1",)

    steps: int = 100
    """How many."""


class Options(Section):
    out: Path = Path("here")


@pytest.fixture
def config(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text("name: a")
    return "c.yaml"


@pytest.mark.parametrize("words", [["--help"], ["c.yaml", "-h"]])
def test_asking_for_help_prints_every_key_and_succeeds(capsys, words):
    with pytest.raises(SystemExit) as exit:
        read_config(Job, words, "lab work", "Work.")
    assert exit.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: lab work CONFIG [key.sub=value ...] [smoke=true] [--dry-run]\n\nWork.\n\n")
    assert help_text(Job) in out


@pytest.mark.parametrize("words", [[], ["resume=true"], ["--config"]])
def test_a_command_without_a_config_says_how_it_is_used(words):
    with pytest.raises(ConfigError, match=r"^the first argument must be a config: .*; usage: lab work CONFIG"):
        read_config(Job, words, "lab work", "")


def test_a_command_line_loads_its_config(config):
    assert read_config(Job, [config, "steps=3"], "lab work", "") == Job(name="a", steps=3)


def test_a_smoke_run_is_small_has_a_name_of_its_own_and_yields_to_what_the_user_says(config):
    small = read_config(Job, [config, "smoke=true"], "lab work", "")
    assert small == Job(name="a_smoke", steps=1, overwrite=True)
    said = read_config(Job, [config, "smoke=true", "steps=2", "name=mine", "resume=true"], "lab work", "")
    assert said == Job(name="mine", steps=2, resume=True)
    named = read_config(Job, [config, "smoke=true", "name=mine"], "lab work", "")
    assert named == Job(name="mine", steps=1)  # a run of the user's own is not replaced


def test_a_dry_run_prints_a_config_that_loads_as_the_same_one(config, capsys, tmp_path):
    with pytest.raises(SystemExit) as exit:
        read_config(Job, [config, "--dry-run", "steps=3"], "lab work", "")
    assert exit.value.code == 0
    (tmp_path / "printed.yaml").write_text(capsys.readouterr().out)
    assert load(Job, tmp_path / "printed.yaml") == Job(name="a", steps=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.yaml", "printed.yaml"]


def test_a_shipped_config_is_found_by_name_from_any_folder_and_a_file_here_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_config("smollm2_lora").name == "smollm2_lora.yaml"
    assert find_config("sweeps/locality").parent.name == "sweeps"
    assert load(FinetuneConfig, find_config("smollm2_lora")).name == "smollm2_lora"
    Path("smollm2_lora.yaml").write_text("name: mine")
    assert find_config("smollm2_lora.yaml") == Path("smollm2_lora.yaml")


def test_a_mistyped_name_is_refused_in_one_line_with_a_suggestion():
    with pytest.raises(ConfigError, match=r"^smollm2_lorra: neither .* config, did you mean smollm2_lora\? `lab list"):
        find_config("smollm2_lorra")


def test_every_command_that_makes_runs_has_a_small_version_that_its_shipped_configs_accept():
    for name, file in shipped_configs().items():
        if name == "probe_benchmark":  # a config of lab probe benchmark, which has no small version
            continue
        if command := SWEPT.get(command_of(keys_of(file)) or ""):
            assert read_config(command.schema, [name, "smoke=true"], "lab", "").name.endswith("_smoke")


def test_options_are_read_by_their_schema_and_words_are_left():
    assert read_options(Options, ["a", "out=b"], "lab show", "") == (["a"], Options(out=Path("b")))
    for question in ("12 + 34 =", "-5 + 3", "what is 3 + 4 = " * 50):
        assert read_options(Options, [question], "lab show", "")[0] == [question]
    with pytest.raises(ConfigError, match="no such key"):
        read_options(Options, ["x=y" * 200], "lab show", "")  # longer than the name of a file may be
    with pytest.raises(ConfigError, match="--out: options are written key=value"):
        read_options(Options, ["--out", "b"], "lab show", "")
    with pytest.raises(ConfigError, match="no such key, did you mean out"):
        read_options(Options, ["ou=b"], "lab show", "")


def test_the_console_script_lists_its_commands_and_names_the_nearest(capsys):
    main([])
    listed = capsys.readouterr().out
    assert all(name in listed for name in COMMANDS)
    with pytest.raises(SystemExit):
        main(["finetun"])
    error = capsys.readouterr().err
    assert error.startswith("error: no command 'finetun', did you mean finetune? Commands: ")
    assert error.count("\n") == 1


def test_a_command_line_is_read_without_torch():
    code = "import sys, lab.command; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_version_is_printed(capsys):
    main(["--version"])
    assert re.fullmatch(r"number-lab \d+\.\d+\.\d+\n", capsys.readouterr().out)


@pytest.mark.parametrize("command", ["finetune", "pretrain", "evaluate", "cost", "probe", "sweep"])
@pytest.mark.parametrize("name", ["smollm2_lora", "scratch_add", "two_integers", "cot_vs_direct", "probe_scratch"])
def test_a_config_of_another_command_is_one_line_that_names_the_command(name, command, capsys):
    own = command_of(keys_of(find_config(name)))
    if own == command:
        return
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"lab.{command}").main([name])
    assert ended.value.code == 2
    told = f"error: {name}: a config of lab {own}, not of lab {command}; this starts it: lab {own} {name}\n"
    assert capsys.readouterr().err == told


def test_a_mistake_in_a_config_of_the_right_command_is_still_told(tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text("name: mine\nmodel: {name: smollm2-135m-instruct}\nformat: {revers: total}\n")
    with pytest.raises(ConfigError, match="no such key, did you mean reverse"):
        read_config(FinetuneConfig, [str(config)], "lab finetune", "")


MAKERS = [("probe", "probe_scratch", "pretrain scratch_add"), ("cost", "cot_vs_direct", "finetune smollm2_direct")]


@pytest.mark.parametrize(("command", "name", "maker"), MAKERS)
def test_a_run_that_does_not_exist_is_told_with_its_command(command, name, maker, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # where there is no folder of runs
    with pytest.raises(SystemExit):
        importlib.import_module(f"lab.{command}").main([name])
    assert capsys.readouterr().err.endswith(f"there is no such folder; lab {maker} makes it\n")


def test_a_list_where_keys_belong_is_told_the_keys():
    with pytest.raises(ConfigError, match=r"data.lengths = \[5, 1\]: should have keys: lengths={hard: list, easy"):
        read_config(FinetuneConfig, ["smollm2_lora", "data.lengths=[5,1]"], "lab finetune", "")


def test_a_template_that_a_model_from_scratch_would_ignore_is_refused(capsys):
    with pytest.raises(SystemExit):
        probe(["probe_scratch", "subject=zoo/adds-1000", 'sums.template="{a} + {b} = "', "name=never"])
    assert "it is a model from scratch: leave sums.template out\n" in capsys.readouterr().err
