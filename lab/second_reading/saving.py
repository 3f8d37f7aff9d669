"""The folder of a model of two readings: its config, its adapters and its readers, without the pretrained model.

second_reading.json          what `Config` has
second_reading.safetensors   the adapters of the second reading; matrices are in bfloat16
readers.safetensors          the readers, likewise
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from lab.config.schema import ModelConfig, Section
from lab.errors import ModelError, mistakes
from lab.models import pretrained
from lab.models.sources import SECOND_READING
from lab.second_reading.adapted import SecondReading
from lab.second_reading.model import TwoReadings
from lab.second_reading.reader import Reader

CONFIG, ADAPTERS, READERS = SECOND_READING, "second_reading.safetensors", "readers.safetensors"


class Config(Section):
    """How the parts of a model of two readings are made."""

    base: str
    """The pretrained model, a Llama whose tokenizer has a token for each digit."""
    rank: int
    """The rank of the adapters."""
    walkers: int = 3
    """How many heads of a walking layer walk."""
    walking: tuple[int, int] = (21, 29)
    """The first layer that walks, and the first one after them."""
    readers: int = 1
    """How many readers there are."""
    reader_width: int = 128
    reader_depth: int = 3
    threshold: float
    """See `TwoReadings`."""
    likely: float
    """See `TwoReadings`."""


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a model of two readings."""
    return (folder / CONFIG).is_file()


def save(folder: Path, config: Config, second: SecondReading, readers: Sequence[Reader]) -> None:
    """Writes the folder; the config last."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(_small(second.state_dict()), folder / ADAPTERS)
    parts = {f"{index}.{name}": part for index, one in enumerate(readers) for name, part in one.state_dict().items()}
    save_file(_small(parts), folder / READERS)
    for file in (ADAPTERS, READERS):
        (folder / file).chmod(0o644)  # safetensors lets only the owner read
    (folder / CONFIG).write_text(config.model_dump_json(indent=1) + "\n")


def _small(parts: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The large matrices in bfloat16, and the few other numbers as they are."""
    return {name: part.to(torch.bfloat16 if part.numel() > 4096 else part.dtype) for name, part in parts.items()}


def load(folder: Path, dtype: Literal["auto", "float32", "bfloat16"] = "float32") -> TwoReadings:
    """The model in `folder`, on the CPU. Raises ModelError, in one line, if a file is missing or damaged, or if the
    pretrained model is not available."""
    config = read_config(folder)
    model, tokenizer = pretrained.load(ModelConfig(name=config.base, dtype=dtype, device="cpu"))
    return assembled(folder, config, model.eval().requires_grad_(False), tokenizer)


def assembled(folder: Path, config: Config, model: Any, tokenizer: Any) -> TwoReadings:
    """The model in `folder`, from its config and its pretrained model."""
    second = SecondReading(model, tokenizer, config.rank, config.walkers, range(*config.walking))
    readers = [
        Reader(model.config.hidden_size, config.reader_width, config.reader_depth) for _ in range(config.readers)
    ]
    _fill(second, _weights(folder / ADAPTERS), folder / ADAPTERS)
    weights = _weights(folder / READERS)
    for index, reader in enumerate(readers):
        mine = {name.partition(".")[2]: part for name, part in weights.items() if name.startswith(f"{index}.")}
        _fill(reader, mine, folder / READERS)
    return TwoReadings(model, tokenizer, readers, second.eval(), config.threshold, config.likely)


def read_config(folder: Path) -> Config:
    """Raises ModelError, in one line, if the config is damaged."""
    try:
        return Config.model_validate_json((folder / CONFIG).read_text())
    except ValidationError as error:
        raise ModelError(f"{folder / CONFIG}: {mistakes(error)[0]}") from None


def _weights(file: Path) -> dict[str, torch.Tensor]:
    try:
        return {name: part.float() for name, part in load_file(file).items()}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{file}: cannot be read ({error})") from None


def _fill(module: torch.nn.Module, weights: dict[str, torch.Tensor], file: Path) -> None:
    try:
        module.load_state_dict(weights)
    except RuntimeError:
        raise ModelError(f"{file}: these are not the weights of the model that {CONFIG} describes") from None
