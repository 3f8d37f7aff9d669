"""Loads the model of a run of `lab.pretrain`, to ask it problems or to probe it."""

from pathlib import Path
from typing import NamedTuple

import yaml
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.pretraining import PretrainConfig
from lab.config.schema import ModelConfig, chosen
from lab.errors import ModelError
from lab.models import pretrained
from lab.models.scratch import NumberLlama
from lab.text.notation import Notation


class ScratchRun(NamedTuple):
    config: PretrainConfig
    model: NumberLlama
    tokenizer: PreTrainedTokenizerBase
    notation: Notation
    """How the model reads and writes problems."""


def is_run(folder: Path) -> bool:
    """Whether a folder is a run of `lab.pretrain` with a model in it."""
    config = folder / "model" / "config.json"
    return config.is_file() and "number_llama" in config.read_text()


def load(folder: Path) -> ScratchRun:
    """The run in `folder`. Raises ModelError if it is not a run of `lab.pretrain`, or has no model (yet)."""
    if not (folder / "config.yaml").is_file() or not (folder / "model").is_dir():
        raise ModelError(f"{folder}: not a run of lab.pretrain with a model in it")
    try:
        config = PretrainConfig.model_validate(yaml.safe_load((folder / "config.yaml").read_text()))
    except ValueError as error:
        raise ModelError(f"{folder}/config.yaml: not a config of lab.pretrain: {str(error).splitlines()[0]}") from None
    saved = ModelConfig(name=str(folder / "model"), dtype="float32", device=config.model.device)
    model, tokenizer = pretrained.load(saved)
    if not isinstance(model, NumberLlama):
        raise ModelError(f"{folder}/model: a {type(model).__name__}, not a model from scratch")
    return ScratchRun(config, model, tokenizer, Notation(config.tokenizer, config.format, chosen(config.data.tasks)))
