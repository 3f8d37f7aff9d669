"""Reads the JSON or YAML file of an adder into plain values. The file may come from anybody, so it is bounded before it
is read, and YAML's references, tags and repeated keys are refused. Does not import torch."""

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.errors import TaskError

LARGEST = {".json": 12 << 20, ".yaml": 1 << 18, ".yml": 1 << 18}
"""The largest size of a file in bytes, by its suffix; such files are read in less than a second."""
DEEPEST = 40


def read(path: Path) -> Any:
    """The values in a file. Raises TaskError, in one line with the place."""
    if path.suffix not in LARGEST:
        raise TaskError(f"{path}: an adder is a file {', '.join(LARGEST)}")
    if not path.is_file():
        raise TaskError(f"{path}: {'not a file' if os.path.lexists(path) else 'there is no such file'}")
    if (size := path.stat().st_size) > LARGEST[path.suffix]:
        raise TaskError(f"{path}: {size:,} bytes; such a file has at most {LARGEST[path.suffix]:,}")
    try:
        text = path.read_text(encoding="utf-8")
        return _json(text) if path.suffix == ".json" else _yaml(text)
    except UnicodeDecodeError as error:
        raise TaskError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise TaskError(f"{path}: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise TaskError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise TaskError(f"{path}:{mark.line + 1 if mark else 1}: not YAML: {error.problem}") from None
    except RecursionError:
        raise TaskError(f"{path}: nested too deeply; at most {DEEPEST} levels") from None
    except (ValueError, yaml.YAMLError) as error:
        raise TaskError(f"{path}{' '.join(str(error).split())[:200]}") from None


def _json(text: str) -> Any:
    def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            if len(text) <= LARGEST[".yaml"]:
                _yaml(text)  # raises the same with the line, which json does not tell
            seen: set[str] = set()
            key = next(key for key, _ in pairs if key in seen or seen.add(key))
            raise ValueError(f": key {key[:60]!r} was already given")
        return found

    return json.loads(text, object_pairs_hook=once, parse_int=_integer)


def _integer(text: str) -> int | float:
    """A whole number; one that no float can hold is infinite, and is refused where it stands."""
    return int(text) if len(text) < 300 else math.inf


_SCALARS = (
    (re.compile(r"~|null|"), lambda text: None),
    (re.compile(r"true|false"), lambda text: text == "true"),
    (re.compile(r"[-+]?[0-9]+"), _integer),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(inf|nan)"), lambda text: float(text.replace(".", ""))),
)
"""What YAML 1.2 reads as something other than text."""


def _yaml(text: str) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    events = (event for event in yaml.parse(text, Loader=loader) if not isinstance(event, _AROUND))
    first = next(events, None)
    value = None if first is None else _value(first, events, 0)
    if (more := next(events, None)) is not None:
        raise ValueError(f":{more.start_mark.line + 1}: a second document; one file is one adder")
    return value


_AROUND = (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentStartEvent, yaml.DocumentEndEvent)


def _value(event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Any:
    line = event.start_mark.line + 1
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise ValueError(f":{line}: anchors and aliases are not allowed; name a table instead")
    if getattr(event, "tag", None):
        raise ValueError(f":{line}: tags are not allowed")
    if depth > DEEPEST:
        raise ValueError(f":{line}: nested too deeply; at most {DEEPEST} levels")
    if isinstance(event, yaml.ScalarEvent):
        if event.style in ("'", '"', "|", ">"):
            return event.value
        return next((make(event.value) for form, make in _SCALARS if form.fullmatch(event.value)), event.value)
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            items.append(_value(item, events, depth + 1))
        return items
    found: dict[str, Any] = {}
    while not isinstance(key := next(events), yaml.MappingEndEvent):
        if not isinstance(key, yaml.ScalarEvent) or key.anchor or key.tag:
            raise ValueError(f":{key.start_mark.line + 1}: a key must be a word")
        if key.value in found:
            raise ValueError(f":{key.start_mark.line + 1}: key {key.value[:60]!r} was already given")
        found[key.value] = _value(next(events), events, depth + 1)
    return found
