"""Writes tuned models as files that are read without the lab, and as small folders that the lab opens.

adapter   the adapters (PEFT) with the swap they need; a tenth of a run's size
merged    the whole model with its tokenizer, in Hugging Face's layout
gguf      the whole model in one file, for llama.cpp and what is built on it (lab/models/gguf_file.py)
"""

import json
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from lab.config.finetuning import FinetuneConfig
from lab.config.loading import dump
from lab.config.schema import ModelConfig
from lab.errors import ModelError
from lab.models import checkpoints, gguf_file, swaps

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def export(run: Path, config: FinetuneConfig, to: str, folder: Path, dtype: str) -> None:
    """Writes the model of a run, with a card, into a new folder. Nothing is left behind if it cannot be done.

    Args:
        run: the run directory of lab.finetune.
        config: its config.
        to: adapter, merged or gguf.
        folder: where to write; it must not exist.
        dtype: a key of DTYPES, of the weights that are written.

    Raises ModelError if the run has no model, or if its network is not that of its base model, so that other programs
    would compute something else.
    """
    if not (run / "model" / "adapter_config.json").is_file():
        raise ModelError(f"{run}: this run has no model; it was interrupted earlier, or does not train one")
    swap = swaps.recorded(run / "model")
    if to != "adapter" and swap.of_model:
        raise ModelError(
            f"{run}: its positions or tokens are swapped, which only the lab computes; to=adapter is what it can be"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        {"adapter": _adapter, "merged": _merged, "gguf": _gguf}[to](run, config, made, DTYPES[dtype])
        (made / "README.md").write_text(card(run, config, to, folder.name), encoding="utf-8")
        made.rename(folder)


def _adapter(run: Path, config: FinetuneConfig, folder: Path, dtype: torch.dtype) -> None:
    weights = load_file(run / "model" / "adapter_model.safetensors")
    save_file({name: weight.to(dtype) for name, weight in weights.items()}, folder / "adapter_model.safetensors")
    facts = json.loads((run / "model" / "adapter_config.json").read_text())
    # PEFT records where the base model lay on this machine
    (folder / "adapter_config.json").write_text(json.dumps(facts | {"base_model_name_or_path": config.model.name}))
    if (run / "model" / swaps.FILE).is_file():
        shutil.copy(run / "model" / swaps.FILE, folder)


def _merged(run: Path, config: FinetuneConfig, folder: Path, dtype: torch.dtype) -> None:
    # merged in float32 and rounded once: merging into rounded weights would lose small updates
    model, tokenizer = checkpoints.load(ModelConfig(name=str(run), dtype="float32", device="cpu"))
    model.to(dtype).save_pretrained(folder)  # type: ignore[arg-type]
    tokenizer.save_pretrained(folder)


def _gguf(run: Path, config: FinetuneConfig, folder: Path, dtype: torch.dtype) -> None:
    model, tokenizer = checkpoints.load(ModelConfig(name=str(run), dtype="float32", device="cpu"))
    gguf_file.write(model.to(dtype), tokenizer, folder / f"{config.name}.gguf")  # type: ignore[arg-type]


def card(run: Path, config: FinetuneConfig, to: str, name: str) -> str:
    """A model card: what the model is, what it was trained on, how to open it and ask it, and the run's own table."""
    data, training = config.data, config.training
    tasks = "all" if data.tasks == "all" else len(data.tasks)
    named = f"{tasks} tasks" if tasks == "all" or tasks > 2 else " and ".join(data.tasks)
    lengths = " and ".join(f"{low}-{high}" for low, high in sorted({data.lengths.hard, data.lengths.easy}))
    opened = {
        "adapter": f'import lab\n\nmodel = lab.load("{name}")',
        "merged": f'from transformers import pipeline\n\nmodel = pipeline("text-generation", "{name}")',
        "gguf": f'from llama_cpp import Llama\n\nmodel = Llama("{name}/{config.name}.gguf")',
    }[to]
    written = {
        "none": "Numbers are written as usual.",
        "total": "All numbers, in questions and in answers, are written ones digit first: 123 is 321.",
        "answer": "Numbers in questions are written as usual; answers come ones digit first: 579 is 975.",
    }.get(config.format.reverse, f"Numbers are written with format.reverse={config.format.reverse}.")
    table = run / "table.md"
    lines = [
        f"# {config.model.name} tuned on {named}, {lengths} digits",
        "",
        f"LoRA of rank {config.adapter.rank}, {training.max_steps} steps of {training.batch_size} problems, seed "
        f"{config.seed}. {written}",
        "",
        f"```python\n{opened}\n```",
    ]
    if table.is_file():
        lines += ["", "Exact match before and after, in percent, on problems that were not trained on:", ""]
        lines.append(table.read_text(encoding="utf-8").rstrip())
    lines += ["", "## How it was trained", "", f"```yaml\n{dump(config).rstrip()}\n```"]
    return "\n".join(lines) + "\n"
