"""Commands of the lab as processes that may be killed, forked from one that has imported what they need.

To import torch, transformers and trl takes ten seconds on one core, several times as long as a toy run. A server (this
file, run as a process) imports them once for all tests of a pytest process. It is not multiprocessing's fork server: a
process has only one, and the sandbox needs that one small, because it limits the memory of submissions.
"""

import importlib
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
IMPORTED = [
    *("lab.benchmarks.length_curves.scoring", "lab.benchmarks.nupa.scoring", "lab.benchmarks.kinds"),
    *("lab.benchmarks.compare", "lab.engines.local", "lab.engines.from_config", "lab.engines.plain"),
    *("lab.models.swaps", "lab.tune.from_scratch", "transformers.models.llama"),
]


class Forked:
    """`python -m MODULE ARGUMENT ...` in one process, or in several as `accelerate launch` starts them."""

    def __init__(
        self, command: Sequence[str], log: Path, count: int = 1, fsdp: bool = False, kill: int | None = None
    ) -> None:
        """The output is appended to `log`, and what goes to stderr to the same name with ".err".

        `fsdp`: accelerate shards no model on a CPU, so the CPU is passed off as a device on which it does. `kill`: the
        step of training after which all processes end abruptly.
        """
        self.args, self._log = list(command), log
        self._number = _ask("start", command=self.args, log=str(log), count=count, fsdp=fsdp, kill=kill)

    def poll(self) -> int | None:
        """The highest exit status of its processes; None while one of them is running."""
        return _ask("poll", number=self._number)

    def wait(self) -> int:
        while (status := self.poll()) is None:
            time.sleep(0.02)
        return status

    def kill(self) -> None:
        _ask("kill", number=self._number)

    def kill_when(self, reached: Callable[[], bool], seconds: float = 120) -> None:
        """Kills the processes as soon as `reached()` is true, or after `seconds`."""
        deadline = time.monotonic() + seconds
        while not reached() and self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        assert self.poll() is None, "the run ended before it could be killed"
        self.kill()

    def ended(self) -> "subprocess.CompletedProcess[str]":
        status = self.wait()
        return subprocess.CompletedProcess(self.args, status, self._log.read_text(), _errors(self._log).read_text())


def start_logged(command: tuple[str, ...], log: Path, environment: Mapping[str, str]) -> Forked:
    """In place of `lab.sweeping.processes.start_logged`, for sweeps whose runs are not what is tested."""
    log.parent.mkdir(parents=True, exist_ok=True)
    return Forked(command[2:], log)


@cache
def _server() -> "subprocess.Popen[str]":
    """The server. It ends with this process, and so does what it has started."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "160"}
    command = [sys.executable, "-m", "tests.forked"]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _ask(what: str, **details: Any) -> Any:
    server = _server()
    assert server.stdin
    assert server.stdout
    print(json.dumps([what, details]), file=server.stdin, flush=True)
    return json.loads(server.stdout.readline())


def serve() -> None:
    for module in IMPORTED:
        importlib.import_module(module)
    context, started = multiprocessing.get_context("fork"), []

    def start(count: int, **details: Any) -> int:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        every = [{"number": number, "count": count, "port": port, **details} for number in range(count)]
        started.append([context.Process(target=_run, kwargs=one, daemon=True) for one in every])
        for process in started[-1]:
            process.start()
        return len(started) - 1

    def poll(number: int) -> int | None:
        statuses = [process.exitcode for process in started[number]]
        return None if None in statuses else max(map(abs, statuses))

    def kill(number: int) -> None:
        for process in started[number]:
            process.kill()
            process.join()

    for line in sys.stdin:
        what, details = json.loads(line)
        print(json.dumps({"start": start, "poll": poll, "kill": kill}[what](**details)), flush=True)


def _errors(log: Path) -> Path:
    return log.with_name(f"{log.name}.err")


def _run(command: list[str], log: str, count: int, number: int, port: int, fsdp: bool, kill: int | None) -> None:
    for descriptor, file in ((1, Path(log)), (2, _errors(Path(log)))):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    module, *arguments = command
    sys.argv, sys.orig_argv = command, [sys.executable, "-m", *command]
    if count > 1:
        numbers = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
        os.environ |= {name: str(value) for name, value in (numbers | {"MASTER_PORT": port}).items()}
        os.environ["MASTER_ADDR"] = "127.0.0.1"
    if fsdp:
        _pass_for_a_device_that_shards()
    if kill is not None:
        _kill_after(kill)
    importlib.import_module(module).main(arguments)


def _pass_for_a_device_that_shards() -> None:
    from accelerate.state import PartialState
    from accelerate.utils import DistributedType

    os.environ |= {"ACCELERATE_TORCH_DEVICE": "cpu", "ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}
    os.environ |= {"FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP", "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT"}
    PartialState._prepare_backend = lambda *_, **__: ("gloo", DistributedType.MULTI_NEURON)  # type: ignore[method-assign]


def _kill_after(step: int) -> None:
    from lab.tune import callbacks

    def stop(self, args, state, control, **kwargs) -> None:
        if state.global_step == step:
            os._exit(9)

    callbacks.TrainingProgress.on_step_end = stop


if __name__ == "__main__":
    serve()
