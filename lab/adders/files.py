"""The JSON or YAML file of an adder: read into plain values, and written so that a person can read it.

A file may come from anybody. It is bounded before it is read, and references, tags and repeated keys are refused. Does
not import torch.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.config.loading import parse
from lab.errors import ConfigError, TaskError, in_one_line

LARGEST = {".json": 12 << 20, ".yaml": 1 << 18, ".yml": 1 << 18}
"""The largest size of a file in bytes, by its suffix; such files are read in less than a second."""
DEEPEST = 40
WIDEST = 100


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
        if path.suffix == ".json":
            return json.loads(text, object_pairs_hook=_once)
        _check_plain(text, path)
        return parse(text, path)
    except UnicodeDecodeError as error:
        raise TaskError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except ConfigError as error:
        raise TaskError(str(error)) from None
    except json.JSONDecodeError as error:
        raise TaskError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise TaskError(f"{path}: nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise TaskError(f"{path}:{line}: not YAML: {error.problem}") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise TaskError(f"{path}: {in_one_line(error)[:200]}") from None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key[:60]!r} was already given")
        found[key] = value
    return found


def _check_plain(text: str, path: Path) -> None:
    """Raises TaskError for YAML that is more than keys, lists and values."""
    depth = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        refused = {
            "anchors and aliases are not allowed; name a table instead": getattr(event, "anchor", None),
            "tags are not allowed": getattr(event, "tag", None),
            f"nested too deeply; at most {DEEPEST} levels": depth > DEEPEST,
        }
        for what in (what for what, so in refused.items() if so):
            raise TaskError(f"{path}:{event.start_mark.line + 1}: {what}")


def written(value: Any, indent: int = 0) -> str:
    """JSON in which what is short takes one line, and so does a row of numbers."""
    flat = json.dumps(value)
    row = isinstance(value, list) and not any(isinstance(part, list | dict) for part in value)
    if len(flat) + indent <= WIDEST or row or not isinstance(value, list | dict):
        return flat
    margin = "\n" + " " * (indent + 1)
    if isinstance(value, list):
        return f"[{','.join(margin + written(part, indent + 1) for part in value)}]"
    return f"{{{','.join(f'{margin}{json.dumps(key)}: {written(part, indent + 1)}' for key, part in value.items())}}}"


def write(value: Mapping[str, Any], path: Path) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(written(value) + "\n", encoding="utf-8")
    fresh.replace(path)
