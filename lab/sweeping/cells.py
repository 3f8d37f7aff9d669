"""The runs of a sweep: every cell with every seed, each with a validated config of the command."""

import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lab.config.loading import load
from lab.config.schema import RunConfig
from lab.errors import ConfigError, LabError
from lab.sweeping.config import COMMANDS, SweepConfig


@dataclass(frozen=True)
class SweepCell:
    """One setting of a sweep; it has a run for each seed."""

    labels: Mapping[str, str]
    """What the cell tries: a value for each key of the grid and, if it is one of `cells`, its name under "cell"."""
    changes: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The part of its runs' names that stands for the cell. Values that are text are written alone, all others
        after the last part of their key."""
        parts = []
        for key, label in self.labels.items():
            is_text = key == "cell" or _is_text(self.changes[key])
            parts.append(_slug(label if is_text else f"{key.rpartition('.')[2]} {label}"))
        return "_".join(parts)

    @property
    def told(self) -> str:
        return ", ".join(f"{key} {label}" for key, label in self.labels.items())


@dataclass(frozen=True, eq=False)
class Trial:
    """One run: a cell with a seed."""

    cell: SweepCell
    config: RunConfig
    command: tuple[str, ...]
    """The command that starts the run, or resumes it."""

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def finished(self) -> bool:
        """Whether its run directory is complete. Raises `RunError` if the directory contains something else."""
        return self.config.run_status() == "finished"


def trials(sweep: SweepConfig) -> list[Trial]:
    """The trials of a sweep: all cells of one seed before the next seed, so that a sweep that is cut short is balanced.

    Raises `ConfigError` before anything runs, with one line for each problem: a wrong config, two cells with the same
    name, or a run directory that belongs to another run.
    """
    complaints: dict[str, list[str]] = {}
    cells: dict[str, SweepCell] = {}
    found: dict[str, dict[int, Trial]] = {}
    for cell in _cells(sweep):
        complain = complaints.setdefault
        if same := cells.get(cell.name):
            complain(f"two cells have this name: {same.told} and {cell.told}", []).append(cell.name)
            continue
        cells[cell.name] = cell
        try:
            found[cell.name] = _seeded(sweep, cell)
        except LabError as error:
            for line in str(error).splitlines():
                complain(line, []).append(cell.name)
    if complaints:
        raise ConfigError("\n".join(_complaint(names, line, len(cells)) for line, names in complaints.items()))
    return [found[name][seed] for seed in sweep.seeds for name in cells]


def _seeded(sweep: SweepConfig, cell: SweepCell) -> dict[int, Trial]:
    """The trials of a cell, by seed. Raises `LabError` if its config is wrong, or if a run directory belongs to
    another run."""
    command = COMMANDS[sweep.command]
    changes = [f"{key}={_yaml(value)}" for key, value in cell.changes.items()]
    found: dict[int, Trial] = {}
    checked: RunConfig | None = None
    for seed in sweep.seeds:
        name = f"{sweep.run_prefix or sweep.name}_{cell.name}_{seed}"
        own = [f"name={_yaml(name)}", f"seed={seed}", f"output={_yaml(str(sweep.output))}", "resume=true"]
        # The configs of a cell differ only in seed and name, so only one is loaded and checked.
        checked = checked or load(command.schema, sweep.config, [*changes, *own])
        config = checked.model_copy(update={"name": name, "seed": seed})
        words = (sys.executable, "-m", *command.words, str(sweep.config), *changes, *own)
        found[seed] = Trial(cell, config, words)
        _ = found[seed].finished  # raises if the directory belongs to another run
    return found


def _cells(sweep: SweepConfig) -> Iterator[SweepCell]:
    named = {name: cell for name, cell in sweep.cells.items() if name in (sweep.only or sweep.cells)}
    for values in itertools.product(*sweep.grid.values()):
        chosen = dict(zip(sweep.grid, values, strict=True))
        labels = {key: _label(value) for key, value in chosen.items()}
        changes = {**sweep.changes, **chosen}
        if not named:
            yield SweepCell(labels, changes)
        for name, cell in named.items():
            yield SweepCell({**labels, "cell": name}, {**changes, **cell})


def _complaint(cells: list[str], line: str, of: int) -> str:
    if len(cells) == of > 1:
        return f"every cell: {line}"
    more = f" and {len(cells) - 3} more" if len(cells) > 3 else ""
    return f"cell{'s' if len(cells) > 1 else ''} {', '.join(cells[:3])}{more}: {line}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(part, str) for part in value))


def _label(value: Any) -> str:
    if _is_text(value):
        return value if isinstance(value, str) else ", ".join(value)
    return _yaml(value)


def _yaml(value: Any) -> str:
    """A value as an override writes it, without quotes if possible. (JSON is also YAML.)"""
    is_plain = isinstance(value, str) and re.fullmatch(
        r"(?!true$|false$|null$)[A-Za-z/][\w./+-]*", value, re.IGNORECASE
    )
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _slug(text: str) -> str:
    return re.sub(r"[^\w.+-]+", "-", text).strip("-")
