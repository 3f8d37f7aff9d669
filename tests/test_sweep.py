"""Whole sweeps, as processes: most over a toy command, one over the real one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.sweep import main

ROOT = Path(__file__).parents[1]
TOYS = ROOT / "tests" / "sweeping"
REHEARSED = "launcher={kind: slurm, cluster: local, jobs: 2, minutes: 5}"

SWEEP = f"""
name: toy
title: Toys
command: pretrain
config: {ROOT / "configs" / "scratch_add.yaml"}
seeds: [0, 1]
changes: {{training.max_steps: 10}}
grid: {{model.size: [0.2M, 1.3M]}}
results:
  kind: values
  shares: {{right: right}}
launcher: {{kind: local, jobs: 2}}
"""


def start(tmp_path: Path, *overrides: str, **environment: str) -> "subprocess.Popen[str]":
    file = tmp_path / "toy.yaml"
    file.write_text(SWEEP)
    path = os.pathsep.join([str(TOYS), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, str(TOYS / "toy_sweep.py"), str(file), f"output={tmp_path}", *overrides],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def run(tmp_path: Path, *overrides: str, **environment: str) -> tuple[int, str]:
    process = start(tmp_path, *overrides, **environment)
    out, _ = process.communicate(timeout=600)
    return process.returncode, out


def until(true: Callable[[], bool]) -> None:
    for _ in range(3000):
        if true():
            return
        time.sleep(0.05)
    pytest.fail("never came true")


def held(tmp_path: Path) -> Path:
    return tmp_path / "held"


def start_held(tmp_path: Path, *overrides: str, **environment: str) -> "subprocess.Popen[str]":
    """A sweep whose first two runs have reached their fourth step, and wait there."""
    held(tmp_path).touch()
    process = start(tmp_path, *overrides, **environment)
    until(lambda: len(steps(tmp_path, "toy_0.2M_0")) == len(steps(tmp_path, "toy_1.3M_0")) == 4)
    return process


def kill(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def steps(tmp_path: Path, name: str) -> list[int]:
    file = tmp_path / name / "metrics.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line)["step"] for line in lines]


def starts(tmp_path: Path, name: str) -> int:
    return (tmp_path / name / "command.txt").read_text().count("\n")


@pytest.mark.slow
def test_a_failed_run_is_shown_stops_no_other_and_is_tried_again_while_finished_ones_are_not(tmp_path):
    (tmp_path / "broken").touch()
    status, out = run(tmp_path)
    assert status == 2
    assert "toy_1.3M_0: 0:00:" in out
    assert "failed, exit status 1; the end of" in out
    assert "    ZeroDivisionError: the slopes are broken\n" in out
    assert "error: 2 of 4 runs failed: toy_1.3M_0, toy_1.3M_1; their logs are in" in out
    assert (tmp_path / "toy" / "status").read_text() == "failed\n"
    assert "| 1.3M | 0 |  |" in (tmp_path / "toy" / "table.md").read_text()

    (tmp_path / "broken").unlink()
    status, out = run(tmp_path)
    assert status == 0
    assert "4 runs, 2 of them already finished" in out
    assert (tmp_path / "toy" / "status").read_text() == "finished\n"
    assert [starts(tmp_path, f"toy_{name}") for name in ("0.2M_0", "0.2M_1", "1.3M_0", "1.3M_1")] == [1, 1, 2, 2]
    table = (tmp_path / "toy" / "table.md").read_text()
    assert table.startswith("Toys (2 seeds)\n\n| model.size | seeds | right |")
    # 90 and 91 of 100 are right: below, Wilson's interval of 100 is wider, above, Student's over two seeds
    assert "| 0.2M | 2 | 90 (81-98) |" in table
    assert (tmp_path / "toy" / "figures" / "results.png").stat().st_size > 5_000

    status, out = run(tmp_path, "seeds=[0, 1, 2]")
    assert status == 0
    assert "6 runs, 4 of them already finished" in out
    assert "(3 seeds)" in (tmp_path / "toy" / "table.md").read_text()


@pytest.mark.slow
def test_a_sweep_that_was_killed_leaves_no_process_and_goes_on_with_the_same_command(tmp_path):
    first = start_held(tmp_path)
    status, out = run(tmp_path)
    assert status == 2
    assert "another process is writing it" in out
    kill(first)
    time.sleep(0.5)
    held(tmp_path).unlink()
    time.sleep(0.5)
    assert steps(tmp_path, "toy_0.2M_0") == steps(tmp_path, "toy_1.3M_0") == list(range(4))
    status, out = run(tmp_path)
    assert status == 0, out
    assert "4 runs, 0 of them already finished" in out
    assert steps(tmp_path, "toy_0.2M_0") == steps(tmp_path, "toy_1.3M_1") == list(range(10))
    assert [starts(tmp_path, f"toy_{name}") for name in ("0.2M_0", "0.2M_1", "1.3M_0", "1.3M_1")] == [2, 1, 2, 1]


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True], ids=["goes on", "killed too"])
def test_a_job_of_submitit_is_waited_for_if_the_sweep_was_killed_and_submitted_again_if_the_job_was_killed_too(
    tmp_path, killed
):
    arguments = [REHEARSED, "seeds=[0]"]
    kill(start_held(tmp_path, *arguments))
    jobs = [json.loads(line) for line in (tmp_path / "toy" / "jobs.jsonl").read_text().splitlines()]
    assert [job["run"] for job in jobs] == ["toy_0.2M_0", "toy_1.3M_0"]
    for job in jobs if killed else []:
        children = Path(f"/proc/{job['job']}/task/{job['job']}/children").read_text().split()
        for process in (job["job"], *children):
            os.kill(int(process), signal.SIGKILL)
    status, out = run(tmp_path, *arguments, RELEASES=str(held(tmp_path)))
    assert status == 0, out
    assert "2 runs, 0 of them already finished" in out
    assert steps(tmp_path, "toy_0.2M_0") == steps(tmp_path, "toy_1.3M_0") == list(range(10))
    assert [starts(tmp_path, f"toy_{name}") for name in ("0.2M_0", "1.3M_0")] == ([2, 2] if killed else [1, 1])


@pytest.mark.slow
def test_a_job_that_is_out_of_minutes_is_queued_again_and_goes_on_where_it_was(tmp_path):
    held(tmp_path).touch()
    launcher = "launcher={kind: slurm, cluster: local, minutes: 1, requeues: 2}"
    status, out = run(tmp_path, launcher, "seeds=[0]", "grid={model.size: [0.2M]}", WARNING="50")
    assert status == 0, out
    assert steps(tmp_path, "toy_0.2M_0") == list(range(10))
    assert starts(tmp_path, "toy_0.2M_0") == 2
    assert (tmp_path / "toy" / "jobs.jsonl").read_text().count("\n") == 1


@pytest.mark.slow
def test_the_same_sweep_goes_to_slurm_and_a_sweep_that_was_killed_finds_its_jobs_in_the_queue(tmp_path):
    """Three scripts stand in for SLURM. Their queue is a folder, with the states that sacct would report."""
    programs = tmp_path / "bin"
    programs.mkdir()
    queue = tmp_path / "queue"
    queue.mkdir()
    scripts = {
        "sbatch": """id=$(( $(ls $QUEUE | wc -l) + 1 )); echo RUNNING > $QUEUE/$id; cp "$1" $QUEUE/../script_$id
            (export SLURM_JOB_ID=$id; setsid sh "$1"; echo COMPLETED > $QUEUE/$id) > /dev/null 2>&1 < /dev/null &
            echo "Submitted batch job $id" """,
        "srun": """shift 5  # --unbuffered --output FILE --error FILE
            export SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0; exec "$@" """,
        "sacct": """echo "JobID|State|NodeList"; for id in $(ls $QUEUE); do echo "$id|$(cat $QUEUE/$id)|here"; done""",
    }
    for name, text in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    slurm = {"PATH": os.pathsep.join([str(programs), os.environ["PATH"]]), "QUEUE": str(queue)}
    launcher = (
        "launcher={kind: slurm, partition: gpu, gpus: 2, cpus: 3, minutes: 30, setup: [module load cuda || true]}"
    )
    arguments = [launcher, "seeds=[0]"]
    kill(start_held(tmp_path, *arguments, **slurm))
    status, out = run(tmp_path, *arguments, **slurm, RELEASES=str(held(tmp_path)))
    assert status == 0, out
    assert "2 runs, 0 of them already finished" in out
    assert steps(tmp_path, "toy_0.2M_0") == steps(tmp_path, "toy_1.3M_0") == list(range(10))
    assert [starts(tmp_path, f"toy_{name}") for name in ("0.2M_0", "1.3M_0")] == [1, 1]
    assert len(list(queue.iterdir())) == 2
    asked = (tmp_path / "script_1").read_text()
    for line in ("job-name=toy_0.2M_0", "partition=gpu", "gpus-per-node=2", "cpus-per-task=3", "time=30"):
        assert f"#SBATCH --{line}\n" in asked
    assert "module load cuda || true\n" in asked


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["command=train"], "command"),
        (["grid={}"], "grid or cells should name something to try"),
        (["cells={a: {model.siz: 0.2M}}"], "did you mean size?"),
        (["launcher={kind: slurm, partition: gpu}"], "there is no sbatch on the path of this machine"),
        (["config=nowhere.yaml"], "nowhere.yaml: No such file or directory"),
    ],
)
def test_what_cannot_be_swept_is_told_and_nothing_is_written(tmp_path, capsys, monkeypatch, overrides, message):
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "toy.yaml"
    file.write_text(SWEEP.replace("grid: {model.size: [0.2M, 1.3M]}\n", "") if "grid={}" in overrides else SWEEP)
    with pytest.raises(SystemExit) as stopped:
        main([str(file), f"output={tmp_path / 'out'}", *overrides])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_shipped_smoke_sweep_trains_and_shows_a_model(tmp_path, capsys):
    file = ROOT / "configs" / "sweeps" / "smoke.yaml"
    arguments = [f"output={tmp_path}", "seeds=[0]", "grid={parts: [{nope: {}}]}", "changes.training.max_steps=10"]
    main([str(file), *arguments])
    assert "1 finished, 0 running, 0 failed, 0 left" in " ".join(capsys.readouterr().out.split())
    table = (tmp_path / "smoke" / "table.md").read_text()
    assert table.count("| add_integer | ") == 1
    assert (tmp_path / "smoke" / "figures" / "results.png").stat().st_size > 10_000
    models = {path: path.read_bytes() for path in tmp_path.glob("smoke_*/model/model.safetensors")}
    assert len(models) == 1
    main([str(file), *arguments])
    assert {path: path.read_bytes() for path in models} == models
