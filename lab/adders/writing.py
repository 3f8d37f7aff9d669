"""Writes a declared adder as JSON that a person can read: what is short takes one line, and so does a row of
numbers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LONGEST = 100


def written(value: Any, indent: int = 0) -> str:
    """JSON without a final line break."""
    flat = json.dumps(value)
    row = isinstance(value, list) and not any(isinstance(part, list | dict) for part in value)
    if len(flat) + indent <= LONGEST or row or not isinstance(value, list | dict):
        return flat
    margin = "\n" + " " * (indent + 1)
    if isinstance(value, list):
        return f"[{','.join(margin + written(part, indent + 1) for part in value)}]"
    return f"{{{','.join(f'{margin}{json.dumps(key)}: {written(part, indent + 1)}' for key, part in value.items())}}}"


def write(value: Mapping[str, Any], path: Path) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(written(value) + "\n", encoding="utf-8")
    fresh.replace(path)
