"""Side files of the page. A page that was opened from disk may not fetch, but it may add a script: so each is one.

What is written is ASCII and holds no "<": no text ends the script that it stands in, and half a surrogate pair, which
UTF-8 cannot hold, stays what it is.
"""

import json
import math
from pathlib import Path
from typing import Any


def as_json(value: Any) -> str:
    """JSON that may stand in a script element or a script file; what is not finite becomes null."""
    return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def write_script(name: str, value: Any, folder: Path) -> None:
    """Write `folder`/<name>.js, which hands the value to the page (templates/site/data.js)."""
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
