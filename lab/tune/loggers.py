"""Sends the losses of a training to other places, too: TensorBoard, trackio, Weights & Biases (the extra `loggers`).

tensorboard  event files in <run directory>/tensorboard
trackio      the project number-lab in its local database: trackio show --project number-lab
wandb        the project number-lab, and files in <run directory>/wandb; with WANDB_MODE=offline only the files

The trainer's own callbacks do it. They read where to write from the environment.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec

from lab.errors import ConfigError
from lab.runs import Run

PROJECT = "number-lab"


def check_loggers(names: Sequence[str]) -> None:
    """Raises ConfigError if a logger is not installed, or if wandb has no key. Call it before loading a model."""
    for name in names:
        if find_spec(name) is None:
            raise ConfigError(
                f'training.report_to: {name} is not installed; pip install -e ".[loggers]", or leave it out'
            )
    if "wandb" in names and not _wandb_is_configured():
        told = "training.report_to: wandb has no key; set WANDB_MODE=offline to keep its files here"
        raise ConfigError(f"{told}, or WANDB_API_KEY, or run wandb login")


def log_into(run: Run) -> None:
    """Makes loggers write into the run directory, unless the user's environment says otherwise for wandb."""
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(run.path / "tensorboard")
    os.environ.setdefault("WANDB_PROJECT", PROJECT)
    os.environ.setdefault("WANDB_DIR", str(run.path))


def _wandb_is_configured() -> bool:
    import wandb

    os.environ.setdefault("WANDB_SILENT", "true")
    if os.environ.get("WANDB_MODE") in ("offline", "dryrun", "disabled"):
        return True
    with suppress(wandb.Error):
        return bool(wandb.login(prompt=False, verify=False))
    return False
