"""A declared adder: a transformer that adds, as data. Nothing of it is code, so the lab builds, runs and counts it
itself.

    numbers      tables of numbers by name; each is counted once, however often it is used
    model        embedding, positions, rope, layers (each attention, ffn or both), times, norm, head
    prompt       what stands before the answer: "a9..0" for digits 9 to 0 of a, "b3", or the id of a token
    answer       the tokens that are generated: "s0..10" for the digits of the sum, or the id of a token
    digits       the ids of the tokens 0 to 9, if they are not 0 to 9

`load` reads a file and refuses whatever cannot be built: one line for each mistake, with its place. It allocates
nothing that is larger than the file, and does not import torch.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from lab.adders.files import read
from lab.adders.references import Reference, Refused, is_number
from lab.config.describing import complaints
from lab.config.schema import Section
from lab.errors import TaskError

LARGEST_VOCABULARY = 256
LONGEST_PROMPT = 35
LONGEST_ANSWER = 30
DIGITS = 10
"""Digits of each number of a problem. The first four bounds are the challenge's."""
MOST_LAYERS = 64
LARGEST_FLOAT = {"float32": 3.4e38, "float64": 1.7e308}


def _map(value: Any) -> Any:
    """A reference alone is a map without a bias."""
    own = isinstance(value, dict) and not set(value) & {"join", "transpose", "ramp", "arc"}
    return value if own else {"w": value}


class Map(Section):
    """A linear map x W^T + b. Without `w`, it is the constant b, whatever x is."""

    w: Reference = None
    b: Reference = None


class Head(Map):
    nearest: Reference = None
    """Instead of w: the logit of a token is higher, the nearer its row is to x (x r - r r / 2)."""


class Norm(Section):
    kind: Literal["rms", "layer", "none"]
    """none: nothing but the gain and the bias."""
    gain: Reference = None
    bias: Reference = None
    eps: float = Field(default=0, ge=0, le=1)
    """Added to the mean square; if 0, 1e-6 (rms) or 1e-5 (layer)."""


