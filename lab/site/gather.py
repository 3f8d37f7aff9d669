"""Reads run directories into plain records: finished, unfinished and damaged ones."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.config.commands import model_of
from lab.errors import LabError, RunError
from lab.runs import Run, labels

_SHAPES = {"benchmark": dict, "data": dict, "engine": dict, "training": dict, "instruments": list}
"""The shapes of the parts of a config that the site reads."""


@dataclass
class Record:
    """One run directory. `notes` say what could not be read; everything else is still shown."""

    run: Run
    name: str
    status: str = "damaged"
    command: str = "unknown"
    """The command that made the run, such as finetune."""
    model: str = ""
    config_text: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def noting(self, what: str) -> Iterator[None]:
        """Turns any error that a damaged file causes into a note, so that the rest is still read."""
        try:
            yield
        except LabError as error:
            self.notes.append(str(error).replace(f"{self.run.path}{os.sep}", ""))
        except Exception as error:
            said = " ".join(str(error).split())
            self.notes.append(f"{what}: damaged ({type(error).__name__}: {said})"[:300])


def gather(paths: Iterable[Path]) -> list[Record]:
    """The runs at and below the paths. Raises RunError if a folder does not exist, or if there is no run in any."""
    paths = list(paths)
    found = gather_any(paths)
    if not found:
        said = ", ".join(map(str, paths))
        raise RunError(f"{said}: no run directory there (a folder with config.yaml or status)")
    return found


def gather_any(paths: Iterable[Path]) -> list[Record]:
    """The runs at and below the paths, of which there may be none. Raises RunError if a folder does not exist."""
    paths = list(paths)
    for path in paths:
        if not path.is_dir():
            raise RunError(f"{path}: there is no such folder; give run directories, or folders of them")
    found = labels(run for path in paths for run in _runs_below(path.resolve()))
    return [_read(path, name) for path, name in found.items()]


def _runs_below(folder: Path) -> Iterator[Path]:
    seen: set[str] = set()
    # runs may be links to another disk, and links may form cycles
    for path, folders, files in os.walk(folder, followlinks=True):
        again = (real := os.path.realpath(path)) in seen
        seen.add(real)
        if not again and {"status", "config.yaml"} & set(files) and not _is_exported(files):
            yield Path(path)
        # a hidden folder beside a run is one that is being written or removed
        below = [] if again or "status" in files or "config.yaml" in files else folders
        folders[:] = sorted(name for name in below if not name.startswith("."))


def _is_exported(files: Iterable[str]) -> bool:
    """Whether a folder with these files is a model that `lab export` wrote, such as one of the zoo: it has a config and
    a card, but no status."""
    return {"config.yaml", "README.md"} <= set(files) and "status" not in files


def _as_ours(config: dict[str, Any]) -> dict[str, Any]:
    """The config. Raises an error if it does not have the shape of the lab's configs: other programs also write
    config.yaml files."""
    for key, shape in _SHAPES.items():
        if not isinstance(config.get(key) or shape(), shape):
            raise RunError(
                f"config.yaml: not a config of the lab ({key} should be a {'mapping' if shape is dict else 'list'})"
            )
    json.dumps(config, default=str)  # raises TypeError if a key is something like a date
    return config


def _read(path: Path, name: str) -> Record:
    record = Record(Run(path), name)
    with record.noting("status"):
        record.status = record.run.status
        if record.status == "running" and record.run.was_abandoned:
            record.status = "interrupted"
    with record.noting("config.yaml"):
        record.config_text = record.run.config
        record.config = _as_ours(record.run.settings)
        record.model = model_of(record.config)
        record.command = record.run.command or "unknown"
    if (path / "summary.json").is_file():
        with record.noting("summary.json"):
            summary = record.run.read_json("summary")
            if not isinstance(summary, dict):
                raise RunError("summary.json: not a summary")
            record.summary = summary
    if record.notes:
        record.status = "damaged"
    return record
