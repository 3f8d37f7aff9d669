"""The confined process that a Python adder runs in (child.py starts it). It answers one question about the file.

A question is JSON [name, text of the file, details]; an answer is {"value": ...} or {"error": text}. Nothing here is
trusted: whatever comes out is judged as the file's own.

Shapes: B sequences, T tokens, A positions that a model gives logits for (T, or only the last), V tokens of the
vocabulary.
"""

import json
import os
import random
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lab.adders.challenge.child import READY
from lab.adders.challenge.confinement import confine
from lab.adders.challenge.source import facts
from lab.adders.loop import generate
from lab.adders.spec import LARGEST_VOCABULARY

NAME = "submission"
LARGEST_INTEGER = 10**40
"""A decoded number this large is not sent, because writing its digits could take forever."""
LONGEST = 100
"""More tokens of a prompt are not sent."""
AT_ONCE = 500
TOLERANCE = 1e-3
"""How far logits may differ that should be the same, as a share of their size."""
DRAWN = random.SystemRandom()


class Objection(Exception):  # noqa: N818
    """A rule is broken; the text says how."""


def serve(connection: Connection, bounds: tuple[int, int], confined: bool) -> None:
    """Confines this process before it gets any code of the file; then answers."""
    quiet, kept = os.open(os.devnull, os.O_RDWR), connection.fileno()
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    os.closerange(3, kept)
    os.closerange(kept + 1, 65536)
    confine(*bounds, confined)
    sys.argv[:] = [""]
    os.environ.clear()
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    connection.send_bytes(READY)
    question, source, given = json.loads(connection.recv_bytes())
    try:
        answer = {"value": QUESTIONS[question](source, **given)}
    except BaseException as error:
        answer = {"error": describe(error)}
    connection.send_bytes(json.dumps(answer).encode())
    os._exit(0)


def describe(error: BaseException) -> str:
    try:
        return str(error) if isinstance(error, Objection) else f"{type(error).__name__}: {error}"[:1000]
    except BaseException:
        return "an exception that cannot be shown"


def module_of(source: str) -> Any:
    module = sys.modules[NAME] = types.ModuleType(NAME)
    exec(compile(source, f"{NAME}.py", "exec"), module.__dict__)
    return module


def twice(call: Callable[[Any], Any], items: Sequence[Any]) -> list[list[Any]]:
    """What a function returns for each item, in two rounds of different order."""
    rounds = []
    for _ in range(2):
        found = {place: call(items[place]) for place in DRAWN.sample(range(len(items)), len(items))}
        rounds.append([found[place] for place in range(len(items))])
    return rounds


