"""A submission in a process of its own, seen from inside: confines itself, loads it, and answers questions about it.

A question is JSON {"question": name, "stamp": text, ...}; an answer is {"value": ...} or {"error": text} and repeats
the stamp. A question for the model's graph is answered with {"value": graph, "bytes": sizes}; then one piece of bytes
follows for each size, with the numbers of the model's tensors. Nothing here is trusted: whatever comes out is judged as
the submission's own.
"""

import json
import os
import sys
import types
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch

from lab.smallest_adder.contract import LONGEST_PROMPT
from lab.smallest_adder.trace.confinement import confine
from lab.smallest_adder.trace.tape import first, warm_up, written_down

torch.set_num_threads(1)
warm_up()

NAME = "submission"

LARGEST_INTEGER = 10**40
"""A decoded number this large is not sent, because writing its digits could take forever."""


def serve(connection: Connection, limits: tuple[int, int], confined: bool) -> None:
    """Sends which confinements are in force, before it gets any code of the submission; then answers questions."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    kept = connection.fileno()
    os.closerange(3, kept)
    os.closerange(kept + 1, 65536)
    connection.send_bytes(json.dumps({"stamp": None, "value": confine(*limits, confined)}).encode())
    sys.argv[:] = [""]
    os.environ.clear()
    worker = Worker()
    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except EOFError:
            os._exit(0)
        stamp = {"stamp": request.pop("stamp")}
        pieces: list[bytes] = []
        try:
            answer = {"value": getattr(worker, f"on_{request.pop('question')}")(pieces, **request)}
        except BaseException as error:
            answer, pieces = {"error": describe(error)}, []
        connection.send_bytes(json.dumps(answer | stamp | {"bytes": [len(piece) for piece in pieces]}).encode())
        for piece in pieces:
            connection.send_bytes(piece)


def describe(error: BaseException) -> str:
    """The type and the text of an exception of the submission."""
    try:
        return f"{type(error).__name__}: {error}"[:1000]
    except BaseException:
        return "an exception that cannot be shown"


class Worker:
    """Answers the questions about one submission: `on_<question>` for each."""

    def __init__(self) -> None:
        self.module = types.ModuleType(NAME)
        self.model = torch.nn.Module()

    def on_load(self, pieces: list[bytes], source: str) -> dict[str, Any]:
        sys.modules[NAME] = self.module
        exec(compile(source, f"{NAME}.py", "exec"), self.module.__dict__)
        sizes = (self.module.VOCAB_SIZE, self.module.MAX_OUTPUT_LEN)
        return {
            "sizes": [size if type(size) is int else None for size in sizes],
            "callable": [callable(getattr(self.module, name)) for name in ("build_model", "encode", "decode")],
        }

    def on_encode(self, pieces: list[bytes], pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
        prompts = []
        for a, b in pairs:
            prompt = self.module.encode(a, b)
            if type(prompt) is list and len(prompt) > LONGEST_PROMPT:
                raise ValueError(f"encode({a}, {b}) has {len(prompt):,} tokens; at most {LONGEST_PROMPT}")
            if type(prompt) is not list or any(type(token) is not int for token in prompt):
                raise TypeError(f"encode({a}, {b}) returns no list of ints, but {prompt!r:.60}")
            prompts.append(list(prompt))
        return prompts

    def on_decode(self, pieces: list[bytes], outputs: Sequence[list[int]]) -> list[int | str]:
        """For each output the int that `decode` returns, or the reason why there is none."""
        answers: list[int | str] = []
        for output in outputs:
            try:
                answer = self.module.decode(list(output))
            except Exception as error:
                answers.append(f"raises {describe(error)}"[:200])
                continue
            if type(answer) is not int:
                answers.append(f"returns {type(answer).__name__}, not int")
            else:
                answers.append(answer if abs(answer) < LARGEST_INTEGER else "returns a number of over 40 digits")
        return answers

    def on_build(self, pieces: list[bytes]) -> None:
        torch.manual_seed(0)
        try:
            model = first(self.module.build_model())
        except PermissionError as error:
            compiles = TypeError("build_model() compiles the model; return the plain module, without torch.compile")
            raise (compiles if "torchinductor" in str(error) else error) from error
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"build_model() returns {type(model).__name__}, not a torch.nn.Module")
        self.model = model.eval()

    def on_trace(self, pieces: list[bytes], ids: list[int], vocabulary: int) -> dict[str, Any]:
        """The model's pass over the ids, with all tensors that it has registered or takes from elsewhere."""
        own = {id(tensor): (name, kind, tensor) for name, kind, tensor in registered(self.model)}
        tape, logits = written_down(self.model, ids, vocabulary)
        used = {id(tensor): value for value, tensor in tape.outside.items()}
        storages: dict[int, int] = {}
        tensors = []
        elsewhere = [tensor for tensor in tape.outside.values() if id(tensor) not in own]
        for tensor in [*(tensor for *_, tensor in own.values()), *elsewhere]:
            whole = tensor.untyped_storage()
            if whole.data_ptr() not in storages:
                storages[whole.data_ptr()] = len(pieces)
                pieces.append(torch.empty(0, dtype=torch.uint8).set_(whole).numpy().tobytes())
            name, kind, _ = own.get(id(tensor), ("", "constant", None))
            said = {"value": used.get(id(tensor)), "name": name, "kind": kind, "trainable": tensor.requires_grad}
            said |= {"dtype": str(tensor.dtype).removeprefix("torch."), "storage": storages[whole.data_ptr()]}
            layout = {"offset": tensor.storage_offset(), "shape": list(tensor.shape), "stride": list(tensor.stride())}
            tensors.append(said | layout)
        return {"nodes": tape.nodes, "logits": logits, "batch": tape.ids.ndim == 2, "tensors": tensors}


def registered(model: torch.nn.Module) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Yields (name, "parameter" or "buffer", tensor) for everything that the model has registered.

    This is read from where torch keeps it, because a submission's class could answer `named_parameters` with less.
    """
    waiting, seen = [("", model)], set()
    while waiting:
        prefix, module = waiting.pop(0)
        if id(module) in seen:
            continue
        seen.add(id(module))
        if isinstance(module, torch.jit.ScriptModule):
            raise TypeError(f"{prefix}{type(module).__name__} is a scripted module; submit the plain one")
        for kind, place in (("parameter", "_parameters"), ("buffer", "_buffers")):
            for name, tensor in vars(module)[place].items():
                if tensor is not None:
                    yield prefix + name, kind, tensor
        waiting += [(f"{prefix}{name}.", part) for name, part in vars(module)["_modules"].items() if part is not None]
