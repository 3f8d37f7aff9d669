"""Where the runs of a sweep are started: as processes on this machine, or as SLURM jobs (lab/sweeping/slurm.py)."""

import os
import shutil
import subprocess
from typing import Protocol

from lab.errors import ConfigError
from lab.runs import Run
from lab.sweeping.cells import Trial
from lab.sweeping.config import LocalLauncherConfig, SlurmLauncherConfig, SweepConfig
from lab.sweeping.processes import ended, log_of, start_logged


class Job(Protocol):
    """A run that was started."""

    def failure(self) -> str | None:
        """Why the run failed; "" if it succeeded, None while it is active."""
        ...

    def stop(self) -> None:
        """Ends the job, unless it may outlive the sweep, as on SLURM. Called if the sweep is interrupted."""
        ...


class Launcher(Protocol):
    """What starts runs."""

    at_once: int
    """How many jobs may be active at a time."""

    def start(self, trial: Trial) -> Job: ...


def open_launcher(sweep: SweepConfig, run: Run) -> Launcher:
    """The launcher of a sweep's config. `run`: the sweep's run directory."""
    match sweep.launcher:
        case LocalLauncherConfig() as settings:
            return LocalLauncher(settings, run)
        case SlurmLauncherConfig() as settings:
            from lab.sweeping.slurm import SlurmLauncher

            return SlurmLauncher(settings, run)


def check_launcher(settings: LocalLauncherConfig | SlurmLauncherConfig) -> None:
    """Raises `ConfigError` if the machine lacks what the launcher needs."""
    if isinstance(settings, LocalLauncherConfig) or settings.cluster == "local":
        return
    if missing := [program for program in ("sbatch", "srun", "sacct") if not shutil.which(program)]:
        here = "launcher={kind: local} runs on this machine, and launcher.cluster=local rehearses SLURM jobs on it"
        raise ConfigError(f"launcher.kind=slurm: there is no {missing[0]} on the path of this machine; {here}")


class LocalLauncher:
    """Starts runs as processes on this machine."""

    def __init__(self, settings: LocalLauncherConfig, run: Run) -> None:
        self.at_once, self._run = settings.jobs, run
        self._devices = list(settings.gpus)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = max(1, cores // settings.jobs)
        self._threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads))}

    def start(self, trial: Trial) -> "LocalJob":
        environment = {**self._threads}
        device = self._devices.pop(0) if self._devices else None
        if device is not None:
            environment["CUDA_VISIBLE_DEVICES"] = str(device)
        process = start_logged(trial.command, log_of(self._run, trial.name), environment)
        return LocalJob(process, self._devices, device)


class LocalJob:
    """A run as a process on this machine."""

    def __init__(self, process: "subprocess.Popen[bytes]", devices: list[int], device: int | None) -> None:
        self._process, self._devices, self._device = process, devices, device

    def failure(self) -> str | None:
        status = self._process.poll()
        if status is None:
            return None
        if self._device is not None:
            self._devices.append(self._device)
            self._device = None
        return ended(status)

    def stop(self) -> None:
        # A run may be killed at any moment (lab/runs.py); if it were asked to end, it might take minutes.
        self._process.kill()
        self._process.wait()
