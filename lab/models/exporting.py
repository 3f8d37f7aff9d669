"""Exports the models of runs: as files that other programs read, or as small folders that the lab opens.

A tuned model:
    adapter   the adapters (PEFT) with the swap they need and the name that their base has on the hub; a tenth of a
              run's size
    merged    the whole model with its tokenizer, in Hugging Face's layout
A model from scratch:
    scratch   its weights, notation and config
"""

import json
import math
import shutil
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.finetuning import FinetuneConfig, Swap
from lab.config.loading import dump
from lab.config.pretraining import SIZES, PretrainConfig
from lab.config.schema import ModelConfig, chosen
from lab.errors import ModelError
from lab.models import loading, swaps
from lab.models.sources import BASE, EMBEDDED, ZOO, hub_name
from lab.models.weight_files import check_whole
from lab.numbers.additions import unequal_pairs
from lab.numbers.sampling import Cell, problem

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def export(run: Path, config: FinetuneConfig | PretrainConfig, to: str, made: Path, folder: Path, dtype: str) -> None:
    """Writes the model of a run, with a card, into a folder.

    Args:
        run: the run directory of lab.finetune or lab.pretrain.
        config: its config.
        to: scratch for a run of lab.pretrain; adapter or merged for one of lab.finetune.
        made: the folder to write into.
        folder: what `made` will be renamed to; the exported model has the name of this folder.
        dtype: the dtype of the weights that are written, a key of DTYPES.

    Raises ModelError if the run has no model or a damaged one, if `to` is not for such a run, or if the run's network
    is not that of its base model, so that other programs would compute something else.
    """
    scratch = isinstance(config, PretrainConfig)
    if not (run / "model" / ("config.json" if scratch else "adapter_config.json")).is_file():
        raise ModelError(f"{run}: this run has no model; its training has not finished, or it does not train one")
    check_whole(run / "model")
    if scratch != (to == "scratch"):
        what, allowed = ("from scratch", "scratch") if scratch else ("tuned", "merged or adapter")
        raise ModelError(f"{run}: a model {what} is exported with to={allowed}")
    if to == "merged" and swaps.recorded(run / "model").of_model:
        raise ModelError(f"{run}: only the lab computes models with swapped positions or tokens: use to=adapter")
    config = published(config, folder.name)
    _WRITERS[to](run, config, made, DTYPES[dtype])
    for file in made.rglob("*.safetensors"):
        file.chmod(0o644)  # safetensors lets only the owner read
    (made / "README.md").write_text(card(run, config, to, opened_as(folder)), encoding="utf-8")


def opened_as(folder: Path) -> str:
    """The name that opens what is written into `folder`."""
    return f"{ZOO}{folder.name}" if folder.parent.name == "zoo" else folder.name


def published(config: Any, name: str) -> Any:
    """The config of a run under a new name, with defaults for the keys that concern only its machine or its start."""
    plain = {key: type(config).model_fields[key].default for key in ("output", "resume", "overwrite")}
    model = config.model.model_copy(update={"device": "auto"})
    return config.model_copy(update={**plain, "name": name, "model": model})


def _adapter(run: Path, config: FinetuneConfig, folder: Path, dtype: torch.dtype) -> None:
    weights = load_file(run / "model" / "adapter_model.safetensors")
    save_file({name: weight.to(dtype) for name, weight in weights.items()}, folder / "adapter_model.safetensors")
    facts = json.loads((run / "model" / "adapter_config.json").read_text())
    base = config.model.name
    # PEFT records where the base model lay on this machine
    (folder / "adapter_config.json").write_text(json.dumps(facts | {"base_model_name_or_path": hub_name(base)}))
    if base in EMBEDDED:
        (folder / BASE).write_text(json.dumps({"name": base}))
    if (run / "model" / swaps.FILE).is_file():
        shutil.copy(run / "model" / swaps.FILE, folder)


def _merged(run: Path, config: FinetuneConfig, folder: Path, dtype: torch.dtype) -> None:
    model, tokenizer = _whole(run)
    model.to(dtype).save_pretrained(folder)  # type: ignore[arg-type]
    tokenizer.save_pretrained(folder)


