"""Loads any model by its name: the embedded model, one of the zoo, one on the hub, a folder, or the model of a run.

Pretrained models, tuned or not, read text (`load`). A model from scratch reads problems in its own notation
(`load_scratch`).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError
from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.earlier import current
from lab.config.pretraining import PretrainConfig
from lab.config.schema import ModelConfig
from lab.errors import ModelError, mistakes
from lab.graft.llama import GraftedLlama
from lab.models import adapters, pretrained, sources, swaps
from lab.models.weight_files import check_whole
from lab.runs import Run
from lab.scratch.llama import NumberLlama
from lab.text.scratch_notation import ScratchNotation, notation_of


class ScratchRun(NamedTuple):
    """A run of `lab.pretrain`, loaded."""

    config: PretrainConfig
    model: NumberLlama
    tokenizer: PreTrainedTokenizerBase
    notation: ScratchNotation
    """How the model reads and writes problems."""


def is_scratch(folder: Path) -> bool:
    """Whether a folder is a run of `lab.pretrain` with a model in it."""
    return sources.is_scratch(folder)


def load_scratch(folder: Path, device: Literal["auto", "cpu", "cuda"] | None = None) -> ScratchRun:
    """The run in `folder`, on the device of its config if none is given. Raises ModelError if it is not a run of
    `lab.pretrain`, or has no model (yet)."""
    if not (folder / "config.yaml").is_file() or not (folder / "model").is_dir():
        raise ModelError(f"{folder}: not a run of lab.pretrain with a model in it")
    try:
        config = PretrainConfig.model_validate(current(Run(folder).settings))
    except ValidationError as error:
        raise ModelError(f"{folder}/config.yaml: not a config of lab.pretrain: {mistakes(error)[0]}") from None
    saved = ModelConfig(name=str(folder / "model"), dtype="float32", device=device or config.model.device)
    model, tokenizer = pretrained.load(saved)
    if not isinstance(model, NumberLlama):
        raise ModelError(f"{folder}/model: a {type(model).__name__}, not a model from scratch")
    return ScratchRun(config, model, tokenizer, notation_of(config))


def load(config: ModelConfig) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Like `pretrained.load`, but `name` may also be a run directory or a folder of adapters (PEFT).

    The base model of a run is loaded with the settings of the run's config, except those that `config` sets itself. It
    gets the swap with which its adapters were trained; `swaps.swap_of` gives the format in which to ask it.
    Raises ModelError if a run has no model (yet), if its base model is not available, or if the model is one from
    scratch or an adder.
    """
    config = config.model_copy(update={"name": sources.resolve(config.name)})
    folder = Path(config.name)
    is_run = (folder / "config.yaml").is_file()
    if is_run:
        if Run(folder).command == "adder":
            raise ModelError(
                f"{config.name}: only lab ask, lab.load, lab evaluate, lab probe and lab adder open an adder"
            )
        folder = folder / "model"
        if not folder.is_dir():
            raise ModelError(
                f"{config.name}: this run has no model; its training has not finished, or it does not train one"
            )
    _check_that_it_reads_text(config.name, folder)
    if not (folder / "adapter_config.json").is_file():
        return pretrained.load(config.model_copy(update={"name": str(folder)}) if is_run else config)
    check_whole(folder)  # now, and not after the base model is loaded
    base = _base_of_run(config) if is_run else config.model_copy(update={"name": sources.base_of(folder)})
    model, tokenizer = swaps.load(base, swaps.recorded(folder))
    return adapters.for_inference(adapters.load(model, folder), base.quantization != "none"), tokenizer


def change_parts(model: PreTrainedModel, changes: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Changes parts of a loaded model; see `GraftedLlama.change_parts`, which raises ModelError. So does this function
    if the model cannot have parts."""
    if not changes:
        return
    grafted = next((module for module in model.modules() if isinstance(module, GraftedLlama)), None)
    if grafted is None:
        what = f"parts.{next(iter(changes))} cannot be changed in this model"
        raise ModelError(f"{what}: only models from scratch and models that were tuned with parts have parts")
    grafted.change_parts(changes)


def _check_that_it_reads_text(name: str, folder: Path) -> None:
    if (folder / sources.SECOND_READING).is_file():
        raise ModelError(f"{name}: only lab ask, lab.load, lab evaluate and lab export open a model of two readings")
    try:
        kind = json.loads((folder / "config.json").read_text()).get("model_type")
    except (OSError, ValueError):  # not a local model, or a damaged one, for which the loader has a better error
        return
    if kind == "number_llama":
        what = "a model from scratch reads its own notation, not text"
        raise ModelError(f"{name}: {what}; lab ask, lab evaluate (benchmark.kind=nupa) and lab probe open it")


def _base_of_run(config: ModelConfig) -> ModelConfig:
    run = Path(config.name)
    try:
        trained_on = ModelConfig.model_validate(Run(run).settings.get("model"))
    except ValidationError as error:
        raise ModelError(f"{run / 'config.yaml'}: names no base model: model: {mistakes(error)[0]}") from None
    said = {key: getattr(config, key) for key in config.model_fields_set - {"name"}}
    return trained_on.model_copy(update=said)
