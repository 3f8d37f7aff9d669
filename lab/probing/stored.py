"""Activations on disk, with the prompts that they belong to: computed once, read as often as wanted, a part at a time.

    stored = store(subject, asked, ["blocks.20.hook_resid_post"], Path("activations"))
    stored["blocks.20.hook_resid_post", :100]       # only these rows are read

A folder has a safetensors file for each batch, and prompts.json with the model's name, the hook points, and the tokens
of each row as ids and as text. Files are memory-mapped, so a folder may be larger than the memory.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from lab.errors import RunError
from lab.probing.batching import batches
from lab.probing.bridge import Subject
from lab.probing.contrast import Asked

_PROMPTS = "prompts.json"


class Stored:
    """A folder of activations."""

    def __init__(self, folder: Path) -> None:
        """Raises RunError for a folder that `store` did not write or did not finish."""
        self.folder = Path(folder)
        try:
            known = json.loads((self.folder / _PROMPTS).read_text(encoding="utf-8"))
            self.model, self.names, self.batch_size = known["model"], known["names"], known["batch_size"]
            self.ids: list[list[int]] = known["ids"]
            self.words: list[list[str]] = known["words"]
        except (OSError, ValueError, KeyError) as error:
            raise RunError(f"{folder}: no stored activations: {error}") from None

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, wanted: tuple[str, slice]) -> torch.Tensor:
        """The activations of a hook point for some rows. Raises RunError for a hook point that was not stored, and for
        a file that cannot be read."""
        name, rows = wanted
        if name not in self.names:
            raise RunError(f"{self.folder}: no activations of {name}; it has {', '.join(self.names)}")
        start, stop, step = rows.indices(len(self))
        parts = []
        for number, batch in enumerate(batches(len(self), self.batch_size)):
            first, last = max(start, batch.start), min(stop, batch.stop, len(self))
            if first < last:
                parts.append(self._part(number, name, first - batch.start, last - batch.start))
        return torch.cat(parts)[::step] if parts else torch.empty(0)

    def _part(self, number: int, name: str, first: int, last: int) -> torch.Tensor:
        path = _file(self.folder, number)
        try:
            with safe_open(path, framework="pt") as opened:
                return opened.get_slice(name)[first:last]
        except (OSError, SafetensorError) as error:
            raise RunError(f"{path}: cannot be read: {error}") from None


@torch.inference_mode()
def store(subject: Subject, asked: Asked, names: Sequence[str], folder: Path, batch_size: int = 64) -> Stored:
    """Writes the activations of some hook points for some prompts. The list of prompts is written last, so a folder
    whose writing was interrupted does not open.

    Raises RunError for a folder that has something in it, and the errors of `Subject.activations`.
    """
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise RunError(f"{folder}: has something in it already; give another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(batches(len(asked), batch_size)):
        _, found = subject.activations(asked.part(rows), names)
        save_file({name: found[name].contiguous().cpu().clone() for name in names}, _file(folder, number))
    ids = asked.tokens_BT.tolist()
    known: dict[str, Any] = {"model": subject.name, "names": list(names), "batch_size": batch_size, "ids": ids}
    known["words"] = [subject.writer.words(row) for row in ids]
    unfinished = folder / f"{_PROMPTS}.part"
    unfinished.write_text(json.dumps(known), encoding="utf-8")
    unfinished.replace(folder / _PROMPTS)
    return Stored(folder)


def _file(folder: Path, number: int) -> Path:
    return folder / f"activations-{number:05}.safetensors"