class Rope(Section):
    """Rotary positions: the first half of a head's numbers are turned with the second half."""

    period: Reference = None
    """Tokens in a full turn, the same for all pairs."""
    theta: Reference = None
    """Instead of a period: pair i of d / 2 turns by theta^(-2 i / d) radians a token."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.period is None) == (self.theta is None):
            raise ValueError("should have either period or theta")
        return self


class Positions(Section):
    """Numbers that are added to the embedding, by position."""

    table: Reference = None
    sinusoidal: Reference = None
    """sin and cos in turn, of position / base^(2 i / width); this is the base."""


class Part(Section):
    """What attention and ffn have in common: x residual + f(norm(x)) branch."""

    norm: Norm | None = None
    post: bool = False
    """Whether the norm comes after the sum instead of before f."""
    residual: Reference = 1
    branch: Reference = 1


Linear = Annotated[Map | None, BeforeValidator(lambda value: value if value is None else _map(value))]


class Attention(Part):
    """Causal softmax attention. A map that is left out passes its input on."""

    q: Linear = None
    k: Linear = None
    v: Linear = None
    o: Linear = None
    heads: int = Field(default=1, ge=1, le=256)
    kv_heads: int | None = Field(default=None, ge=1, le=256)
    q_norm: Norm | None = None
    k_norm: Norm | None = None
    alibi: Reference = None
    """A slope for each head: the score falls by it for each token of distance."""
    scale: Reference = None
    """The factor of the scores; 1 / sqrt(head width) if it is left out."""


class Ffn(Part):
    """down(act(gate(x)) * up(x)), or down(act(up(x))) without a gate."""

    act: Literal["silu", "gelu", "gelu_tanh", "relu", "relu2", "tanh", "sigmoid", "sin", "none"]
    up: Linear = None
    gate: Linear = None
    down: Linear = None


class Layer(Section):
    attention: Attention | None = None
    ffn: Ffn | None = None

    def parts(self) -> list[tuple[str, Part]]:
        return [(kind, part) for kind in type(self).model_fields if (part := getattr(self, kind)) is not None]


class Model(Section):
    embedding: Reference
    positions: Annotated[
        Positions | None, BeforeValidator(lambda value: value if isinstance(value, dict | None) else {"table": value})
    ] = None
    rope: Rope | None = None
    layers: list[Layer] = Field(max_length=64)
    times: int = Field(default=1, ge=1, le=64)
    """How often the layers are gone through, with the same numbers."""
    norm: Norm | None = None
    head: Annotated[
        Head, BeforeValidator(lambda value: value if isinstance(value, dict) and "nearest" in value else _map(value))
    ]

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if len(self.layers) * self.times > MOST_LAYERS:
            raise ValueError(f"{len(self.layers)} layers, {self.times} times; at most {MOST_LAYERS} in all")
        return self

    def parts(self) -> list[tuple[str, str, Part]]:
        """(place, kind, part) of all layers in their order."""
        once = [
            (f"model.layers.{i}.{kind}", kind, part)
            for i, layer in enumerate(self.layers)
            for kind, part in layer.parts()
        ]
        return once * self.times


_SPAN = re.compile(r"([abs])(\d{1,2})(?:\.\.(\d{1,2}))?")


def _template(letters: str, longest: int, value: Any) -> list[int | str]:
    """The items of a template, one a token: an id, or a digit such as "a3"."""
    if not isinstance(value, list):
        raise ValueError('should be a list such as ["a9..0", 10, "b9..0"]')
    items: list[int | str] = []
    for item in value:
        found = _SPAN.fullmatch(item) if isinstance(item, str) else None
        if found and found[1] in letters:
            first, last = int(found[2]), int(found[3] or found[2])
            step = 1 if last >= first else -1
            items += [f"{found[1]}{place}" for place in range(first, last + step, step)]
        elif isinstance(item, int) and not isinstance(item, bool) and 0 <= item < LARGEST_VOCABULARY:
            items.append(item)
        else:
            kinds = " or ".join(f"{letter}9..0" for letter in letters)
            raise ValueError(f"{str(item)[:60]!r}: should be digits such as {kinds}, or the id of a token")
    if len(items) > longest:
        raise ValueError(f"{len(items)} tokens; at most {longest}")
    for letter, most in (("a", DIGITS), ("b", DIGITS), ("s", DIGITS + 1)):
        missing = [f"{letter}{place}" for place in range(most) if letter in letters and f"{letter}{place}" not in items]
        if missing:
            raise ValueError(f"digit {missing[0]} is missing (0 is the ones); {letter} has {most} digits")
    if letters == "s" and len(set(digits := [item for item in items if isinstance(item, str)])) < len(digits):
        raise ValueError("a digit of the sum is written twice")
    return items


class Adder(Section):
    numbers: dict[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$", max_length=60)], Any]
    model: Model
    prompt: Annotated[list[int | str], BeforeValidator(lambda value: _template("ab", LONGEST_PROMPT, value))]
    answer: Annotated[list[int | str], BeforeValidator(lambda value: _template("s", LONGEST_ANSWER, value))]
    digits: list[int] = Field(default=list(range(10)), min_length=10, max_length=10)
    vocabulary: int | None = Field(default=None, ge=1, le=LARGEST_VOCABULARY)
    """How many tokens there are; only a ramp or an arc for an embedding needs it."""
    precision: Literal["float32", "float64"] = "float32"
    category: Literal["trained", "hand-coded", "unstated"] = "unstated"
    seeds: int | None = Field(default=None, ge=1)
    """Of how many trained seeds this one is the best."""
    about: Annotated[str, Field(max_length=4000)] = ""

    @property
    def tokens(self) -> int:
        """The longest sequence that the model reads."""
        return len(self.prompt) + len(self.answer) - 1


def load(path: Path) -> Adder:
    """The adder in a JSON or YAML file. Raises TaskError."""
    try:
        return check(read(path))
    except ValueError as error:
        raise TaskError("\n".join(_printable(f"{path}: {line}") for line in str(error).splitlines())) from None


def check(value: Any) -> Adder:
    """The adder that plain values declare. Raises ValueError with a line for each mistake."""
    from lab.adders.shapes import check_shapes

    if not isinstance(value, dict):
        raise Refused("(the whole file)", "should be a mapping with numbers, model, prompt and answer")
    try:
        adder = Adder.model_validate(value, strict=True)
        check_shapes(adder)
    except ValidationError as error:
        errors = [found | {"input": _short(found["input"])} for found in error.errors(include_url=False)]
        raise ValueError("\n".join(complaints(Adder, errors, lambda key: "", lambda key: 0))) from None  # type: ignore[arg-type]
    except RecursionError:
        raise Refused("(the whole file)", "nested too deeply") from None
    return adder


def _short(value: Any) -> Any:
    """What an error shows of a value, which may be of any size."""
    return f"{str(value)[:60]} ..." if isinstance(value, list | str) and len(value) > 60 else value


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def shape_of(table: Any, place: str, largest: float) -> tuple[int, ...]:
    """The shape of a number, of a row, or of rows of the same length. Raises Refused if it is anything else, or if a
    number is not finite."""
    for where, wrong in _leaves(table):
        if not is_number(wrong):
            raise Refused(f"{place}{where}", f"{str(wrong)[:60]!r} is not a number")
        if not -largest < wrong < largest:
            text = "NaN" if wrong != wrong else str(wrong)[:60]
            raise Refused(f"{place}{where}", f"{text} is not a finite number in its precision")
    try:
        shape = np.shape(table)
    except ValueError:
        shape = (0,)
    if 0 in shape or len(shape) > 2:
        raise Refused(place, "should be a number, a list of numbers, or a list of rows of the same length")
    return shape


def _leaves(table: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of nested lists, with their places. Places are made only where they may be needed."""
    if not isinstance(table, list):
        yield "", table
        return
    for index, part in enumerate(table):
        if type(part) is float and -1e38 < part < 1e38:
            continue
        yield from ((f".{index}{where}", leaf) for where, leaf in _leaves(part))
