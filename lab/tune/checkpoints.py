"""Checkpoints of a training on disk: which one to continue from, and whether it is complete. Does not import torch, so
that a command can check before it loads a model.
"""

import json
import os
from pathlib import Path
from zipfile import ZipFile

from safetensors import safe_open

from lab.errors import ModelError


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint in `folder`, or None. A checkpoint is complete if it has the trainer's state,
    which is written last."""
    whole = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json") if _is_json(path)]
    steps = {int(number): path for path in whole if (number := path.name.rpartition("-")[2]).isdigit()}
    return steps[max(steps)] if steps else None


def undamaged(folder: Path) -> Path | None:
    """The newest complete checkpoint in `folder`, or None. Raises ModelError if it is damaged, or if it was written
    with FSDP and this process runs without it, or the reverse."""
    last = last_checkpoint(folder)
    if last:
        check_undamaged(last)
        if is_sharded(last) != _is_sharding():
            what = "with FSDP" if is_sharded(last) else "without FSDP"
            raise ModelError(f"checkpoint {last} was written {what}, and can only be continued {what}")
    return last


def is_sharded(checkpoint: Path) -> bool:
    """Whether the checkpoint was written with FSDP, which has its own files."""
    return (checkpoint / "pytorch_model_fsdp.bin").is_file()


def _is_sharding() -> bool:
    """Whether `accelerate launch` has started this process with FSDP."""
    return os.environ.get("ACCELERATE_USE_FSDP", "").lower() in ("1", "true", "yes", "y", "t", "on")


def _is_json(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text()))
    except ValueError:
        return False


def check_undamaged(checkpoint: Path) -> None:
    """Raises ModelError, naming the file, if a file of the checkpoint is missing or damaged."""
    weights = "model" if (checkpoint / "config.json").is_file() else "adapter_model"
    optimizer = "optimizer.bin" if is_sharded(checkpoint) else "optimizer.pt"
    for name in (f"{weights}.safetensors", optimizer, "scheduler.pt"):
        if not (checkpoint / name).is_file():
            raise ModelError(f"checkpoint {checkpoint} has no {name}; remove {checkpoint.name} to continue without it")
    if not any(checkpoint.glob("rng_state*.pth")):  # with several processes, one for each
        what = "no rng_state.pth, so dropout would go on differently"
        raise ModelError(f"checkpoint {checkpoint} has {what}; remove {checkpoint.name} to continue without it")
    for path in sorted(checkpoint.iterdir()):
        try:
            match path.suffix:
                case ".safetensors":
                    with safe_open(path, "np"):
                        pass
                case ".pt" | ".pth" | ".bin":
                    with ZipFile(path) as archive:
                        if archive.testzip():
                            raise ValueError("its checksum is wrong")
        except Exception as error:  # each format has its own exceptions
            raise ModelError(
                f"checkpoint {path} is damaged ({error}); remove {checkpoint.name} to continue without it"
            ) from error