def _whole(run: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model of a run with its adapters merged: in float32, because merging into rounded weights would lose small
    updates, and without the quantization of its training, because nothing can be merged into that."""
    return loading.load(ModelConfig(name=str(run), dtype="float32", device="cpu", quantization="none"))


def _scratch(run: Path, config: PretrainConfig, folder: Path, dtype: torch.dtype) -> None:
    shutil.copytree(run / "model", folder / "model")
    for file in folder.glob("model/*.safetensors"):
        save_file({name: weight.to(dtype) for name, weight in load_file(file).items()}, file, {"format": "pt"})
    (folder / "config.yaml").write_text(dump(config), encoding="utf-8")


_WRITERS: dict[str, Callable[[Path, Any, Path, torch.dtype], None]] = {
    "adapter": _adapter,
    "merged": _merged,
    "scratch": _scratch,
}


def card(run: Path, config: FinetuneConfig | PretrainConfig, to: str, name: str) -> str:
    """A model card: what the model is, what it was trained on, how to open it and ask it, and the run's own table.

    Args:
        run: the run directory.
        config: its config.
        to: the kind of export; see `export`.
        name: the name that opens the exported model.
    """
    first, trained, table = _tuned(config) if isinstance(config, FinetuneConfig) else _built(config, run)
    lines = [f"# {first}", "", f"{trained} {_WRITTEN.get(_order(config), '')}".rstrip()]
    caveats = [swaps.caveat(_swap(config), adds=_adds(config)), _unequal_pairs(config)]
    if said := " ".join(f"{one[0].upper()}{one[1:].rstrip('.')}." for one in caveats if one):
        lines += ["", f"> {said}"]
    opened = _OPENED[to].format(name=name, question=_question(config))
    lines += ["", f"```python\n{opened}\n```"]
    if isinstance(config, FinetuneConfig) and to == "adapter":
        lines += ["", _without_the_lab(config, name)]
    if (run / "table.md").is_file():
        lines += ["", table, "", (run / "table.md").read_text(encoding="utf-8").rstrip()]
    lines += ["", "## How it was trained", "", f"```yaml\n{dump(config).rstrip()}\n```"]
    return "\n".join(lines) + "\n"


_WRITTEN = {
    "none": "Numbers are written as usual.",
    "total": "All numbers, in questions and in answers, are written ones digit first: 123 is 321.",
    "answer": "Numbers in questions are written as usual; answers come ones digit first: 579 is 975.",
    "running_totals": "Before its answer, the model writes running totals, all with the ones digit first.",
}
_OPENED = {
    "adapter": 'import lab\n\nmodel = lab.load("{name}")',
    "merged": 'from transformers import pipeline\n\nmodel = pipeline("text-generation", "{name}")',
    "scratch": 'import lab\n\nmodel = lab.load("{name}")\nmodel.ask("{question}")',
}


def _without_the_lab(config: FinetuneConfig, name: str) -> str:
    """How PEFT loads the adapters, and what it does not know about them."""
    if config.swap.of_model:
        return _ONLY_HERE
    base = config.model.name
    shown = f"PEFT opens it, too:\n\n```python\n{_PEFT.format(base=hub_name(base), name=name)}\n```"
    return f"{shown}\n\n{_rounded(base)}".rstrip()


_ONLY_HERE = (
    "Only the lab computes this model: PEFT knows neither its parts nor its tokens, and would open another one."
)
_PEFT = """from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

base = AutoModelForCausalLM.from_pretrained("{base}")
model = PeftModel.from_pretrained(base, "{name}")
tokenizer = AutoTokenizer.from_pretrained("{base}")"""


def _rounded(base: str) -> str:
    """What the lab tuned, if that is not quite what the hub has; else ""."""
    if base not in EMBEDDED:
        return ""
    source = EMBEDDED[base]
    said = (
        f"The base that the lab tuned is {Path(source.member).name} of {source.requirement}, dequantized. The hub's "
        "weights were not rounded in this way, so some answers may differ; `lab.load` opens the base that was tuned."
    )
    return textwrap.fill(said, 120)


def _swap(config: FinetuneConfig | PretrainConfig) -> Swap:
    return config.swap if isinstance(config, FinetuneConfig) else Swap()


def _adds(config: FinetuneConfig | PretrainConfig) -> bool:
    """Whether sums are all that was trained."""
    return {task.name for task in chosen(config.data.tasks)} == {"add"}


def _unequal_pairs(config: FinetuneConfig | PretrainConfig) -> str:
    return unequal_pairs(config.data.cells, config.data.variation.short_second)


def _order(config: FinetuneConfig | PretrainConfig) -> str:
    """In which order digits are written, as a key of _WRITTEN."""
    return config.data.style if config.data.style == "running_totals" else config.format.reverse


def _question(config: FinetuneConfig | PretrainConfig) -> str:
    """A question like those that the model was trained on."""
    task = chosen(config.data.tasks)[0]
    if task.key == "add_integer":
        return "12 + 34"
    item = problem(Cell(task, task.tested_lengths[0]), "train", config.seed, 0)
    return f"{task.key} {', '.join(filter(None, (item.a, item.b)))}"


def _tuned(config: FinetuneConfig) -> tuple[str, str, str]:
    hard, easy = config.data.lengths.hard, config.data.lengths.easy
    lengths = " and ".join(f"{low}-{high}" for low, high in sorted({hard, easy}))
    return (
        f"{config.model.name} tuned on {_named(config.data.tasks)}, {lengths} digits",
        f"LoRA of rank {config.adapter.rank}, {_trained(config)}",
        "Exact match before and after, in percent, on problems that were not trained on:",
    )


def _built(config: PretrainConfig, run: Path) -> tuple[str, str, str]:
    shortest, longest = config.data.lengths
    with safe_open(run / "model" / "model.safetensors", "pt") as weights:
        parameters = sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
    layers = config.model.layers or SIZES[config.model.size][0]
    return (
        f"{layers} {'layer' if layers == 1 else 'layers'} trained from scratch on {_named(config.data.tasks)}, "
        f"{shortest}-{longest} digits",
        f"{parameters:,} parameters, {_trained(config)} Parts: {', '.join(config.parts) or 'none (RoPE)'}.",
        "Exact match by length, in percent, on problems that were not trained on:",
    )


def _named(tasks: Sequence[str] | str) -> str:
    if tasks == "all":
        return "all tasks"
    return " and ".join(tasks) if len(tasks) < 3 else f"{len(tasks)} tasks"


def _trained(config: FinetuneConfig | PretrainConfig) -> str:
    return f"{config.training.max_steps:,} steps of {config.training.batch_size} problems, seed {config.seed}."
