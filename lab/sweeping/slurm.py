"""Runs of a sweep as SLURM jobs, through submitit, which writes the batch scripts and queries their states."""

import math
import time
from pathlib import Path

import psutil
import submitit
from submitit.core.utils import DelayedSubmission, FailedJobError, UncompletedJobError

from lab.errors import RunError
from lab.runs import Run
from lab.sweeping.cells import Trial
from lab.sweeping.config import SlurmLauncherConfig
from lab.sweeping.processes import ended, log_of, start_logged


class LoggedCommand:
    """What a submitit job does: it runs the command, and if it runs out of time, it resumes it in another job."""

    def __init__(self, command: tuple[str, ...], log: Path) -> None:
        self.command, self.log = command, log

    def __call__(self) -> int:
        process = start_logged(self.command, self.log, {})
        try:
            return process.wait()
        finally:
            process.kill()

    def checkpoint(self) -> DelayedSubmission:
        return DelayedSubmission(self)


class SlurmLauncher:
    """Starts runs as SLURM jobs, and records the job of each run in jobs.jsonl. A sweep that is started again waits for
    its jobs that are still active."""

    def __init__(self, settings: SlurmLauncherConfig, run: Run) -> None:
        self.at_once, self._run = settings.jobs, run
        self._job_class = submitit.SlurmJob if settings.cluster == "slurm" else submitit.LocalJob
        folder = run.path.resolve() / "jobs"
        self._executor = submitit.AutoExecutor(
            folder, settings.cluster, slurm_max_num_timeout=settings.requeues, local_max_num_timeout=settings.requeues
        )
        optional = {
            f"slurm_{key}": getattr(settings, key) for key in ("partition", "account", "qos", "constraint", "setup")
        }
        optional["mem_gb"] = settings.memory_gb
        self._executor.update_parameters(
            timeout_min=settings.minutes,
            cpus_per_task=settings.cpus,
            gpus_per_node=settings.gpus,
            nodes=1,
            tasks_per_node=1,
            **{key: value for key, value in optional.items() if value},
        )
        self._before = {record["run"]: record for record in run.read("jobs")}

    def start(self, trial: Trial) -> "SlurmJob":
        if before := self._before.pop(trial.name, None):
            job = SlurmJob(self._job_class(self._executor.folder, before["job"]), before.get("time", math.inf))
            if job.goes_on():
                return job
        self._executor.update_parameters(name=trial.name)
        try:
            job = self._executor.submit(LoggedCommand(trial.command, log_of(self._run, trial.name).resolve()))
        except FailedJobError as error:
            raise RunError(f"{trial.name}: SLURM refused the job: {' '.join(str(error).split())[-300:]}") from None
        self._run.append("jobs", [{"run": trial.name, "job": job.job_id, "time": time.time()}])
        return SlurmJob(job)


class SlurmJob:
    """A run as a SLURM job."""

    def __init__(self, job: submitit.Job[int], submitted: float | None = None) -> None:
        """
        Args:
            job: submitit's job.
            submitted: the time at which an earlier process submitted it; None if this process did.
        """
        self._job, self._submitted = job, submitted

    def goes_on(self) -> bool:
        if self._submitted is not None and isinstance(self._job, submitit.LocalJob):
            # submitit knows about local jobs only while the process that submitted them is running
            ended = self._job.paths.result_pickle.exists()
            return not ended and _is_alive(int(self._job.job_id), self._submitted)
        return not self._job.done()

    def failure(self) -> str | None:
        if self.goes_on():
            return None
        try:
            return ended(self._job.result())
        except (UncompletedJobError, FailedJobError):
            return f"job {self._job.job_id} {self._job.state.lower()}, see also {self._job.paths.stderr}"

    def stop(self) -> None:
        """Does nothing: the job continues, so that it does not have to wait in the queue again."""


def _is_alive(number: int, by: float) -> bool:
    """Whether the process with this id is running and was started no later than the time `by`, in seconds since the
    epoch.

    One that was started later is another process that got the same id. A zombie (a dead process that its parent has not
    collected yet) does not count as running.
    """
    try:
        process = psutil.Process(number)
        started = process.create_time()  # to within a second
        return started <= by + 1 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
