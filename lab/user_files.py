"""Reads text and JSON files that users give. Whatever is wrong with one is told in one line."""

import json
from pathlib import Path
from typing import Any

from lab.errors import LabError, in_one_line


def read_text(path: Path, error: type[LabError]) -> str:
    """The text of a file. Raises `error` if it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as found:
        raise error(f"{path}: {found.strerror or in_one_line(found)}") from None
    except UnicodeDecodeError:
        raise error(f"{path}: not UTF-8 text") from None
    except ValueError as found:  # a zero byte in the path
        raise error(f"{str(path)!r}: {found}") from None


def parse_json(text: str | bytes, where: str, error: type[LabError]) -> Any:
    """The value of a JSON text. Raises `error` if it is not JSON; `where` is how its message begins."""
    try:
        return json.loads(text)
    except RecursionError:
        raise error(f"{where}: JSON that is nested too deeply") from None
    except ValueError as found:
        raise error(f"{where}: {in_one_line(found)}") from None


def read_json(path: Path, error: type[LabError]) -> Any:
    """The value of a JSON file. Raises `error` if it cannot be read or is not JSON."""
    return parse_json(read_text(path, error), str(path), error)
