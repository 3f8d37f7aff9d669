import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lab.errors import ConfigError, RunError
from lab.runs import Run
from lab.sweeping.config import LocalLauncherConfig, SlurmLauncherConfig
from lab.sweeping.launchers import LocalLauncher, check_launcher
from lab.sweeping.processes import last_lines, log_of
from lab.sweeping.slurm import SlurmLauncher, _is_alive

ROOT = Path(__file__).parents[2]


class Trial(NamedTuple):
    name: str
    command: tuple[str, ...]


def shell(script: str, name: str = "a") -> Any:
    return Trial(name, ("/bin/sh", "-c", script))


def wait(job) -> str:
    while (reason := job.failure()) is None:
        time.sleep(0.02)
    return reason


@pytest.fixture
def run(tmp_path):
    return Run.open(tmp_path / "sweep", "name: sweep\n")


def test_a_run_is_a_process_whose_words_are_kept_and_whose_end_is_told(run, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    launcher = LocalLauncher(LocalLauncherConfig(jobs=3), run)
    assert wait(launcher.start(shell("echo $OMP_NUM_THREADS threads; echo wrong >&2; exit 3"))) == "exit status 3"
    assert wait(launcher.start(shell("kill -9 $$"))) == "killed by signal 9"
    assert wait(launcher.start(shell("true"))) == ""
    log = log_of(run, "a").read_text()
    assert log.startswith("$ /bin/sh -c ")
    assert "\n2 threads\nwrong\n$ /bin/sh" in log
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    wait(LocalLauncher(LocalLauncherConfig(), run).start(shell("echo $OMP_NUM_THREADS", "own")))
    assert log_of(run, "own").read_text().endswith("\n5\n")


def test_devices_are_dealt_out_and_come_back(run):
    launcher = LocalLauncher(LocalLauncherConfig(jobs=2, gpus=[3, 5]), run)
    say = "echo device $CUDA_VISIBLE_DEVICES"
    first, second = launcher.start(shell(f"{say}; sleep 60", "a")), launcher.start(shell(say, "b"))
    wait(second)
    wait(launcher.start(shell(say, "c")))
    first.stop()
    shown = [log_of(run, name).read_text().splitlines()[-1] for name in "bc"]
    assert shown == ["device 5", "device 5"]


def test_a_run_does_not_outlive_a_sweep_that_was_killed(run):
    code = f"""
import os, time
from pathlib import Path
from lab.sweeping.processes import start_logged
process = start_logged(("/bin/sh", "-c", "echo started; exec sleep 100"), Path({str(run.path / "log")!r}), {{}})
print(process.pid, flush=True)
time.sleep(100)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout
    child = int(parent.stdout.readline())
    while "started" not in (run.path / "log").read_text():
        time.sleep(0.02)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    for _ in range(200):
        if not Path(f"/proc/{child}").exists() or "(zombie)" in Path(f"/proc/{child}/status").read_text():
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the run went on")


def test_slurm_without_its_programs_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="there is no sbatch on the path of this machine"):
        check_launcher(SlurmLauncherConfig())
    check_launcher(SlurmLauncherConfig(cluster="local"))
    check_launcher(LocalLauncherConfig())


def test_the_last_lines_show_a_redrawn_bar_once_and_any_bytes(tmp_path):
    (tmp_path / "a.log").write_bytes(b"$ command\n10%\r20%\r30%\n\n\xff[bold]\n")
    assert last_lines(tmp_path / "a.log") == "    $ command\n    30%\n    \ufffd[bold]"
    assert last_lines(tmp_path / "none.log") == "    (no log)"


def test_a_job_that_slurm_refuses_is_one_line(run, tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sbatch", "srun", "sacct"):
        (programs / name).write_text("#!/bin/sh\necho 'error: invalid partition specified: gpo' >&2; exit 1\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    settings = SlurmLauncherConfig(partition="gpo")
    check_launcher(settings)
    with pytest.raises(RunError, match=r"a: SLURM refused the job: .*invalid partition specified: gpo"):
        SlurmLauncher(settings, run).start(shell("true"))
    assert not run.read("jobs")


def test_a_process_that_started_after_a_job_was_submitted_is_not_that_job():
    began = time.time()
    assert _is_alive(os.getpid(), by=began)
    process = subprocess.Popen(["/bin/sleep", "100"])
    try:
        assert _is_alive(process.pid, by=time.time())
        assert not _is_alive(process.pid, by=began - 10)
    finally:
        process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not _is_alive(process.pid, by=time.time())  # dead, but not collected yet
    process.wait()
