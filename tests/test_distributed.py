import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import distributed
from lab.config.evaluation import EndpointConfig
from lab.config.schema import TrainingConfig
from lab.errors import ConfigError, ModelError, RunError, exit_cleanly
from lab.runs import Run
from tests.forked import Forked

ROOT = Path(__file__).parents[1]


@pytest.fixture
def second_of_two(monkeypatch):
    """What a launcher tells the second of two processes. There is no first one, so nothing may wait for it."""
    for name, value in (("RANK", "1"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)


def test_a_scheduler_that_counts_nodes_starts_no_processes(monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    assert (distributed.count(), distributed.rank(), distributed.is_main()) == (1, 0, True)
    assert distributed.from_main(lambda: 7) == 7
    assert distributed.gather("here") == ["here"]
    assert distributed.share([1, 2, 3]) == [1, 2, 3]


@given(st.integers(1, 9), st.lists(st.integers()))
def test_every_item_is_in_one_share(count, items):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LOCAL_RANK", "0")
        patched.setenv("WORLD_SIZE", str(count))
        shares = []
        for number in range(count):
            patched.setenv("RANK", str(number))
            shares.append(distributed.share(items))
    assert [share[turn] for turn in range(len(items)) for share in shares if turn < len(share)] == items
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(("error", "heard"), [(RunError("in use"), ""), (ModelError("no GPU"), "error: no GPU\n")])
def test_only_the_main_process_speaks_except_about_what_a_machine_lacks(second_of_two, capsys, error, heard):
    @exit_cleanly
    def main() -> None:
        print("hello")
        raise error

    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert capsys.readouterr() == ("", heard)


def test_a_run_is_opened_and_written_by_the_main_process_alone(second_of_two, tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "from_main", lambda act: None)
    path = tmp_path / "run"
    with Run.open(path, "name: run\n") as run:
        run.append("samples", [{"index": 0}])
        run.rewrite("metrics", [{"step": 1}])
        run.write_json("summary", {})
    assert not path.exists()
    monkeypatch.undo()
    with Run.open(path, "name: run\n") as main:
        main.append("samples", [{"index": 0}])
        assert run.read("samples") == [{"index": 0}]


def test_a_step_that_processes_cannot_share_out_is_refused(second_of_two):
    assert TrainingConfig(batch_size=64, micro_batch_size=8).passes() == 4
    with pytest.raises(
        ConfigError, match=r"batch_size=64 is not a multiple of 2 processes x training.micro_batch_size=64"
    ):
        TrainingConfig(batch_size=64, micro_batch_size=64).passes()


def test_an_endpoint_is_asked_by_one_process(second_of_two):
    from lab.engines.from_config import open_engine

    with pytest.raises(ConfigError, match=r"start it without a launcher, and set engine\.concurrency"):
        open_engine(EndpointConfig(base_url="http://h", model="m"))


def test_the_shipped_launch_config_says_what_accelerate_knows():
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    config = load_config_from_file(str(ROOT / "configs" / "accelerate" / "fsdp.yaml"))
    assert (config.distributed_type, config.fsdp_config["fsdp_version"]) == ("FSDP", 2)
    known = {action.dest for action in launch_command_parser()._actions}
    assert set(config.fsdp_config) <= known


# In several processes


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Runs a command in several processes; returns its status and what it printed."""
    folder = tmp_path_factory.mktemp("logs")

    def run(count: int, command: list[str], **how) -> subprocess.CompletedProcess[str]:
        return Forked(command, folder / f"{len(list(folder.iterdir()))}.log", count, **how).ended()

    return run


@pytest.fixture(scope="module")
def whole(start, tmp_path_factory) -> Path:
    """The run of a model from scratch, trained by one process."""
    folder = tmp_path_factory.mktemp("runs")
    assert start(1, pretrain(folder, "whole")).returncode == 0
    return folder / "whole"


def pretrain(tmp_path: Path, name: str, *more: str) -> list[str]:
    """A command with random groups of digits, drawn positions and packing: all processes must draw the same."""
    small = [
        "model.size=0.2M",
        "model.dtype=float32",
        "data.lengths=[1, 4]",
        "data.packing=2",
        "tokenizer.kind=random",
        "tokenizer.digits=2",
    ]
    small += ["parts={learned_ids: {}, coupled_ids: {largest: 64}}"]
    small += ["format.reverse=integer", "training.max_steps=4", "training.batch_size=8", "training.warmup_steps=1"]
    small += ["training.micro_batch_size=4", "training.log_every=1", "training.evaluate_every=2"]
    small += ["training.valid_problems=9", "evaluation.lengths=[1, 4, 6]", "evaluation.problems_per_length=5"]
    small += ["evaluation.batch_size=2", "evaluation.while_training=[4]", "evaluation.problems_while_training=3"]
    return [
        "lab.pretrain",
        str(ROOT / "configs" / "scratch_add.yaml"),
        *small,
        f"output={tmp_path}",
        f"name={name}",
        *more,
    ]


def finetune(tmp_path: Path, toy_model: Path, name: str, *more: str) -> list[str]:
    small = [
        f"model.name={toy_model}",
        "model.device=cpu",
        "model.dtype=float32",
        "adapter.rank=2",
        "data.tasks=[add_integer, max_fraction]",
    ]
    small += ["data.lengths={hard: [1, 3], easy: [1, 5]}", "training.max_steps=4", "training.batch_size=8"]
    small += ["training.micro_batch_size=4", "training.log_every=1", "training.evaluate_every=2"]
    small += ["training.valid_problems=9", "training.warmup_steps=1", "evaluation.lengths={hard: [1, 5], easy: [5, 5]}"]
    small += ["evaluation.problems_per_range=5", "evaluation.batch_size=4"]
    return [
        "lab.finetune",
        str(ROOT / "configs" / "smollm2_lora.yaml"),
        *small,
        f"output={tmp_path}",
        f"name={name}",
        *more,
    ]


def records(path: Path, leave_out: str = "seconds") -> list[dict]:
    return [{key: value for key, value in json.loads(line).items() if key != leave_out} for line in path.open()]


def assert_same_losses(one: Path, other: Path) -> None:
    pairs = list(zip(records(one / "metrics.jsonl"), records(other / "metrics.jsonl"), strict=True))
    assert len(pairs) == 6
    for row, again in pairs:
        assert again == pytest.approx(row, rel=1e-4)


@pytest.mark.slow
def test_two_processes_with_half_a_batch_each_train_and_test_as_one_does(start, whole, tmp_path):
    done = start(2, pretrain(tmp_path, "two"))
    two = tmp_path / "two"
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("parameters without embeddings") == done.stdout.count("run directory:") == 1
    assert (two / "command.txt").read_text().count("\n") == 1
    assert_same_losses(whole, two)
    samples = [sorted(records(run / "samples.jsonl"), key=lambda s: s["index"]) for run in (whole, two)]
    assert len(samples[0]) == 15
    assert samples[0] == samples[1]
    assert {path.name for path in whole.iterdir()} == {path.name for path in two.iterdir()}
    assert not (two / "model" / "training_args.bin").exists()


@pytest.mark.slow
def test_a_killed_run_goes_on_in_another_number_of_processes(start, whole, tmp_path):
    for killed, resumed in ((2, 1), (1, 2)):
        name = f"{killed} to {resumed}"
        assert start(killed, pretrain(tmp_path, name), kill=3).returncode == 9
        assert (tmp_path / name / "checkpoints" / "checkpoint-2" / "trainer_state.json").exists()
        assert start(resumed, pretrain(tmp_path, name, "resume=true")).returncode == 0
        assert_same_losses(whole, tmp_path / name)
        assert records(tmp_path / name / "curve.jsonl") == records(whole / "curve.jsonl")


@pytest.mark.slow
def test_adapters_are_trained_alike_by_one_process_by_two_and_in_shards(start, tmp_path, toy_model):
    for name, count, fsdp in (("one", 1, False), ("two", 2, False), ("shards", 2, True)):
        done = start(count, finetune(tmp_path, toy_model, name), fsdp=fsdp)
        assert done.returncode == 0, done.stderr
    for name in ("two", "shards"):
        assert_same_losses(tmp_path / "one", tmp_path / name)
        for when in ("samples_before", "samples_after"):
            samples = [records(tmp_path / run / f"{when}.jsonl") for run in ("one", name)]
            assert sorted(samples[0], key=lambda s: s["index"]) == sorted(samples[1], key=lambda s: s["index"])
        assert (tmp_path / name / "table.md").read_text() == (tmp_path / "one" / "table.md").read_text()


@pytest.mark.slow
def test_a_sharded_checkpoint_is_gone_on_from_in_shards_alone(start, whole, tmp_path):
    assert start(2, pretrain(tmp_path, "cut"), fsdp=True, kill=3).returncode == 9
    refused = start(1, pretrain(tmp_path, "cut", "resume=true"))
    assert refused.returncode == 2
    assert "was written with FSDP, and can only be continued with FSDP" in refused.stderr
    done = start(2, pretrain(tmp_path, "cut", "resume=true"), fsdp=True)
    assert done.returncode == 0, done.stderr
    assert_same_losses(whole, tmp_path / "cut")


@pytest.mark.slow
def test_questions_are_shared_out_and_answered_as_by_one_process(start, tmp_path, toy_model):
    def evaluate(name: str, *more: str) -> list[str]:
        small = [f"engine.model.name={toy_model}", "engine.model.device=cpu", "engine.batch_size=4"]
        small += ["benchmark.tasks=[add_integer, max_fraction]", "benchmark.lengths={hard: [1, 8], easy: [1, 20]}"]
        small += ["benchmark.problems_per_range=6", f"output={tmp_path}", f"name={name}"]
        return ["lab.evaluate", str(ROOT / "configs" / "nupa_smollm2.yaml"), *small, *more]

    assert start(1, evaluate("one")).returncode == 0
    done = start(2, evaluate("two"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("run directory:") == 1
    one, two = (sorted(records(tmp_path / name / "samples.jsonl"), key=lambda s: s["index"]) for name in ("one", "two"))
    assert len(one) == 24
    assert one == two
    assert (tmp_path / "one" / "summary.json").read_bytes() == (tmp_path / "two" / "summary.json").read_bytes()
    kept = (tmp_path / "two" / "samples.jsonl").read_bytes().splitlines(keepends=True)[:7]
    (tmp_path / "two" / "samples.jsonl").write_bytes(b"".join(kept))
    assert start(2, evaluate("two", "resume=true")).returncode == 0
    assert sorted(records(tmp_path / "two" / "samples.jsonl"), key=lambda s: s["index"]) == one


@pytest.mark.slow
def test_what_is_wrong_is_said_once_and_ends_all_processes(start, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").write_text("years of work")
    for name, more, message in (
        ("taken", (), "is in use"),
        ("new", ("training.micro_batch_size=8",), "training.batch_size=8 is not a multiple of 2 processes"),
        ("new", ("training.max_step=8",), "did you mean max_steps"),
    ):
        refused = start(2, pretrain(tmp_path, name, *more))
        assert refused.returncode == 2
        assert refused.stderr.count("error:") == refused.stderr.count(message) == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "thesis.tex"]


@pytest.mark.slow
def test_torchrun_starts_it_in_two_processes(tmp_path):
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launch, *pretrain(tmp_path, "run")], check=False, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("run directory:") == 1
    assert (tmp_path / "run" / "status").read_text() == "finished\n"
    assert "2 processes" in json.loads((tmp_path / "run" / "environment.json").read_text())["device"]
