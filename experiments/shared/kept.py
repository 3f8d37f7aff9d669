"""What a script has measured, kept beside a run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Value = TypeVar("Value")


class Kept:
    """Measurements by name in a JSON file, so that a script that runs again measures only what is missing."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.known: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}

    def once(
        self, name: str, measure: Callable[[], Value], in_short: Callable[[Value], object] = lambda value: ""
    ) -> Value:
        """The measurement of this name. If it is not known yet, it is made and saved; `in_short` of it is printed."""
        if name not in self.known:
            self.keep(name, measure(), in_short)
        return self.known[name]

    def keep(self, name: str, value: Value, in_short: Callable[[Value], object] = lambda value: "") -> None:
        """Saves a measurement and prints `in_short` of it."""
        self.known[name] = value
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self.known, indent=1))
        print(self.file.parent.name, name, in_short(value), flush=True)
