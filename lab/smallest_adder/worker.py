"""A submission in a process of its own, seen from inside: loads it, once confined, and answers questions about it.

A question is JSON {"question": name, "stamp": text, ...}, followed by int64 ids where it has a "shape"; an answer is
{"value": ...} or {"error": text}, or has the "shape" of float64 numbers that follow, and repeats the stamp.

Shapes: B sequences, T tokens, V tokens in the vocabulary.
"""

import json
import os
import sys
import types
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from lab.smallest_adder import attention, tensors
from lab.smallest_adder.confinement import confine
from lab.smallest_adder.contract import LONGEST_PROMPT
from lab.smallest_adder.recording import Array, Recorder

torch.set_num_threads(1)
attention.warm_up()

NAME = "submission"

LARGEST_INTEGER = 10**40
"""Beyond it a decoded number is sent as none: its digits could take forever to write."""


def serve(connection: Connection, limits: tuple[int, int], confined: bool) -> None:
    """Say which confinements are in force, before anything of the submission is here; then answer questions."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    kept = connection.fileno()
    os.closerange(3, kept)
    os.closerange(kept + 1, 65536)
    connection.send_bytes(json.dumps({"stamp": None, "value": confine(*limits, confined)}).encode())
    forget_the_harness()
    worker = Worker()
    while True:
        try:
            request = json.loads(connection.recv_bytes())
            ids = connection.recv_bytes() if "shape" in request else b""
        except EOFError:
            os._exit(0)
        stamp = {"stamp": request.pop("stamp")}
        try:
            value = worker.answer(request, ids)
        except BaseException as error:
            value = {"error": describe(error)}
        if isinstance(value, np.ndarray):
            connection.send_bytes(json.dumps({"shape": value.shape} | stamp).encode())
            connection.send_bytes(value.tobytes())
        else:
            connection.send_bytes(json.dumps(value | stamp).encode())


def forget_the_harness() -> None:
    """Take away what a submission could learn from, or replace, by importing it."""
    sys.argv[:] = [""]
    sys.orig_argv[:] = [""]
    os.environ.clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("lab", "__mp_main__")]:
        del sys.modules[name]


def describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:1000]
    except BaseException:
        return "an exception that cannot be shown"


class Worker:
    def __init__(self) -> None:
        self.module = types.ModuleType(NAME)
        self.model: torch.nn.Module = torch.nn.Module()
        self.whole: Callable[[torch.Tensor], torch.Tensor] = lambda ids_BT: batches(self.model, ids_BT)
        self.before = tensors.public_names()
        self.kept: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.ablated: list[int] = []

    def answer(self, request: dict[str, Any], ids: bytes) -> Any:
        question = request.pop("question")
        if "shape" in request:
            ids_BT = torch.frombuffer(bytearray(ids), dtype=torch.int64).reshape(request["shape"])
            keys = {ids_BT.shape[1] + extra for extra in self.ablated}
            with attention.Even(keys) if keys else torch.inference_mode():
                logits = self.last(ids_BT) if question == "last" else self.every(ids_BT)
            return logits.detach().to(torch.float64).contiguous().numpy()
        return {"value": getattr(self, f"on_{question}")(**request)}

    def on_load(self, source: str) -> dict[str, Any]:
        sys.modules[NAME] = self.module
        exec(compile(source, f"{NAME}.py", "exec"), self.module.__dict__)
        sizes = (self.module.VOCAB_SIZE, self.module.MAX_OUTPUT_LEN)
        return {
            "sizes": [size if type(size) is int else None for size in sizes],
            "callable": [callable(getattr(self.module, name)) for name in ("build_model", "encode", "decode")],
        }

    def on_encode(self, pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
        prompts = []
        for a, b in pairs:
            prompt = self.module.encode(a, b)
            if type(prompt) is list and len(prompt) > LONGEST_PROMPT:
                raise ValueError(f"encode({a}, {b}) has {len(prompt):,} tokens; at most {LONGEST_PROMPT}")
            if type(prompt) is not list or any(type(token) is not int for token in prompt):
                raise TypeError(f"encode({a}, {b}) returns no list of ints, but {prompt!r:.60}")
            prompts.append(list(prompt))
        return prompts

    def on_decode(self, outputs: Sequence[list[int]]) -> list[int | str]:
        """An int as it is; where there is none, why."""
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

    def on_build(self) -> dict[str, Any]:
        torch.manual_seed(0)
        built = self.module.build_model()
        model = built[0] if isinstance(built, tuple) and built else built
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"build_model() returns {type(model).__name__}, not a torch.nn.Module")
        self.model = model.eval()
        tensors.clear_unseen(model)
        return self.on_tensors()

    def on_tensors(self) -> dict[str, Any]:
        return {"tensors": tensors.described(self.model)}

    def on_probe(self, prompt: list[int]) -> str:
        """How the model takes ids: in batches, one row at a time, or one row without a batch dimension."""
        ids_BT = torch.tensor([prompt, prompt[::-1]])
        refused = ""
        with torch.inference_mode():
            for way, whole in (("batches", batches), ("rows", rows), ("tokens", bare_rows)):
                self.whole = lambda ids_BT, whole=whole: whole(self.model, ids_BT)
                try:
                    logits = self.every(ids_BT)
                except Exception as error:
                    refused = refused or describe(error)
                    continue
                if logits.ndim == 3 and len(logits) == 2:
                    return way
        raise TypeError(refused or "the model returns no logits of shape (batch, tokens, vocabulary)")

    def every(self, ids_BT: torch.Tensor) -> torch.Tensor:
        """(B, T, V), or (B, 1, V) from a model that gives the last position's logits alone."""
        logits = self.whole(ids_BT)
        return logits if logits.ndim == 3 else logits[:, None]

    def last(self, ids_BT: torch.Tensor) -> torch.Tensor:
        return self.every(ids_BT)[:, -1]

    def on_record(self, ids: list[int], extra: list[int], mixes: list[list]) -> dict[str, Any]:
        """Of one sequence: a Recording, and the logits (positions, V)."""
        ids_BT = torch.tensor([ids])
        with Recorder(ids_BT, self.model, set(extra), [Array(*mix) for mix in mixes]) as recorder:
            logits_BTV = self.every(ids_BT)
        return {"recording": recorder.recording._asdict(), "logits": logits_BTV[0].to(torch.float64).tolist()}

    def on_ablate(self, extra: list[int]) -> None:
        """Attention whose keys are as many as tokens, and so many more, looks everywhere alike; none restores it."""
        self.ablated = extra

    def on_replace(self, seed: int | None) -> None:
        """Every number that is counted becomes zero, or noise of the given seed."""
        self.kept = self.kept or tensors.replaced_by_zeros(self.model)
        if seed is not None:
            tensors.fill_with_noise([now for now, _ in self.kept], seed)

    def on_restore(self) -> None:
        for now, before in self.kept:
            now.copy_(before)
        self.kept = []

    def on_strays(self) -> list[str]:
        return tensors.strays(self.module, self.model)

    def on_masks(self) -> list[str]:
        return tensors.strange_masks(self.model)

    def on_tampered(self) -> list[str]:
        return tensors.changed(self.before)


def first(output: Any) -> torch.Tensor:
    return output[0] if isinstance(output, tuple | list) else output


def batches(model: torch.nn.Module, ids_BT: torch.Tensor) -> torch.Tensor:
    logits = first(model(ids_BT))
    if logits.ndim not in (2, 3) or len(logits) != len(ids_BT):
        raise TypeError(f"the model makes {tuple(logits.shape)} of ids of shape {tuple(ids_BT.shape)}")
    return logits


def rows(model: torch.nn.Module, ids_BT: torch.Tensor) -> torch.Tensor:
    return torch.stack([_flat(first(model(row[None]))) for row in ids_BT])


def bare_rows(model: torch.nn.Module, ids_BT: torch.Tensor) -> torch.Tensor:
    return torch.stack([_flat(first(model(row))) for row in ids_BT])


def _flat(logits: torch.Tensor) -> torch.Tensor:
    while logits.ndim > 2 and len(logits) == 1:
        logits = logits[0]
    return logits if logits.ndim == 2 else logits[None]
