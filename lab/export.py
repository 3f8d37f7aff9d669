"""Write the model of a run as files for other programs, or as a small folder to pass on.

    lab export RUN FOLDER [to=merged] [dtype=bfloat16]

RUN is a run directory of finetune or pretrain. FOLDER is new; it gets the model and its card (README.md).

    to=merged    the whole model in Hugging Face's layout: transformers, vLLM and TRL open it
    to=gguf      the whole model in one file: llama.cpp, Ollama and LM Studio open it
    to=adapter   the adapters alone, with the swap that they need: lab.load and `lab ask` open them
    to=scratch   a model from scratch, the only form that it has: lab.load and `lab ask` open it
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from lab.command import read_options
from lab.config.commands import command_of
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import keys_of, load
from lab.config.pretraining import PretrainConfig
from lab.config.schema import Section
from lab.errors import ConfigError, RunError, exit_cleanly


class ExportOptions(Section):
    """What is written."""

    to: Literal["merged", "gguf", "adapter", "scratch"] | None = None
    """merged or gguf: the whole model. adapter: the adapters alone. scratch: a model from scratch. If not given, merged
    for a run of finetune and scratch for a run of pretrain."""
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    """The dtype of the weights that are written. Adapters are merged in float32 and rounded once."""


@exit_cleanly
def main(argv: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if argv is None else argv
    words, options = read_options(ExportOptions, arguments, "lab export", __doc__ or "", "RUN FOLDER")
    if len(words) != 2:
        raise ConfigError("give a run and a new folder, such as: lab export checkpoints/smollm2_lora exported")
    run, folder = map(Path, words)
    if folder.exists():
        raise ConfigError(f"{folder}: is there already; give the name of a new folder")
    file = run / "config.yaml"
    command = command_of(keys_of(file)) if file.is_file() else None
    if command not in ("finetune", "pretrain"):
        raise RunError(f"{run}: not a run of lab finetune or lab pretrain")
    tuned = command == "finetune"
    config = load(FinetuneConfig if tuned else PretrainConfig, file, [])
    to = options.to or ("merged" if tuned else "scratch")
    from lab.progress import quiet_libraries

    quiet_libraries()  # before they are imported: some speak then
    from lab.models.exporting import export

    export(run, config, to, folder, options.dtype)
    size = sum(part.stat().st_size for part in folder.rglob("*") if part.is_file())
    print(f"{folder}: {to}, {options.dtype}, {size / 1e6:.1f} MB; README.md says how it was trained")
    print(f"next: {_THEN[to].format(folder=folder)}")


_THEN = {
    "merged": 'lab ask {folder} "12 + 34"; vllm serve {folder}; transformers opens it with from_pretrained("{folder}")',
    "gguf": "llama-cli -m {folder}/*.gguf",
    "adapter": 'lab ask {folder} "12 + 34"',
    "scratch": 'lab ask {folder} "12 + 34"; lab probe probe_scratch subject={folder}',
}
"""What opens each form of a model."""


if __name__ == "__main__":
    main()
