"""Writes a declared adder as JSON that a person can read: a line for each table's row, and for each part of the model."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def written(value: Mapping[str, Any]) -> str:
    """JSON in which lists and mappings that hold no others take one line."""
    text, before = json.dumps(value, indent=1), ""
    while text != before and len(text) < 1 << 20:
        before = text
        text = re.sub(r"([\[{])\s*\n\s*([^\[\]{}\n]{0,90}(?:\n\s*[^\[\]{}\n]{1,60}){0,15})\n\s*([\]}])", _joined, text)
    return text + "\n"


def _joined(found: re.Match[str]) -> str:
    return f"{found[1]}{' '.join(found[2].split())}{found[3]}"


def write(value: Mapping[str, Any], path: Path) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(written(value), encoding="utf-8")
    fresh.replace(path)
