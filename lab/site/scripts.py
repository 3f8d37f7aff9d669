"""Writes side files of the page. A page opened from disk may not fetch files, but it may add scripts, so each side file
is a script.

Files are ASCII and contain no "<". So no text can end the script that contains it, and half a surrogate pair, which
UTF-8 cannot encode, is kept. NaN and Infinity are values in a script.
"""

import json
from pathlib import Path
from typing import Any


def as_json(value: Any) -> str:
    """A value as a script's literal."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def write_script(name: str, value: Any, folder: Path) -> None:
    """Writes `folder`/<name>.js, which passes a value to the page (templates/data.js).

    Args:
        name: the name by which the page asks for the value.
        value: anything that JSON can hold.
        folder: the folder of the site.
    """
    write_literal(name, as_json(value), folder)


def write_literal(name: str, literal: str, folder: Path) -> None:
    """As `write_script`, with a value that is a literal already."""
    path = folder / f"{name}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"receive({as_json(name)},{literal})\n", encoding="ascii")
