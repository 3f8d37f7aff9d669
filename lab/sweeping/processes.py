"""Starts a command as a process that ends with its parent and writes its output to a log."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from lab.runs import Run

LAST_LINES = 12


def log_of(run: Run, name: str) -> Path:
    """The log file of a trial."""
    return run.path / "logs" / f"{name}.log"


def start_logged(command: tuple[str, ...], log: Path, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Starts a command as a process that is killed when this one ends; its output is appended to `log`.

    Args:
        command: the program and its arguments.
        log: the file to append to.
        environment: environment variables in addition to those of this process.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        file.write(f"$ {shlex.join(command)}\n".encode())
        file.flush()
        mortal = (sys.executable, "-m", "lab.sweeping.die_with_parent", str(os.getpid()), *command)
        environment = {**os.environ, **environment}
        return subprocess.Popen(mortal, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment)


def ended(status: int) -> str:
    """How a process with this exit status failed; empty if it did not fail."""
    if status == 0:
        return ""
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"


def last_lines(log: Path) -> str:
    """The last lines of a log, indented; if some of them begin with "error: ", only those. A line on which a progress
    bar was redrawn is shown in its last state."""
    lines = log.read_bytes()[-100_000:].decode(errors="replace").split("\n") if log.exists() else ["(no log)"]
    shown = [line.rstrip().rpartition("\r")[2] for line in lines if line.strip()]
    told = [line for line in shown[-LAST_LINES:] if line.startswith("error: ")]
    return "\n".join(f"    {line[:400]}" for line in told or shown[-LAST_LINES:])
