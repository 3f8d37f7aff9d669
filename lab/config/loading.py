"""From a YAML file and ``key.sub=value`` arguments to a validated config, and back.

A config is strict JSON written as YAML 1.2: ``1e-4`` is a number, ``no`` is a word, a key is given once. Every value
remembers where it was written, so that an error can say so; all errors of a config are reported at once, as the lines
of one `ConfigError`. What a schema allows is read from its JSON schema.
"""

import difflib
import functools
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from lab.errors import ConfigError

Config = TypeVar("Config", bound=BaseModel)
Shape: TypeAlias = dict[str, Any]  # a JSON schema, or a part of one


def load(schema: type[Config], path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read the YAML file at `path`, lay it over the files it ``extends:``, lay `overrides` over both, and validate.

    ``extends`` is relative to the file that says it. Mappings merge key by key and everything else replaces what it
    covers, as does a mapping that changes ``kind``. An override is ``key.sub=value`` with a YAML value; overrides are
    merged with each other first, so ``model.layers=2 model.kind=scratch`` means the same in either order.

    Raises `ConfigError`: a line for each problem with its origin, dotted key, value, and what is allowed there.
    """
    arguments = functools.reduce(_merge, map(_argument, overrides), _Node({}, ""))
    # What is missing at the top is missing from the file that the user named, whichever files it extends.
    tree = replace(_merge(_read(path), arguments), origin=str(path))
    try:
        return schema.model_validate_json(json.dumps(tree.plain()), strict=True)
    except ValidationError as error:
        raise ConfigError("\n".join(_problems(schema, tree, error.errors(include_url=False)))) from None


def dump(config: BaseModel) -> str:
    """The whole config as YAML, keys in the schema's order. To `load` it again gives an equal config."""
    return yaml.dump(config.model_dump(mode="json"), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


def help_text(schema: type[BaseModel]) -> str:
    """Every dotted key of `schema` with type, default and attribute docstring; ``*`` stands for an index or a name."""
    shape = schema.model_json_schema()
    defs = shape.get("$defs", {})
    lines = []
    for key, field, default, condition in _keys(shape, defs):
        lines.append(" ".join(filter(None, [f"{key}: {_type(field, defs)}", default, condition])))
        description = _resolve(field, defs).get("description", "")
        lines += textwrap.wrap(description, width=110, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def parse_command_line(schema: type[Config], argv: Sequence[str], prog: str, description: str) -> Config:
    """`load` what ``config.yaml key=value ...`` names; ``--help`` prints `help_text` and exits with status 0.

    Raises `ConfigError` if no config is given or it cannot be loaded.
    """
    usage = f"usage: {prog} config.yaml [key.sub=value ...]"
    if "--help" in argv or "-h" in argv:
        print(usage, description, help_text(schema), sep="\n\n")
        raise SystemExit(0)
    if not argv or not argv[0].endswith((".yaml", ".yml")):
        raise ConfigError(f"the first argument must be a config; {usage}")
    return load(schema, Path(argv[0]), argv[1:])


# Reading


@dataclass(frozen=True)
class _Node:
    """A scalar, ``list[_Node]`` or ``dict[str, _Node]``, and where it was written."""

    value: Any
    origin: str

    def plain(self) -> Any:
        """The JSON value without its origins."""
        match self.value:
            case dict():
                return {key: node.plain() for key, node in self.value.items()}
            case list():
                return [node.plain() for node in self.value]
            case scalar:
                return scalar

    def nearest(self, key: Sequence[str | int]) -> "_Node":
        """The node at `key`, or the deepest one on the way to it if there is none."""
        below: Any = dict(enumerate(self.value)) if isinstance(self.value, list) else self.value
        if not key or not isinstance(below, dict) or key[0] not in below:
            return self
        return below[key[0]].nearest(key[1:])


# YAML 1.2's core schema. PyYAML speaks 1.1, where 1e-4 is a word, no is false, 012 is ten and 1:30 is ninety.
_SCALARS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "null": (r"~|null|Null|NULL|", lambda text: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
    "int": (r"[-+]?[0-9]+", int),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
    ),
    "str": (r"(?!)", str),
}


class _Loader(yaml.SafeLoader):
    """Knows no scalars but those of `_SCALARS`."""


class _Dumper(yaml.SafeDumper):
    """Quotes what either version of YAML would take for something other than a string."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        # Only double quotes escape; in any other style PyYAML folds some of Unicode's line breaks into plain ones.
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if data.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_str)
_Loader.yaml_implicit_resolvers = {}
for _name, (_pattern, _) in _SCALARS.items():
    for _side in (_Loader, _Dumper):
        _side.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"(?:{_pattern})\\Z"), None)


def _read(path: Path, below: tuple[Path, ...] = ()) -> _Node:
    """The file's tree laid over that of the file it extends. `below` are the files that led here."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None
    tree = _parse(text, lambda line: f"{path}:{line}")
    if not isinstance(tree.value, dict):
        raise ConfigError(f"{tree.origin}: {_show(tree.plain())}: a config must be a mapping of keys to values")
    extends = tree.value.pop("extends", None)
    if extends is None:
        return tree
    base = path.parent / str(extends.plain())
    chain = (*below, path)
    if base.resolve() in [file.resolve() for file in chain]:
        raise ConfigError(f"{extends.origin}: extends goes in a circle: {' -> '.join(map(str, (*chain, base)))}")
    if not base.is_file():
        raise ConfigError(f"{extends.origin}: extends {base}, which is not a file")
    return _merge(_read(base, chain), tree)


def _argument(text: str) -> _Node:
    """The tree that ``key.sub=value`` stands for."""
    key, equals, value = text.partition("=")
    origin = f"argument {text!r}"
    if not equals or not all(key.split(".")):
        raise ConfigError(f"{origin}: an override is written key.sub=value")
    node = _parse(value, lambda line: origin)
    for part in reversed(key.split(".")):
        node = _Node({part: node}, origin)
    return node


def _merge(base: _Node, overlay: _Node) -> _Node:
    if not isinstance(base.value, dict) or not isinstance(overlay.value, dict):
        return overlay
    kinds = [node.value["kind"].plain() for node in (base, overlay) if "kind" in node.value]
    if len(kinds) == 2 and kinds[0] != kinds[1]:
        return overlay
    over = {key: _merge(base.value[key], node) if key in base.value else node for key, node in overlay.value.items()}
    return _Node({**base.value, **over}, base.origin)


def _parse(text: str, origin: Callable[[int], str]) -> _Node:
    """The tree of one YAML document; `origin` names the place of a line. Raises `ConfigError`."""
    try:
        document = yaml.compose(text, Loader=_Loader)
        return _Node(None, origin(1)) if document is None else _convert(document, origin)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ConfigError(f"{origin(mark.line + 1 if mark else 1)}: not YAML: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{origin(line)}: not YAML: {error.reason}") from None
    except RecursionError:
        raise ConfigError(f"{origin(1)}: nested too deeply, or in itself") from None


def _convert(node: yaml.Node, origin: Callable[[int], str]) -> _Node:
    here = origin(node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        items: dict[str, _Node] = {}
        for key, value in node.value:
            at_key = origin(key.start_mark.line + 1)
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError(f"{at_key}: a key must be a word, not a list or a mapping")
            if key.value in items:
                raise ConfigError(f"{at_key}: key {key.value!r} was already given at {items[key.value].origin}")
            items[key.value] = replace(_convert(value, origin), origin=at_key)
        return _Node(items, here)
    if isinstance(node, yaml.SequenceNode):
        return _Node([_convert(item, origin) for item in node.value], here)
    try:
        _, construct = _SCALARS[node.tag.removeprefix("tag:yaml.org,2002:")]
        return _Node(construct(node.value), here)
    except (KeyError, ValueError):
        raise ConfigError(f"{here}: {_show(node.value)} cannot be read as {node.tag}") from None


# What a schema allows


def _resolve(shape: Shape, defs: Shape) -> Shape:
    """`shape` with its reference followed and its null alternative dropped; its own description and default win."""
    alternatives = [part for part in shape.get("anyOf", []) if part.get("type") != "null"]
    if "$ref" in shape:
        inner = defs[shape["$ref"].rpartition("/")[2]]
    elif len(alternatives) == 1:
        [inner] = alternatives
    else:
        return shape
    return {**_resolve(inner, defs), **{name: part for name, part in shape.items() if name not in ("$ref", "anyOf")}}


def _variants(shape: Shape, defs: Shape) -> dict[str, Shape]:
    """The mappings that a union by kind may be, by that kind; none if `shape` is no such union."""
    mapping = shape.get("discriminator", {}).get("mapping", {})
    return {tag: _resolve({"$ref": reference}, defs) for tag, reference in mapping.items()}


def _element(shape: Shape) -> Shape:
    """What a list's items or a free mapping's values may be; empty if `shape` is neither."""
    return next((shape[name] for name in ("items", "additionalProperties") if isinstance(shape.get(name), dict)), {})


def _keys(shape: Shape, defs: Shape, prefix: str = "", condition: str = "") -> Iterator[tuple[str, Shape, str, str]]:
    """(dotted key, shape, default, condition) of every key below `shape`, each but the kinds that conditions name."""
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
        # The keys below have lines of their own: only what differs from those is worth repeating.
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


# Errors


def _problems(schema: type[BaseModel], tree: _Node, errors: list[ErrorDetails]) -> list[str]:
    """One line for each key that is wrong, in the order of `errors`."""
    shape = schema.model_json_schema()
    defs = shape.get("$defs", {})
    everywhere = [key for key, *_ in _keys(shape, defs)]
    complaints: dict[str, list[str]] = {}
    for error in errors:
        key, parent = _locate(error["loc"], shape, defs)
        context = error.get("ctx", {})
        value, allowed = error["input"], re.sub(r"^(Input|Value error,|Assertion failed,) ", "", error["msg"])
        match error["type"]:
            case "extra_forbidden":
                here = list(parent.get("properties", {}))
                elsewhere = [other for other in everywhere if other.rpartition(".")[2] == key[-1]]
                hint = _did_you_mean(key[-1], here) or _did_you_mean(key[-1], elsewhere, cutoff=0)
                allowed = f"no such key{hint or '.'} Keys here: {', '.join(here) or 'none'}"
            case "union_tag_invalid":
                key, value = [*key, "kind"], context["tag"]
                allowed = f"should be {context['expected_tags']}{_did_you_mean(value, context['expected_tags'])}"
            case "union_tag_not_found":
                key, union = [*key, "kind"], _locate((*error["loc"], "kind"), shape, defs)[1]
                allowed = f"missing, should be {' | '.join(_variants(union, defs))}"
            case "missing":
                allowed = f"missing, should be {_type(parent.get('properties', {}).get(key[-1], {}), defs)}"
            case "literal_error" | "enum":
                allowed += _did_you_mean(value, context["expected"])
        # What lacks a key, or is wrong as a whole, is given as the whole mapping: it would only hide the message.
        whole = error["type"] == "missing" or (isinstance(value, dict) and error["type"] != "extra_forbidden")
        shown = ".".join(map(str, key)) + ("" if whole else f" = {_show(value)}")
        place = ": ".join(filter(None, [tree.nearest(key).origin, shown]))
        complaints.setdefault(place, []).append(" ".join(allowed.split()))
    # A union that is not by kind complains once for each of its types.
    return [f"{place}: {' or '.join(dict.fromkeys(allowed))}" for place, allowed in complaints.items()]


def _locate(loc: Sequence[str | int], shape: Shape, defs: Shape) -> tuple[list[str | int], Shape]:
    """The key that pydantic's `loc` stands for, without the names of union members, and the shape that holds it."""
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


def _did_you_mean(given: Any, allowed: Sequence[str], cutoff: float = 0.6) -> str:
    """A suggestion from `allowed`, which may be pydantic's text of quoted words; empty if nothing comes close."""
    words = re.findall(r"'([^']*)'", allowed) if isinstance(allowed, str) else allowed
    close = difflib.get_close_matches(str(given), words, n=1, cutoff=cutoff)
    return f", did you mean {close[0]}?" if close else ""


def _show(value: Any) -> str:
    return textwrap.shorten(json.dumps(value, ensure_ascii=False, default=str), width=80, placeholder=" ...")
