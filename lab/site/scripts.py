"""Writes side files of the page. A page opened from disk may not fetch files, but it may add scripts, so each side file
is a script.

Files are ASCII and contain no "<". So no text can end the script that contains it, and half a surrogate pair, which
UTF-8 cannot encode, is kept.
"""

import json
import math
from pathlib import Path
from typing import Any


def as_json(value: Any) -> str:
    """JSON that is safe in a script element or a script file; numbers that are not finite become null."""
    return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def write_script(name: str, value: Any, folder: Path) -> None:
    """Writes `folder`/<name>.js, which passes a value to the page (templates/data.js).

    Args:
        name: the name by which the page asks for the value.
        value: anything that JSON can hold.
        folder: the folder of the site.
    """
    path = folder / f"{name}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"receive({as_json(name)},{as_json(value)})\n", encoding="ascii")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
