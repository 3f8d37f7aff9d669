"""`lab.sweep` over `toy_pretrain.py`, as a process that can be killed.

RELEASES is a file that it removes as soon as it waits for runs. WARNING is how many seconds before its time is over a
local job of submitit is told, instead of submitit's 30.
"""

import os
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from submitit.local import local

from lab.config.pretraining import PretrainConfig
from lab.sweep import main
from lab.sweeping import cells, running
from lab.sweeping.config import Command

start_controller = local.start_controller


def release_and_sleep(seconds: float) -> None:
    Path(os.environ["RELEASES"]).unlink(missing_ok=True)
    time.sleep(seconds)


def start_and_warn(**settings: Any) -> "subprocess.Popen[bytes]":
    settings["signal_delay_s"] = int(os.environ["WARNING"])
    return start_controller(**settings)


if __name__ == "__main__":
    cells.COMMANDS = {"pretrain": Command(PretrainConfig, ("toy_pretrain",))}
    if "RELEASES" in os.environ:
        running.time = SimpleNamespace(sleep=release_and_sleep, monotonic=time.monotonic)
    if "WARNING" in os.environ:
        local.start_controller = start_and_warn
    main()
