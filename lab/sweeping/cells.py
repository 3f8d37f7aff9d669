"""Which runs a sweep is made of: every cell with every seed, each a validated config of the command."""

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
class Cell:
    """One setting of a sweep, whatever the seed."""

    labels: Mapping[str, str]
    """What the cell is, by what is tried: by key of the grid, and "cell" for the name of one of `cells`."""
    changes: Mapping[str, Any]

    @property
    def name(self) -> str:
        """As it stands in the names of runs: words as they are, numbers after the last part of their key."""
        parts = []
        for key, label in self.labels.items():
            says_itself = key == "cell" or _is_of_words(self.changes[key])
            parts.append(_slug(label if says_itself else f"{key.rpartition('.')[2]} {label}"))
        return "_".join(parts)

    @property
    def told(self) -> str:
        return ", ".join(f"{key} {label}" for key, label in self.labels.items())


@dataclass(frozen=True, eq=False)
class Trial:
    """One run: a cell with a seed."""

    cell: Cell
    config: RunConfig
    command: tuple[str, ...]
    """What starts it, or takes it up."""
    free: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def finished(self) -> bool:
        """Whether its run directory holds all of it. Raises `RunError` if something else is there."""
        return self.config.run_status(self.free) == "finished"


def trials(sweep: SweepConfig) -> list[Trial]:
    """All cells of a seed before the next seed: a sweep that is cut short compares like with like.

    Raises `ConfigError` before anything runs: a line for each thing that is wrong in any cell, for two cells of one
    name, and for a run directory that is another's.
    """
    complaints: dict[str, list[str]] = {}
    cells: dict[str, Cell] = {}
    found: dict[str, dict[int, Trial]] = {}
    for cell in _cells(sweep):
        complain = complaints.setdefault
        if same := cells.get(cell.name):
            complain(f"is the name of two cells: {same.told} and {cell.told}", []).append(cell.name)
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


def _seeded(sweep: SweepConfig, cell: Cell) -> dict[int, Trial]:
    """The trials of a cell by seed. Raises `LabError` if its config is wrong, or a run directory another's."""
    command = COMMANDS[sweep.command]
    changes = [f"{key}={_yaml(value)}" for key, value in cell.changes.items()]
    found: dict[int, Trial] = {}
    checked: RunConfig | None = None
    for seed in sweep.seeds:
        name = f"{sweep.run_prefix or sweep.name}_{cell.name}_{seed}"
        own = [f"name={_yaml(name)}", f"seed={seed}", f"output={_yaml(str(sweep.output))}", "resume=true"]
        # What a seed changes is known to be right: one reading of the files is enough.
        checked = checked or load(command.schema, sweep.config, [*changes, *own])
        config = checked.model_copy(update={"name": name, "seed": seed})
        words = (sys.executable, "-m", *command.words, str(sweep.config), *changes, *own)
        found[seed] = Trial(cell, config, words, command.free)
        _ = found[seed].finished  # or another's, which raises
    return found


def _cells(sweep: SweepConfig) -> Iterator[Cell]:
    named = {name: cell for name, cell in sweep.cells.items() if name in (sweep.only or sweep.cells)}
    for values in itertools.product(*sweep.grid.values()):
        chosen = dict(zip(sweep.grid, values, strict=True))
        labels = {key: _label(value) for key, value in chosen.items()}
        changes = {**sweep.changes, **chosen}
        if not named:
            yield Cell(labels, changes)
        for name, cell in named.items():
            yield Cell({**labels, "cell": name}, {**changes, **cell})


def _complaint(cells: list[str], line: str, of: int) -> str:
    if len(cells) == of > 1:
        return f"every cell: {line}"
    more = f" and {len(cells) - 3} more" if len(cells) > 3 else ""
    return f"cell{'s' if len(cells) > 1 else ''} {', '.join(cells[:3])}{more}: {line}"


def _is_of_words(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(part, str) for part in value))


def _label(value: Any) -> str:
    if _is_of_words(value):
        return value if isinstance(value, str) else ", ".join(value)
    return _yaml(value)


def _yaml(value: Any) -> str:
    """As an override says it, plain where it can be. JSON is YAML too."""
    is_plain = isinstance(value, str) and re.fullmatch(
        r"(?!true$|false$|null$)[A-Za-z/][\w./+-]*", value, re.IGNORECASE
    )
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _slug(text: str) -> str:
    return re.sub(r"[^\w.+-]+", "-", text).strip("-")
