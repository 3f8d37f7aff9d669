"""Measurements of a script, kept beside a run."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from lab.errors import RunError
from lab.models.sources import resolve
from lab.runs import Run

Value = TypeVar("Value")


class Kept:
    """Measurements by name in a JSON file, so that a script that runs again measures only what is missing.

    Raises RunError if the file is damaged.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.known = self._read()

    def _read(self) -> dict[str, Any]:
        if not self.file.is_file():
            return {}
        found = Run(self.file.parent).read_json(self.file.stem)
        if not isinstance(found, dict):
            raise RunError(f"{self.file}: should hold measurements by name")
        return found

    def once(
        self, name: str, measure: Callable[[], Value], in_short: Callable[[Value], object] = lambda value: ""
    ) -> Value:
        """The measurement of this name. If there is none yet, it is made and saved, and `in_short` of it is printed."""
        if name not in self.known:
            self.keep(name, measure(), in_short)
        return self.known[name]

    def keep(self, name: str, value: Value, in_short: Callable[[Value], object] = lambda value: "") -> None:
        """Saves a measurement and prints `in_short` of it. Measurements that other processes have saved in the meantime
        are kept."""
        self.known = {**self._read(), **self.known, name: value}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        temporary.write_text(json.dumps(self.known, indent=1))
        temporary.replace(self.file)
        print(self.file.parent.name, name, in_short(value), flush=True)


def identified(model: str) -> str:
    """The name of a model with a few digits of the checksum of its weights, which distinguish it from other training
    runs."""
    folder = Path(resolve(model))
    checksum = hashlib.sha256()
    for file in sorted([*folder.glob("*.safetensors"), *folder.glob("model/*.safetensors")]):
        checksum.update(file.read_bytes())
    return f"{model} {checksum.hexdigest()[:8]}"
