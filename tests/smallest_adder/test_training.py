"""`python -m lab.adder train`: a run, its submission, and what can go wrong on the way."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import lab
from lab.adder import main
from lab.export import main as export
from lab.smallest_adder.contract import read_submission
from tests.records import records

ROOT = Path(__file__).parents[2]
SMALL = ["training.max_steps=4", "training.batch_size=8", "training.evaluate_every=2", "training.valid_problems=16"]
GROUP = ["group.seeds=4", "group.halvings=[[2, 2]]"]


def train(tmp_path: Path, config: str, *more: str) -> Path:
    main(["train", str(ROOT / "configs" / f"{config}.yaml"), *SMALL, f"output={tmp_path}", "name=run", *more])
    return tmp_path / "run"


def test_a_run_leaves_metrics_a_summary_and_a_submission_that_can_be_tried(tmp_path, capsys):
    path = train(tmp_path, "adder_gpt", "group.seeds=1", "group.halvings=[]")
    printed = capsys.readouterr().out
    assert "2,912 parameters" in printed
    assert f"lab adder verify {path / 'submission.py'}" in printed
    assert (path / "status").read_text() == "finished\n"
    steps = records(path / "metrics.jsonl")
    assert [step["step"] for step in steps] == [2, 4]
    summary = json.loads((path / "summary.json").read_text())
    assert (summary["parameters"], summary["exact_match"]["n"]) == (2912, 10_010)
    assert "AdamW, 4 steps of 8 problems" in read_submission(path / "submission.py")


@pytest.mark.slow
def test_a_run_is_asked_as_it_stands_and_exported_with_the_figure_of_its_rounded_weights(tmp_path, capsys):
    path = train(tmp_path, "adder_arc", *GROUP)
    whole = lab.load(str(path))
    assert int(whole.ask("12 + 34")) >= 0
    export([str(path), str(tmp_path / "zoo" / "mine")])
    export([str(path), str(tmp_path / "rounded"), "dtype=bfloat16"])
    assert "mine: adder, float32, 2 kB" in capsys.readouterr().out
    card = (tmp_path / "zoo" / "mine" / "README.md").read_text()
    assert 'lab.load("zoo/mine")' in card
    assert "of 10,010 sums are right" in card
    pairs = [(12, 34), (5_555_555_555, 4_444_444_445), (9, 1)]
    assert lab.load(str(tmp_path / "zoo" / "mine")).engine.add(pairs) == whole.engine.add(pairs)
    weights = load_file(tmp_path / "rounded" / "model" / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.bfloat16}


def test_an_adder_has_one_form_and_a_run_without_a_model_none(tmp_path, capsys):
    path = train(tmp_path, "adder_arc", *GROUP)
    for arguments, said in ((["to=merged"], "exported with to=scratch"), ([], "this run has no model")):
        if not arguments:
            (path / "model" / "model.safetensors").unlink()
        with pytest.raises(SystemExit) as ended:
            export([str(path), str(tmp_path / "out"), *arguments])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_same_seed_writes_the_same_file_and_another_seed_another(tmp_path):
    files = [
        train(tmp_path / name, "adder_arc", *GROUP, f"seed={seed}") / "submission.py"
        for name, seed in (("one", 0), ("again", 0), ("other", 1))
    ]
    one, again, other = [file.read_bytes() for file in files]
    assert one == again != other


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tmp_path, monkeypatch):
    whole = train(tmp_path / "whole", "adder_record", *GROUP)

    from lab.smallest_adder.groups import Group

    class Killed(BaseException):
        pass

    update = Group.update

    def killed_at_the_fourth_step(self, *given):
        if self.step == 3:
            raise Killed
        update(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Group, "update", killed_at_the_fourth_step)
        with pytest.raises(Killed):
            train(tmp_path / "cut", "adder_record", *GROUP)
    cut = tmp_path / "cut" / "run"
    assert (cut / "status").read_text() == "running\n"
    train(tmp_path / "cut", "adder_record", *GROUP, "resume=true")
    for name in ("metrics.jsonl", "summary.json", "submission.py", "training_state.json"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.parametrize(
    ("config", "overrides", "message"),
    [
        ("adder_gpt", ["model.heads=3"], "width should be a multiple of heads"),
        ("adder_tiny", ["model.period=[12, 8]"], "of which the second is larger"),
        ("adder_arc", ["model.width=3"], "embedding=arc needs width=2"),
        ("adder_arc", ["model.hidden=3"], "gates=hinges needs hidden=2"),
        ("adder_tiny", ["group.halvings=[[2, 20]]"], "each with fewer seeds than before"),
        ("adder_tiny", ["group.halvings=[[3, 2]]"], "group.halvings should be at validations"),
        ("adder_tiny", ["training.betas=[0.9, 1.0]"], "should be two numbers"),
    ],
)
def test_what_cannot_be_trained_is_one_line_and_nothing_is_written(tmp_path, capsys, config, overrides, message):
    with pytest.raises(SystemExit) as stopped:
        train(tmp_path, config, "group.halvings=[]", *overrides)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_help_lists_the_keys(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--help"])
    assert stopped.value.code == 0
    assert "group.halvings" in capsys.readouterr().out


@pytest.mark.slow
def test_the_gpt_learns_to_add_and_qualifies(tmp_path):
    main(["train", str(ROOT / "configs" / "adder_gpt.yaml"), f"output={tmp_path}"])
    command = [sys.executable, "-m", "lab.adder", "verify", str(tmp_path / "adder_gpt" / "submission.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
