"""Starts a command in several processes on this machine, as `accelerate launch` does, but imports it once for all.

    python tests/start_processes.py COUNT [fsdp] [kill=STEP] MODULE [ARGUMENT ...]

`fsdp`: accelerate shards no model on a CPU, so here a CPU passes for a kind of device on which it does. `kill`: all end
without a word after that step of training. Exits with the highest status of the processes.
"""

import importlib
import multiprocessing
import os
import socket
import sys


def pass_for_a_device_that_shards() -> None:
    from accelerate.state import PartialState
    from accelerate.utils import DistributedType

    os.environ |= {"ACCELERATE_TORCH_DEVICE": "cpu", "ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}
    os.environ |= {"FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP", "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT"}
    PartialState._prepare_backend = lambda *_, **__: ("gloo", DistributedType.MULTI_NEURON)  # type: ignore[method-assign]


def kill_after(step: int) -> None:
    from lab.training import callbacks

    def stop(self, args, state, control, **kwargs) -> None:
        if state.global_step == step:
            os._exit(9)

    callbacks.TrainingProgress.on_step_end = stop


def process(number: int, count: int, port: int, module: str, arguments: list[str]) -> None:
    numbers = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    os.environ |= {name: str(value) for name, value in (numbers | {"MASTER_PORT": port}).items()}
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    importlib.import_module(module).main(arguments)


def main() -> int:
    count, options, rest = int(sys.argv[1]), [], sys.argv[2:]
    while rest[0] == "fsdp" or rest[0].startswith("kill="):
        options.append(rest.pop(0))
    import lab.benchmarks.length_curves
    import lab.benchmarks.nupa
    import lab.training.from_scratch  # noqa: F401

    for option in options:
        pass_for_a_device_that_shards() if option == "fsdp" else kill_after(int(option.removeprefix("kill=")))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("fork")
    started = [context.Process(target=process, args=(n, count, port, rest[0], rest[1:])) for n in range(count)]
    for one in started:
        one.start()
    for one in started:
        one.join()
    return max(abs(one.exitcode or 0) for one in started)


if __name__ == "__main__":
    sys.exit(main())
