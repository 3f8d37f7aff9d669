"""`python -m lab.adder train`: a run, the adder that it declares, and what can go wrong on the way."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lab
from lab.adder import main
from lab.adders.spec import load
from lab.export import main as export
from tests.records import records

ROOT = Path(__file__).parents[2]
SMALL = ["training.max_steps=4", "training.batch_size=8", "training.evaluate_every=2", "training.valid_problems=16"]
GROUP = ["group.seeds=4", "group.halvings=[[2, 2]]"]


def train(tmp_path: Path, config: str, *more: str) -> Path:
    main(["train", str(ROOT / "configs" / f"{config}.yaml"), *SMALL, f"output={tmp_path}", "name=run", *more])
    return tmp_path / "run"


def test_a_run_leaves_metrics_a_summary_and_an_adder_that_can_be_judged(tmp_path, capsys):
    path = train(tmp_path, "adder_gpt", "group.seeds=1", "group.halvings=[]")
    printed = capsys.readouterr().out
    assert "2,912 parameters" in printed
    assert f"lab adder verify {path / 'adder.json'}" in printed
    assert (path / "status").read_text() == "finished\n"
    steps = records(path / "metrics.jsonl")
    assert [step["step"] for step in steps] == [2, 4]
    summary = json.loads((path / "summary.json").read_text())
    assert (summary["parameters"], summary["exact_match"]["n"]) == (2912, 10_010)
    adder = load(path / "adder.json")
    assert "AdamW, 4 steps of 8 problems" in adder.about
    assert (adder.category, adder.seeds) == ("trained", 1)


@pytest.mark.slow
def test_a_run_is_asked_as_it_stands_and_exported_with_the_figure_of_its_rounded_weights(tmp_path, capsys):
    path = train(tmp_path, "adder_arc", *GROUP)
    whole = lab.load(str(path))
    assert int(whole.ask("12 + 34")) >= 0
    export([str(path), str(tmp_path / "zoo" / "mine")])
    export([str(path), str(tmp_path / "rounded"), "dtype=bfloat16"])
    assert "mine: adder, float32, " in capsys.readouterr().out
    card = (tmp_path / "zoo" / "mine" / "README.md").read_text()
    assert 'lab.load("zoo/mine")' in card
    assert "of 10,010 sums are right" in card
    pairs = [(12, 34), (5_555_555_555, 4_444_444_445), (9, 1)]
    assert lab.load(str(tmp_path / "zoo" / "mine")).engine.add(pairs) == whole.engine.add(pairs)
    (step,) = [load(tmp_path / "rounded" / "adder.json").numbers["residual"]]
    assert torch.tensor(step).bfloat16().item() == step


def test_an_adder_has_one_form_and_a_run_without_a_model_none(tmp_path, capsys):
    path = train(tmp_path, "adder_arc", *GROUP)
    for arguments, said in ((["to=merged"], "exported with to=scratch"), ([], "this run has no adder.json")):
        if not arguments:
            (path / "adder.json").unlink()
        with pytest.raises(SystemExit) as ended:
            export([str(path), str(tmp_path / "out"), *arguments])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_same_seed_writes_the_same_file_and_another_seed_another(tmp_path):
    files = [
        train(tmp_path / name, "adder_arc", *GROUP, f"seed={seed}") / "adder.json"
        for name, seed in (("one", 0), ("again", 0), ("other", 1))
    ]
    one, again, other = [file.read_bytes() for file in files]
    assert one == again != other


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tmp_path, monkeypatch):
    whole = train(tmp_path / "whole", "adder_record", *GROUP)

    from lab.adders.groups import Group

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
    for name in ("metrics.jsonl", "summary.json", "adder.json", "training_state.json"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.parametrize(
    ("config", "overrides", "message"),
    [
        ("adder_gpt", ["numbers.up.shape=[31, 16]"], "model.layers.0.ffn.up.b: is a row of 32; should be a row of 31"),
        ("adder_tiny", ["model.rope.period=turn"], "model.rope.period: no numbers 'turn'"),
        ("adder_arc", ["numbers.key.kind=spiral"], "'normal'"),
        ("adder_tiny", ["numbers.query.shape=[0, 4]"], "greater than or equal to 1"),
        ("adder_tiny", ["prompt=[a9..0]"], "digit b0 is missing"),
        ("adder_tiny", ["numbers.digits.shape=[1000000, 4]"], "less than or equal to 1024"),
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
    command = [sys.executable, "-m", "lab.adder", "verify", str(tmp_path / "adder_gpt" / "adder.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
