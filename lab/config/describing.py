"""Describes a config's schema in words: the help of a command, and one line for each mistake in a config."""

import difflib
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic_core import ErrorDetails

Shape: TypeAlias = dict[str, Any]  # a JSON schema, or a part of one


def help_text(schema: type[BaseModel]) -> str:
    """Every dotted key of `schema` with its type, default and docstring; ``*`` stands for an index or a name."""
    shape = schema.model_json_schema()
    defs = shape.get("$defs", {})
    lines = []
    for key, field, default, condition in _keys(shape, defs):
        lines.append(" ".join(filter(None, [f"{key}: {_type(field, defs)}", default, condition])))
        description = _resolve(field, defs).get("description", "")
        lines += textwrap.wrap(description, width=110, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def complaints(
    schema: type[BaseModel],
    errors: list[ErrorDetails],
    origin: Callable[[Sequence[str | int]], str],
    distance: Callable[[Sequence[str | int]], Any],
) -> list[str]:
    """One line for each wrong key, in the order of `errors`.

    Args:
        schema: the schema that the config should follow.
        errors: what pydantic found.
        origin: where a key was written, such as a file and line.
        distance: how far from the user a key was written, to be compared: on the command line, in the file that they
            named, in one that it extends, or nowhere.
    """
    shape = schema.model_json_schema()
    defs = shape.get("$defs", {})
    everywhere = [key for key, *_ in _keys(shape, defs)]
    found: dict[str, list[str]] = {}
    for error in errors:
        key, parent = _locate(error["loc"], shape, defs)
        context, named = error.get("ctx", {}), []
        value, allowed = error["input"], re.sub(r"^(Input|Value error,|Assertion failed,) ", "", error["msg"])
        match error["type"]:
            case "extra_forbidden":
                here = list(parent.get("properties", {}))
                elsewhere = [other for other in everywhere if other.rpartition(".")[2] == key[-1]]
                hint = did_you_mean(key[-1], here) or did_you_mean(key[-1], elsewhere, cutoff=0)
                allowed = f"no such key{hint or '.'} Keys here: {', '.join(here) or 'none'}"
            case "union_tag_invalid":
                key, value = [*key, "kind"], context["tag"]
                allowed = f"should be {context['expected_tags']}{did_you_mean(value, context['expected_tags'])}"
            case "union_tag_not_found":
                key, union = [*key, "kind"], _locate((*error["loc"], "kind"), shape, defs)[1]
                allowed = f"missing, should be {' | '.join(_variants(union, defs))}"
            case "missing":
                allowed = f"missing, should be {_type(parent.get('properties', {}).get(key[-1], {}), defs)}"
            case "together":
                parts = [[*key, *part.split(".")] for part in context["keys"]]
                key = min(parts, key=distance)
            case "value_error" if isinstance(value, dict):
                named = [[*key, *word.split(".")] for word in re.findall(r"\w+(?:\.\w+)*", allowed)]
            case "model_type" | "model_attributes_type" | "dict_type" if here := _below(shape, key, defs):
                allowed = f"should have keys: {key[-1]}={{{', '.join(here)}}}"
            case "literal_error" | "enum":
                allowed += did_you_mean(value, context["expected"])
        # If a key is missing or a mapping is wrong as a whole, the value would be the whole mapping, and is not shown.
        whole = error["type"] == "missing" or (isinstance(value, dict) and error["type"] != "extra_forbidden")
        shown = ".".join(map(str, key)) + ("" if whole else f" = {show(value)}")
        # A section that is wrong as a whole is reported where the user wrote one of the keys that the error names.
        place = min([*named, key], key=distance)
        subject = ": ".join(filter(None, [origin(place), shown]))
        found.setdefault(subject, []).append(" ".join(allowed.split()))
    # A union without a kind complains once for each of its types.
    return [f"{subject}: {' or '.join(dict.fromkeys(allowed))}" for subject, allowed in found.items()]


def _below(shape: Shape, key: Sequence[str | int], defs: Shape) -> list[str]:
    """The keys of the section at `key`, each with its type."""
    for part in key:
        shape = _resolve(_resolve(shape, defs).get("properties", {}).get(part, {}), defs)
    return [f"{name}: {_type(field, defs)}" for name, field in shape.get("properties", {}).items()]


def _locate(loc: Sequence[str | int], shape: Shape, defs: Shape) -> tuple[list[str | int], Shape]:
    """The key that pydantic's `loc` stands for, without the names of union members, and the shape that contains it."""
    key: list[str | int] = []
    parent = shape
    for part in loc:
        parent = _resolve(shape, defs)
        if "discriminator" in parent:
            shape = _variants(parent, defs).get(str(part), {})
        elif "anyOf" in parent:
            shape = {}
        else:
            key.append(part)
            shape = parent.get("properties", {}).get(part) or _element(parent)
    return key, parent


def did_you_mean(given: Any, allowed: Sequence[str], cutoff: float = 0.6) -> str:
    """A suggestion from `allowed`, such as ", did you mean adamw?"; empty if nothing is close.

    Args:
        given: what the user wrote.
        allowed: the allowed words, or a text of pydantic that quotes them.
        cutoff: how similar a word must be to be suggested, from 0 to 1.
    """
    words = re.findall(r"'([^']*)'", allowed) if isinstance(allowed, str) else allowed
    close = difflib.get_close_matches(str(given), words, n=1, cutoff=cutoff)
    return f", did you mean {close[0]}?" if close else ""


def show(value: Any) -> str:
    return textwrap.shorten(json.dumps(value, ensure_ascii=False, default=str), width=80, placeholder=" ...")


# What a schema allows


def _resolve(shape: Shape, defs: Shape) -> Shape:
    """`shape` with its reference followed and its null alternative dropped.

    Its own description and default replace those of the reference.
    """
    alternatives = [part for part in shape.get("anyOf", []) if part.get("type") != "null"]
    if "$ref" in shape:
        inner = defs[shape["$ref"].rpartition("/")[2]]
    elif len(alternatives) == 1:
        [inner] = alternatives
    else:
        return shape
    return {**_resolve(inner, defs), **{name: part for name, part in shape.items() if name not in ("$ref", "anyOf")}}


def _variants(shape: Shape, defs: Shape) -> dict[str, Shape]:
    """The alternatives of a union whose members have a `kind`, by their kind; empty if `shape` is no such union."""
    mapping = shape.get("discriminator", {}).get("mapping", {})
    return {tag: _resolve({"$ref": reference}, defs) for tag, reference in mapping.items()}


def _element(shape: Shape) -> Shape:
    """The shape of a list's items or of a free mapping's values; empty if `shape` is neither."""
    return next((shape[name] for name in ("items", "additionalProperties") if isinstance(shape.get(name), dict)), {})


def _keys(shape: Shape, defs: Shape, prefix: str = "", condition: str = "") -> Iterator[tuple[str, Shape, str, str]]:
    """The dotted key, shape, default and condition of every key below `shape`. A condition such as [x.kind=y] already
    names the kind, so the key `kind` itself is left out."""
    for name, field in shape.get("properties", {}).items():
        if condition and "const" in field:
            continue
        inner = _resolve(field, defs)
        key = prefix + name
        yield key, field, _default(name, shape, inner, defs), condition
        while element := _element(inner):
            key, inner = f"{key}.*", _resolve(element, defs)
        for tag, variant in _variants(inner, defs).items():
            yield from _keys(variant, defs, f"{key}.", f"[{key}.kind={tag}]")
        yield from _keys(inner, defs, f"{key}.", condition)


def _default(name: str, parent: Shape, field: Shape, defs: Shape) -> str:
    if "default" not in field:
        return "(required)" if name in parent.get("required", []) else "(optional)"
    default = field["default"]
    if isinstance(default, dict):
        own = _variants(field, defs).get(default.get("kind", ""), field).get("properties", {})
        # The keys inside have their own lines, so this shows only values that differ from those keys' own defaults.
        default = {k: v for k, v in default.items() if k == "kind" or v != own.get(k, {}).get("default")}
    return f"= {json.dumps(default, ensure_ascii=False)}"


def _type(shape: Shape, defs: Shape) -> str:
    if "anyOf" in shape:
        return " | ".join(_type(part, defs) for part in shape["anyOf"])
    shape = _resolve(shape, defs)
    if variants := _variants(shape, defs):
        return f"mapping of kind {' | '.join(variants)}"
    if "enum" in shape or "const" in shape:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in shape.get("enum", [shape.get("const")]))
    if element := _element(shape):
        return f"{'list' if shape['type'] == 'array' else 'mapping'} of {_type(element, defs)}"
    name = str(shape.get("type", "any")).replace("object", "mapping").replace("array", "list")
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    return " ".join([name, *(f"{sign} {shape[bound]}" for bound, sign in signs.items() if bound in shape)])
