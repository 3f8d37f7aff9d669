"""Writes a model of two readings as a folder that transformers opens without the lab.

The folder has the pretrained model, the lab's two files of weights, and a modeling file that is made of the sources of
this room: transformers finds it by `auto_map`, if `trust_remote_code=True`.
"""

import inspect
import json
import re
import shutil
from pathlib import Path
from types import ModuleType

from lab.config.schema import ModelConfig
from lab.errors import ModelError
from lab.models import pretrained, sources
from lab.parts import stick_breaking
from lab.second_reading import adapted, arithmetic, model, reader, saving

MODELING = "modeling_second_reading"
CLASS = "SecondReadingForCausalLM"
_BEGINNING = '''"""A pretrained model that talks as before, and has a number computed when one is asked for.

Made by `lab export` of the sources of lab/second_reading. Open the folder with transformers:

    model = AutoModelForCausalLM.from_pretrained(FOLDER, trust_remote_code=True)
    model.generate(**tokenizer("The tram had 512 riders, the bus 46. Together they had", return_tensors="pt"))
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence, Set
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional
from torch.nn.functional import logsigmoid, pad
from transformers import AutoTokenizer, LlamaForCausalLM
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
from transformers.utils import cached_file


class TaskError(ValueError):
    pass
'''
_END = '''
def weights_of(file: str) -> dict[str, torch.Tensor]:
    return {{name: part.float() for name, part in load_file(file).items()}}


class {name}(LlamaForCausalLM):
    """The untouched Llama, but `generate` has numbers computed. Its logits are those of the untouched model."""

    _readings = None

    def readings(self) -> TwoReadings:
        """The parts that compute, read from the model's folder when they are first needed."""
        if self._readings is None:
            config, adapters, weights = (cached_file(self.config._name_or_path, file) for file in {files})
            config, tokenizer = SimpleNamespace(**json.loads(Path(config).read_text())), AutoTokenizer.from_pretrained(
                self.config._name_or_path
            )
            second = SecondReading(self, tokenizer, config.rank, config.walkers, range(*config.walking))
            second.load_state_dict(weights_of(adapters))
            weights = weights_of(weights)
            readers = [self._reader(config, index, weights) for index in range(config.readers)]
            self._readings = TwoReadings(self, tokenizer, readers, second.eval(), config.threshold, config.likely)
        return self._readings

    def _reader(self, config: Any, index: int, weights: dict[str, torch.Tensor]) -> Reader:
        reader, mine = Reader(self.config.hidden_size, config.reader_width, config.reader_depth), f"{{index}}."
        reader.load_state_dict({{key[len(mine) :]: part for key, part in weights.items() if key.startswith(mine)}})
        return reader

    @torch.no_grad()
    def generate(self, input_ids: torch.Tensor, max_new_tokens: int = 64, **ignored: Any) -> torch.Tensor:
        """The tokens of one text and its most likely continuation. Other settings of generation are ignored."""
        if len(input_ids) != 1:
            raise ValueError("generate: give one text at a time")
        ends = self.generation_config.eos_token_id
        ends = {{self.readings().tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])}}
        written = self.readings().continued(input_ids[0].tolist(), max_new_tokens, ends).tokens
        return torch.cat([input_ids, torch.tensor([written], dtype=input_ids.dtype)], 1)
'''


def export(name: str, folder: Path) -> None:
    """Writes the folder. Raises ModelError if `name` is no model of two readings, or its config is damaged."""
    source = Path(sources.resolve(name))
    if not saving.is_saved(source):
        raise ModelError(f"{name}: to=transformers is for models of two readings; to=merged writes a tuned model")
    config = saving.read_config(source)
    untouched, tokenizer = pretrained.load(ModelConfig(name=config.base, dtype="bfloat16", device="cpu"))
    untouched.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for file in (saving.CONFIG, saving.ADAPTERS, saving.READERS):
        shutil.copy(source / file, folder)
    facts = json.loads((folder / "config.json").read_text())
    facts |= {"architectures": [CLASS], "auto_map": {"AutoModelForCausalLM": f"{MODELING}.{CLASS}"}}
    (folder / "config.json").write_text(json.dumps(facts, indent=2) + "\n")
    (folder / f"{MODELING}.py").write_text(modeling(), encoding="utf-8")
    if (card := source / "README.md").is_file():
        shutil.copy(card, folder)


def modeling() -> str:
    """The modeling file: the sources of this room, one after the other."""
    walk = [inspect.getsource(part) for part in (stick_breaking.stick_breaking_weights, stick_breaking.sharpened)]
    parts = [body(module) for module in (adapted, arithmetic, reader, model)]
    end = _END.format(name=CLASS, files=(saving.CONFIG, saving.ADAPTERS, saving.READERS))
    return "\n\n".join(part.strip("\n") for part in (_BEGINNING, *walk, *parts, end)) + "\n"


def body(module: ModuleType) -> str:
    """The source of a module without its docstring and its imports."""
    source = inspect.getsource(module)
    source = source[source.index('"""', 3) + 3 :]
    return re.sub(r"^(from|import) .*(\n|\((.|\n)*?\n\)\n)", "", source, flags=re.MULTILINE)
