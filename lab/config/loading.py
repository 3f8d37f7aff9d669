"""Turns a YAML file and ``key.sub=value`` arguments into a validated config, and a config into YAML.

A config is strict JSON written as YAML 1.2: ``1e-4`` is a number, ``no`` is a word, and no key is given twice. Every
value remembers where it was written, so that an error can name the place. All errors of a config are reported at once,
as the lines of one `ConfigError`. The allowed keys and values come from the JSON schema.
"""

import functools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from lab.config.describing import complaints, show
from lab.config.earlier import current
from lab.errors import ConfigError, mistakes

Config = TypeVar("Config", bound=BaseModel)


def load(schema: type[Config], path: Path | None, overrides: Sequence[str] = ()) -> Config:
    """Read the YAML file at `path`, merge it over the files it ``extends:``, merge `overrides` over both, and validate.

    The path in ``extends`` is relative to the file that contains it. Mappings merge key by key. Everything else
    replaces the earlier value, and so does a mapping that changes ``kind``. Overrides are merged with each other first,
    so ``model.layers=2 model.kind=scratch`` means the same in either order.

    Args:
        schema: the pydantic model of the config.
        path: the YAML file; None if there are only overrides.
        overrides: words ``key.sub=value``, each with a YAML value.

    Raises `ConfigError`: one line for each problem, with its origin, dotted key, value, and what is allowed there.
    """
    arguments = functools.reduce(_merge, map(_argument, overrides), _Node({}, ""))
    # A missing top-level key is reported for the file that the user named, even if that file extends others.
    tree = replace(_merge(_read(path), arguments), origin=str(path)) if path else arguments
    try:
        return schema.model_validate_json(json.dumps(tree.plain()), strict=True)
    except ValidationError as error:

        def distance(key: Sequence[str | int]) -> list[bool]:
            origin = tree.nearest(key).origin
            return [not tree.contains(key), not origin.startswith(_ARGUMENT), not origin.startswith(f"{path}:")]

        found = complaints(schema, error.errors(include_url=False), lambda key: tree.nearest(key).origin, distance)
        raise ConfigError("\n".join(found)) from None


def parse(text: str, path: Path) -> Any:
    """The plain value of a YAML document, read as strictly as a config. `path` is named in a `ConfigError`."""
    return _parse(text, lambda line: f"{path}:{line}").plain()


def keys_of(path: Path) -> list[str]:
    """The top-level keys of a config and of the files that it extends. Raises `ConfigError` like `load`."""
    return list(_read(path).value)


def dump(config: BaseModel) -> str:
    """The whole config as YAML, with keys in the order of the schema. Loading it with `load` gives an equal config."""
    return yaml.dump(config.model_dump(mode="json"), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


def saved(schema: type[Config], path: Path) -> Config:
    """The config that a run wrote, perhaps a run of an earlier version. Raises `ConfigError`, in one line."""
    try:
        return schema.model_validate_json(json.dumps(current(_read(path).plain())), strict=True)
    except ValidationError as error:
        raise ConfigError(f"{path}: {mistakes(error)[0]}") from None


def renewed(schema: type[BaseModel], config_yaml: str) -> str:
    """A config that an earlier version dumped, with the defaults of keys that were added later and
    without keys that are gone.

    This makes it possible to resume runs of that version. A text that no longer fits the schema is returned unchanged.
    """
    try:
        return dump(schema.model_validate(current(yaml.safe_load(config_yaml))))
    except (yaml.YAMLError, ValueError):
        return config_yaml


# Reading

_ARGUMENT = "argument "


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

    def contains(self, key: Sequence[str | int]) -> bool:
        """Whether something was written at `key`."""
        if not key:
            return True
        return isinstance(self.value, dict) and key[0] in self.value and self.value[key[0]].contains(key[1:])


# YAML 1.2's core schema. PyYAML reads YAML 1.1, in which 1e-4 is a word, no is false, 012 is ten and 1:30 is ninety.
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
    """Reads only the scalars of `_SCALARS`."""


class _Dumper(yaml.SafeDumper):
    """Quotes strings that either version of YAML would read as something else."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        # Only double quotes allow escapes. In other styles PyYAML turns some Unicode line breaks into plain ones.
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if data.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_str)
_Loader.yaml_implicit_resolvers = {}
for _name, (_pattern, _) in _SCALARS.items():
    for _side in (_Loader, _Dumper):
        _side.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"(?:{_pattern})\\Z"), None)


def _read(path: Path, below: tuple[Path, ...] = ()) -> _Node:
    """The file's tree, merged over the tree of the file that it extends.

    `below`: the files whose ``extends`` led to this one.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None
    tree = _parse(text, lambda line: f"{path}:{line}")
    if not isinstance(tree.value, dict):
        raise ConfigError(f"{tree.origin}: {show(tree.plain())}: a config must be a mapping of keys to values")
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
    origin = f"{_ARGUMENT}{text!r}"
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
    """The tree of one YAML document. Raises `ConfigError`.

    `origin`: turns a line number into the name of the place, such as file and line.
    """
    try:
        document = yaml.compose(text, Loader=_Loader)
        return _Node(None, origin(1)) if document is None else _convert(document, origin)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = origin(mark.line + 1 if mark else 1)
        quoted = ": put text with other signs in quotes, key='\"...\"'" if where.startswith("argument") else ""
        raise ConfigError(f"{where}: not YAML: {error.problem}{quoted}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{origin(line)}: not YAML: {error.reason}") from None
    except RecursionError:
        raise ConfigError(f"{origin(1)}: nested too deeply, or inside itself") from None


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
        raise ConfigError(f"{here}: {show(node.value)} cannot be read as {node.tag}") from None
