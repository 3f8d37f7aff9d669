"""The confined process that a Python adder runs in (child.py starts it). It answers questions about the file.

A question is JSON {"question": name, "stamp": text, ...}; an answer is {"value": ...} or {"error": text} and repeats
the stamp. If the answer is an array, "value" is its shape, and its float64 numbers follow. Nothing here is trusted:
whatever comes out is judged as the file's own.
"""

import json
import os
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lab.adders.challenge.confinement import confine
from lab.adders.challenge.source import facts

NAME = "submission"
LARGEST_INTEGER = 10**40
"""A decoded number this large is not sent, because writing its digits could take forever."""
LARGEST_LOGITS = 1 << 19


def serve(connection: Connection, bounds: tuple[int, int], confined: bool) -> None:
    """Sends which confinements are in force, before it gets any code of the file; then answers questions."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    kept = connection.fileno()
    os.closerange(3, kept)
    os.closerange(kept + 1, 65536)
    connection.send_bytes(json.dumps({"stamp": None, "value": confine(*bounds, confined)}).encode())
    sys.argv[:] = [""]
    os.environ.clear()
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    worker = Worker()
    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except EOFError:
            os._exit(0)
        stamp = {"stamp": request.pop("stamp")}
        data = b""
        try:
            value = getattr(worker, f"on_{request.pop('question')}")(**request)
            if isinstance(value, torch.Tensor):
                value, data = list(value.shape), value.contiguous().numpy().tobytes()
            answer = {"value": value, "data": bool(data)}
        except BaseException as error:
            answer = {"error": describe(error)}
        connection.send_bytes(json.dumps(answer | stamp).encode())
        if data:
            connection.send_bytes(data)


def describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:1000]
    except BaseException:
        return "an exception that cannot be shown"


class Worker:
    """Answers the questions about one file: `on_<question>` for each."""

    def __init__(self) -> None:
        self.module = types.ModuleType(NAME)
        self.model: Any = None
        self.form: Callable[[list[int]], Any] = list

    def on_load(self, source: str) -> dict[str, Any]:
        """What the text says (before any of it runs), and the two sizes."""
        found = facts(source)
        sys.modules[NAME] = self.module
        exec(compile(source, f"{NAME}.py", "exec"), self.module.__dict__)
        for name in ("VOCAB_SIZE", "MAX_OUTPUT_LEN"):
            size = getattr(self.module, name)
            found[name] = size if type(size) is int else None
        return found

    def on_encode(self, pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
        prompts = []
        for a, b in pairs:
            prompt = self.module.encode(a, b)
            if type(prompt) is not list or any(type(token) is not int for token in prompt[:100]):
                raise TypeError(f"encode({a}, {b}) returns no list of ints, but {prompt!r:.60}")
            prompts.append(prompt[:100])
        return prompts

    def on_decode(self, outputs: Sequence[list[int]]) -> list[int | str]:
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

    def on_build(self) -> None:
        torch.manual_seed(0)
        built = self.module.build_model()
        self.model = built[0] if isinstance(built, tuple) else built
        if not isinstance(self.model, torch.nn.Module):
            raise TypeError(f"build_model() returns {type(self.model).__name__}, not a torch.nn.Module")
        self.model.eval()

    def on_parameters(self) -> int:
        """Numbers in parameters and non-boolean buffers; what shares its data_ptr is counted once, by its largest."""
        found: dict[int, int] = {}
        for tensor in registered(self.model):
            if tensor.dtype != torch.bool:
                found[tensor.data_ptr()] = max(found.get(tensor.data_ptr(), 0), tensor.numel())
        return sum(found.values())

    def on_one(self, ids: list[int]) -> dict[str, Any]:
        """How the model wants one sequence, and what its pass does: whether it has logits at each position, and whether
        it has attention."""
        errors: list[Exception] = []
        for self.form in (lambda ids: torch.tensor([ids]), torch.tensor, list):
            try:
                with torch.no_grad(), Operations() as seen:
                    logits = logits_of(self.model(self.form(ids)))
                break
            except Exception as error:
                errors.append(error)
        else:
            raise errors[0]
        attends = any(attending(name, shape, len(ids)) for name, shape in seen.found)
        return {"everywhere": logits.ndim > 1 and logits.shape[-2] == len(ids), "attends": attends}

    def on_logits(self, ids: list[list[int]], batch: bool, everywhere: bool) -> torch.Tensor:
        """Logits after the last token (B, V), or at each (B, T, V); in one pass, or one pass a sequence."""
        with torch.no_grad():
            if batch:
                given = [logits_of(self.model(torch.tensor(ids)))]
            else:
                given = [logits_of(self.model(self.form(row))) for row in ids]
        rows = []
        for logits in given:
            wanted = (len(ids) if batch else 1, len(ids[0]))
            if not batch and (logits.ndim < 2 or logits.shape[0] != 1 or (logits.ndim == 2 and wanted[1] == 1)):
                logits = logits[None]
            if (
                logits.ndim not in (2, 3)
                or logits.shape[0] != wanted[0]
                or (logits.ndim == 3 and logits.shape[1] not in (1, wanted[1]))
            ):
                raise ValueError(f"the model gives logits of shape {tuple(logits.shape)} for ids {wanted}")
            rows.append(logits if everywhere or logits.ndim == 2 else logits[:, -1])
        found = torch.cat(rows).double()
        if found.numel() > LARGEST_LOGITS:
            raise ValueError(f"{found.numel():,} logits at once")
        return found


def logits_of(output: Any) -> torch.Tensor:
    """The logits in what a model returns: a tensor, a tuple that begins with one, or an object or mapping with
    logits."""
    if isinstance(output, dict) and "logits" in output:
        output = output["logits"]
    elif not isinstance(output, torch.Tensor):
        output = getattr(output, "logits", output)
    if isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, torch.Tensor) or not output.ndim:
        raise TypeError(f"the model returns {type(output).__name__}, in which there are no logits")
    return output.detach()


SOFTMAX = {"_softmax", "_safe_softmax", "exp", "exp_", "exp2"}
PRODUCTS = {"mm", "bmm", "baddbmm", "addmm"}
REGISTERS = 16
"""Keys that a model may have besides its tokens."""


def attending(operation: str, shape: Sequence[int], tokens: int) -> bool:
    """Whether an operation is attention: one of torch's own, a softmax or exponentials over the tokens, or a product of
    all tokens with all."""
    over = [tokens <= size <= tokens + REGISTERS for size in shape]
    own = "attention" in operation or operation == "_transformer_encoder_layer_fwd"
    return own or (operation in SOFTMAX and any(over)) or (operation in PRODUCTS and sum(over) > 1)


class Operations(TorchDispatchMode):
    """A context that notes the operations of a pass, with the shapes of their results."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[int, ...]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        first = result[0] if isinstance(result, tuple) else result
        self.found.append((func.overloadpacket.__name__, tuple(getattr(first, "shape", ()))))
        return result


def registered(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Every parameter and buffer. This is read from where torch keeps them, because a class could answer
    `named_parameters` with less."""
    if isinstance(model, torch.jit.ScriptModule):
        yield from (*model.parameters(), *model.buffers())
        return
    waiting, seen = [model], set()
    while waiting:
        module = waiting.pop()
        if id(module) not in seen:
            seen.add(id(module))
            own = vars(module)
            yield from (each for kind in ("_parameters", "_buffers") for each in own[kind].values() if each is not None)
            waiting += [part for part in own["_modules"].values() if part is not None]


# What torch makes when it is first used, it could not make in a confined process.
torch.set_num_threads(1)
with torch.no_grad(), Operations():
    torch.nn.MultiheadAttention(2, 1, batch_first=True).eval()(*[torch.ones(1, 2, 2)] * 3)
