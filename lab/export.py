"""Write the model of a run as files for other programs, or as a small folder to pass on; or its training data.

    lab export RUN FOLDER [to=merged] [dtype=bfloat16] [push=owner/name]
    lab export CONFIG FOLDER to=data [push=owner/name]

RUN is a run directory of finetune, pretrain or adder. FOLDER is new; it gets the files and a card (README.md). push=
also uploads them to a private repository on the Hugging Face hub; log in with `hf auth login` or HF_TOKEN.

    to=merged    the whole model in Hugging Face's layout: transformers, vLLM and TRL open it, and llama.cpp's
                 convert_hf_to_gguf.py makes one GGUF file of it
    to=adapter   the adapters alone, with the swap that they need: lab.load and `lab ask` open them
    to=scratch   a model from scratch, which has no other form: lab.load and `lab ask` open it
    to=transformers
                 a model of two readings, given as a folder or a name of the zoo, with its pretrained model and its own
                 modeling file: transformers opens it with trust_remote_code=True, without the lab
    to=data      what a run or a config of finetune trains on, as text: TRL, axolotl and LLaMA-Factory read it
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from lab.adders.config import AdderConfig
from lab.command import entry_point, find_config, is_config, read_options
from lab.config.commands import command_of
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import keys_of, load, saved
from lab.config.pretraining import PretrainConfig
from lab.config.schema import Section
from lab.errors import ConfigError, RunError, in_one_line
from lab.runs import Run, put_in_place


class ExportOptions(Section):
    """What is written."""

    to: Literal["merged", "adapter", "scratch", "transformers", "data"] | None = None
    """merged: the whole model. adapter: only the adapters. scratch: a model from scratch, or an adder.
    transformers: a model of two readings.
    data: what finetune trains on. The default is merged for a run of finetune, and scratch for one of pretrain or
    adder."""
    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    """The dtype of the weights that are written. The default is bfloat16, and float32 for an adder, which
    cannot be rounded. Adapters are merged in float32 and rounded once."""
    push: str | None = Field(default=None, pattern=r"^[\w.-]+/[\w.-]+$")
    """A repository on the Hugging Face hub, owner/name, to which the folder is uploaded. It is created if there is
    none."""


@entry_point
def main(arguments: list[str]) -> None:
    words, options = read_options(ExportOptions, arguments, "lab export", __doc__ or "", "RUN FOLDER")
    if len(words) != 2:
        raise ConfigError("give a run and a new folder, such as: lab export checkpoints/smollm2_lora exported")
    source, folder = Path(words[0]), Path(words[1])
    if folder.exists():
        raise ConfigError(f"{folder}: exists already; give the name of a new folder")
    Run.check_writable(folder)
    from lab.progress import quiet_libraries

    quiet_libraries()  # before the libraries are imported, because some of them print on import
    if options.push:
        _check_login()
    if options.to == "data":
        _data(source, folder)
    elif options.to == "transformers":
        _for_transformers(words[0], folder)
    else:
        _model(source, folder, options)
    if options.push:
        _push(folder, options.push, "dataset" if options.to == "data" else "model")


_SCHEMAS = {"finetune": FinetuneConfig, "pretrain": PretrainConfig, "adder": AdderConfig}


def _model(run: Path, folder: Path, options: ExportOptions) -> None:
    command = Run(run).command
    if command not in _SCHEMAS:
        raise RunError(f"{run}: not a run of lab finetune, lab pretrain or lab adder train")
    adder, to = command == "adder", options.to or ("merged" if command == "finetune" else "scratch")
    if adder and to != "scratch":
        raise ConfigError(f"to={to}: an adder is exported with to=scratch, or without to=")
    dtype = options.dtype or ("float32" if adder else "bfloat16")
    config: Any = saved(_SCHEMAS[command], run / "config.yaml")
    with put_in_place(folder) as made:
        if adder:
            from lab.adders.training import export as export_adder

            export_adder(run, config, made, folder, dtype)
        else:
            from lab.models.exporting import export

            export(run, config, to, made, folder, dtype)
    size = sum(part.stat().st_size for part in folder.rglob("*") if part.is_file())
    told = f"{size / 1e6:.1f} MB" if size > 1e5 else f"{size / 1e3:.0f} kB"
    form = "adder" if adder else to
    print(f"{folder}: {form}, {dtype}, {told}; README.md says how it was trained")
    print(f"next: {_THEN[form].format(folder=folder)}")


_THEN = {
    "merged": 'lab ask {folder} "12 + 34"; vllm serve {folder}; transformers opens it with from_pretrained("{folder}")',
    "adapter": 'lab ask {folder} "12 + 34"',
    "scratch": "lab ask {folder}",
    "adder": 'lab ask {folder} "12 + 34"',
}
"""What opens each form of a model."""


def _for_transformers(name: str, folder: Path) -> None:
    from lab.second_reading.exporting import export

    with put_in_place(folder) as made:
        export(name, made)
    print(f"{folder}: transformers opens it with from_pretrained({str(folder)!r}, trust_remote_code=True)")


def _data(source: Path, folder: Path) -> None:
    given = is_config(str(source))
    file = find_config(str(source)) if given else source / "config.yaml"
    if not file.is_file() or command_of(keys_of(file)) != "finetune":
        raise RunError(f"{source}: to=data needs a run or a config of lab finetune")
    from lab.tune.text_files import write

    config = load(FinetuneConfig, file, []) if given else saved(FinetuneConfig, file)
    with put_in_place(folder) as made:
        count = write(config, made, folder.name)
    print(f"{folder}: {count:,} samples, train.jsonl")


def _check_login() -> None:
    """Raises ConfigError unless the user is logged in to the hub. Call it before anything is computed."""
    from huggingface_hub import whoami

    try:
        whoami()
    except Exception as error:  # the hub's client raises dozens of types
        told = f"push: the hub does not know you; run `hf auth login`, or set HF_TOKEN ({in_one_line(error)})"
        raise ConfigError(told) from None


def _push(folder: Path, name: str, kind: str) -> None:
    from huggingface_hub import HfApi

    try:
        HfApi().create_repo(name, repo_type=kind, private=True, exist_ok=True)
        HfApi().upload_folder(repo_id=name, repo_type=kind, folder_path=folder)
    except Exception as error:  # the hub's client raises dozens of types
        again = f"`hf upload {name} {folder} --repo-type {kind}` tries again"
        raise RunError(f"push={name}: {in_one_line(error)}; {folder} is written, {again}") from None
    print(f"pushed to {name}")


if __name__ == "__main__":
    main()