def encode(source: str, pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """What the text says (before any of it runs), the two sizes, and two rounds of prompts."""
    stated, module = facts(source), module_of(source)

    def prompt(pair: Sequence[int]) -> list[int]:
        found = module.encode(*pair)
        if type(found) is not list or any(type(token) is not int for token in found[:LONGEST]):
            raise Objection(f"encode({pair[0]}, {pair[1]}) returns no list of ints, but {found!r:.60}")
        return found[:LONGEST]

    sizes = {name: getattr(module, name) for name in ("VOCAB_SIZE", "MAX_OUTPUT_LEN")}
    sizes = {name: size if type(size) is int else repr(size)[:40] for name, size in sizes.items()}
    return stated | sizes | {"rounds": twice(prompt, pairs)}


def decode(source: str, outputs: Sequence[list[int]]) -> dict[str, Any]:
    """Two rounds of answers: for each output the int that `decode` returns, or the reason why there is none."""
    module = module_of(source)

    def answer(output: list[int]) -> int | str:
        try:
            found = module.decode(list(output))
        except Exception as error:
            return f"raises {describe(error)}"[:200]
        if type(found) is not int:
            return f"returns {type(found).__name__}, not int"
        return found if abs(found) < LARGEST_INTEGER else "returns a number of over 40 digits"

    return {"rounds": twice(answer, outputs)}


@torch.no_grad()
def model(source: str, practice: list[list[int]], prompts: list[list[int]], length: int) -> dict[str, Any]:
    """What the model writes after the prompts, its parameters, and why it is no causal model with attention."""
    torch.manual_seed(0)
    built = module_of(source).build_model()
    adder = built[0] if isinstance(built, tuple) else built
    if not isinstance(adder, torch.nn.Module):
        raise Objection(f"build_model() returns {type(adder).__name__}, not a torch.nn.Module")
    adder.eval()
    found: dict[str, Any] = {"parameters": parameters(adder), "outputs": []}
    try:
        caller = Caller(adder, practice)
        outputs = written(caller, practice, length)
        check_structure(caller, [prompt + output[:-1] for prompt, output in zip(practice, outputs, strict=True)])
        found["outputs"] = written(caller, prompts, length)
    except Objection as error:
        found["objection"] = str(error)
    found["parameters"] = max(found["parameters"], parameters(adder))
    return found


QUESTIONS: dict[str, Callable[..., Any]] = {"encode": encode, "model": model, "decode": decode}
FORMS: tuple[Callable[[torch.Tensor], Any], ...] = (lambda ids_BT: ids_BT, lambda ids_BT: ids_BT[0], lambda ids_BT: ids_BT[0].tolist())  # fmt: skip  # noqa: E501
"""How a model may want one sequence."""


class Caller:
    """Calls a model in the form that it takes: with many sequences at once, if it computes them as it does each alone,
    or with one."""

    def __init__(self, adder: torch.nn.Module, practice: list[list[int]]) -> None:
        """Raises what the model raises in all forms, and Objection if it has no attention."""
        self.adder, self.batched, self.form = adder, False, FORMS[0]
        ids_BT = torch.tensor([row for row in practice if len(row) == len(practice[0])])
        errors: list[Exception] = []
        for self.form in FORMS:
            try:
                with Operations() as seen:
                    self.one(ids_BT[:1])
                break
            except Exception as error:
                errors.append(error)
        else:
            raise errors[0]
        if not any(attending(name, shape, ids_BT.shape[1]) for name, shape in seen.found):
            raise Objection(
                "no self-attention: the model's pass has no softmax over the tokens, nor a product of all with all"
            )
        alone_BAV = self(ids_BT)
        try:
            self.batched = alike(self.many(ids_BT), alone_BAV)
        except Exception:
            self.batched = False

    def __call__(self, ids_BT: torch.Tensor) -> torch.Tensor:
        """Logits (B, A, V)."""
        return self.many(ids_BT) if self.batched else torch.cat([self.one(row[None]) for row in ids_BT])

    def many(self, ids_BT: torch.Tensor) -> torch.Tensor:
        logits = logits_of(self.adder(ids_BT))
        return self.checked(logits if logits.ndim > 2 else logits[:, None], ids_BT)

    def one(self, ids_1T: torch.Tensor) -> torch.Tensor:
        logits = logits_of(self.adder(self.form(ids_1T)))
        return self.checked(logits if logits.ndim > 2 else torch.atleast_2d(logits)[None], ids_1T)

    def checked(self, logits: torch.Tensor, ids_BT: torch.Tensor) -> torch.Tensor:
        (count, tokens), shape = ids_BT.shape, tuple(logits.shape)
        if len(shape) != 3 or shape[0] != count or shape[1] not in (1, tokens):
            raise ValueError(f"the model gives logits of shape {shape} for ids {(count, tokens)}")
        if shape[2] > LARGEST_VOCABULARY:
            raise Objection(f"the model gives {shape[2]} logits a token; at most {LARGEST_VOCABULARY}")
        return logits.double()


def written(caller: Caller, prompts: list[list[int]], length: int) -> list[list[int]]:
    """What the model writes after each prompt in the growing loop."""
    outputs: list[list[int]] = [[]] * len(prompts)
    for size in sorted(set(map(len, prompts))):
        places = [place for place, prompt in enumerate(prompts) if len(prompt) == size]
        ids_BT = np.array([prompts[place] for place in places])
        grown = generate(lambda ids_BT: caller(torch.from_numpy(ids_BT))[:, -1].numpy(), ids_BT, length, AT_ONCE)
        for place, output in zip(places, grown.tolist(), strict=True):
            outputs[place] = output
    return outputs


def check_structure(caller: Caller, rows: list[list[int]]) -> None:
    """Raises Objection if the last logits never change with the tokens before, or others with the tokens after."""
    used = sorted(set().union(*rows) - {-1})  # the model need not be able to read other tokens

    def changed(row: Sequence[int]) -> list[int]:
        return [DRAWN.choice([token for token in used if token != old] or [old]) for old in row]

    def logits(*rows: list[int]) -> torch.Tensor:
        return caller(torch.tensor(rows).clamp(min=0))

    if all(alike(*logits(row, [*changed(row[:-1]), row[-1]])[:, -1]) for row in rows):
        raise Objection("no self-attention: what the model writes does not depend on earlier tokens")
    for row in rows:
        cut = DRAWN.randrange(1, len(row)) if len(row) > 1 else 1
        before, after = logits(row, [*row[:cut], *changed(row[cut:])])
        if len(before) == len(row) and not alike(before[:cut], after[:cut]):
            raise Objection(f"not causal: logits at the first {cut} tokens change with the tokens after them")


def alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether logits are the same up to rounding. Where they are not finite, they should both be not."""
    if one.shape != other.shape or (one.isfinite() != other.isfinite()).any():
        return False
    changed = one.isfinite() & (one != other)  # logits such as -1e9 for "never" say nothing of the size of the others
    if not changed.any():
        return True
    one, other = one[changed].abs(), (one - other)[changed].abs()
    return bool((other <= TOLERANCE * (one + one.median()) + 1e-9).all())


def logits_of(output: Any) -> torch.Tensor:
    """The logits in what a model returns: a tensor, a tuple that begins with one, or an object or mapping with
    logits."""
    if not isinstance(output, torch.Tensor):
        output = output["logits"] if isinstance(output, dict) and "logits" in output else output
        output = getattr(output, "logits", output)
    if isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, torch.Tensor) or not output.ndim:
        raise Objection(f"the model returns {type(output).__name__}, in which there are no logits")
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


def parameters(adder: torch.nn.Module) -> int:
    """Numbers in parameters and non-boolean buffers; what shares its data_ptr is counted once, by its largest."""
    found: dict[int, int] = {}
    for tensor in registered(adder):
        if tensor.dtype != torch.bool:
            found[tensor.data_ptr()] = max(found.get(tensor.data_ptr(), 0), tensor.numel())
    return sum(found.values())


def registered(adder: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Every parameter and buffer. This is read from where torch keeps them, because a class could answer
    `named_parameters` with less."""
    if isinstance(adder, torch.jit.ScriptModule):
        yield from (*adder.parameters(), *adder.buffers())
        return
    waiting, seen = [adder], set()
    while waiting:
        own = vars(waiting.pop())
        if id(own) not in seen:
            seen.add(id(own))
            yield from (each for kind in ("_parameters", "_buffers") for each in own[kind].values() if each is not None)
            waiting += [part for part in own["_modules"].values() if part is not None]


# What torch makes when it is first used, it could not make in a confined process.
torch.set_num_threads(1)
with torch.no_grad(), Operations():
    torch.nn.MultiheadAttention(2, 1, batch_first=True).eval()(*[torch.ones(1, 2, 2)] * 3)
