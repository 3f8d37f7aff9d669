"""Checkpoints of a training on disk: which one to go on from, and whether it is whole. No torch, so that a command can
look before it loads a model.
"""

import json
import os
from pathlib import Path
from zipfile import ZipFile

from safetensors import safe_open

from lab.errors import ModelError


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that was written whole: the trainer's state is the last file to be written."""
    whole = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json") if _is_json(path)]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def undamaged(folder: Path) -> Path | None:
    """The newest whole checkpoint; raises ModelError when it is damaged, or not to be gone on from by this launch."""
    last = last_checkpoint(folder)
    if last:
        check_undamaged(last)
        if is_sharded(last) != _is_sharding():
            what = "with FSDP" if is_sharded(last) else "without FSDP"
            raise ModelError(f"checkpoint {last} was written {what}, and is gone on from in the same way")
    return last


def is_sharded(checkpoint: Path) -> bool:
    """Whether it is one of FSDP, which keeps files of its own."""
    return (checkpoint / "pytorch_model_fsdp.bin").is_file()


def _is_sharding() -> bool:
    """Whether `accelerate launch` has started this process so."""
    return os.environ.get("ACCELERATE_USE_FSDP", "").lower() in ("1", "true", "yes", "y", "t", "on")


def _is_json(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text()))
    except ValueError:
        return False


def check_undamaged(checkpoint: Path) -> None:
    """Raises ModelError, naming the file, before anything of a damaged checkpoint is used."""
    weights = "model" if (checkpoint / "config.json").is_file() else "adapter_model"
    optimizer = "optimizer.bin" if is_sharded(checkpoint) else "optimizer.pt"
    for name in (f"{weights}.safetensors", optimizer, "scheduler.pt"):
        if not (checkpoint / name).is_file():
            raise ModelError(f"checkpoint {checkpoint} has no {name}; remove {checkpoint.name} to go on without it")
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
        except Exception as error:  # each format has exceptions of its own
            raise ModelError(
                f"checkpoint {path} is damaged ({error}); remove {checkpoint.name} to go on without it"
            ) from error
