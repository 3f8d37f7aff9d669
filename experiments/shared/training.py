"""Training runs that a script needs and does not repeat."""

from pathlib import Path

from lab.config.finetuning import FinetuneConfig
from lab.config.pretraining import PretrainConfig
from lab.finetune import finetune
from lab.pretrain import pretrain


def trained(config: FinetuneConfig | PretrainConfig) -> Path:
    """The run directory of a config. Trains the model first unless the run is finished."""
    if config.run_status() != "finished":
        if isinstance(config, FinetuneConfig):
            finetune(config)
        else:
            pretrain(config)
    return config.path
