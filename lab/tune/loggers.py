"""Sends the losses of a training to other places, too: TensorBoard, trackio, Weights & Biases (the extra `loggers`).

tensorboard  event files in <run directory>/tensorboard
trackio      the project number-lab in its local database: trackio show --project number-lab
wandb        the project number-lab, and files in <run directory>/wandb; with WANDB_MODE=offline only the files
"""

import os
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lab.errors import ConfigError
from lab.runs import Run

if TYPE_CHECKING:
    from transformers import TrainerCallback

_PROJECT = "number-lab"


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


def logger_callbacks(names: Sequence[str], run: Run) -> list["TrainerCallback"]:
    """The trainer callbacks of these loggers. They start nothing before the training begins."""
    return [_CALLBACKS[name](run) for name in names]


def _wandb_is_configured() -> bool:
    import wandb

    os.environ.setdefault("WANDB_SILENT", "true")
    if os.environ.get("WANDB_MODE") in ("offline", "dryrun", "disabled"):
        return True
    with suppress(wandb.Error):
        return bool(wandb.login(prompt=False, verify=False))
    return False


def _tensorboard(run: Run) -> Any:
    from transformers.integrations.integration_utils import TensorBoardCallback

    callback = TensorBoardCallback()
    callback.logging_dir = str(run.path / "tensorboard")
    return callback


def _trackio(run: Run) -> Any:
    from transformers.integrations.integration_utils import TrackioCallback

    class Silently(TrackioCallback):
        """Suppresses the three lines that trackio prints about its database."""

        def setup(self, *arguments: Any, **settings: Any) -> None:
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                super().setup(*arguments, **settings)

        def on_train_end(self, *arguments: Any, **settings: Any) -> None:
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                super().on_train_end(*arguments, **settings)

    return Silently()


def _wandb(run: Run) -> Any:
    from transformers.integrations.integration_utils import WandbCallback

    os.environ.setdefault("WANDB_PROJECT", _PROJECT)
    os.environ.setdefault("WANDB_DIR", str(run.path))
    return WandbCallback()


_CALLBACKS = {"tensorboard": _tensorboard, "trackio": _trackio, "wandb": _wandb}
