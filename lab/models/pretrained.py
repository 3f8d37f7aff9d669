"""Loads a pretrained causal language model and its tokenizer, on a device, in a dtype, quantized or not."""

import warnings
from pathlib import Path
from typing import Any

import httpx2  # the client that asks the hub
import torch
from huggingface_hub import model_info, try_to_load_from_cache
from huggingface_hub.errors import GatedRepoError, OfflineModeIsEnabled
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab import distributed
from lab.config.parts import Parts
from lab.config.pretraining import ScratchConfig
from lab.config.schema import ModelConfig
from lab.errors import LabWarning, ModelError, in_one_line
from lab.graft.llama import GraftedLlama
from lab.models.free_memory import free_memory, in_words
from lab.models.sources import EMBEDDED, locate
from lab.models.weight_files import AGAIN, check_whole

_ADVICE = f"a model that needs no hub is {next(iter(EMBEDDED))}"


def load(config: ModelConfig, parts: Parts | None = None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model and its tokenizer.

    Args:
        config: name, device, dtype and quantization.
        parts: if given, the model is a GraftedLlama, which must still be told its tokens (`lab.models.swaps`).

    Raises ModelError, in one line, if the weights are not available, are damaged, or do not fit the device, or if
    `parts` are given for a model that is not a Llama.
    """
    path, device, dtype = locate(config.name), resolve_device(config), resolve_dtype(config)
    if device.type == "cuda":
        # For the whole process: cuDNN's attention makes a plan for each length, and each decoding step has a new one.
        torch.backends.cuda.enable_cudnn_sdp(False)
    check_whole(Path(path), f"remove {path} to fetch it again" if config.name in EMBEDDED else AGAIN)
    try:
        _check_hub(config, path)
        tokenizer = AutoTokenizer.from_pretrained(path)
        own = AutoConfig.from_pretrained(path)
        if parts is not None and own.model_type != "llama":
            what = "parts, tokens and hints can only be swapped in models of type llama"
            raise ModelError(f"{config.name} is of type {own.model_type}: {what}")
        if parts is not None:
            own.parts = {part: section.model_dump() for part, section in parts.items()}
        kind: Any = AutoModelForCausalLM if parts is None else GraftedLlama
        model, told = kind.from_pretrained(
            path,
            config=own,
            dtype=dtype,
            quantization_config=_quantization(config, dtype),
            device_map={"": device},
            output_loading_info=True,
        )
        missing = sorted(key for key in told["missing_keys"] if not key.startswith("parts."))
        if missing:  # transformers would draw these weights at random
            raise ModelError(
                f"model {config.name!r} has no weights for {', '.join(missing[:3])}; its files are damaged"
            )
    except ModelError:
        raise
    except Exception as error:  # the hub client, the config parser and safetensors raise dozens of types
        raise ModelError(
            f"model {config.name!r} cannot be loaded ({type(error).__name__}: {in_one_line(error)}); "
            + _advice(config.name, path)
        ) from error
    if config.quantization == "nf4":
        _stay_differentiable(model)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model.eval(), tokenizer


def _advice(name: str, path: str) -> str:
    """What to do about a model that cannot be loaded."""
    if name in EMBEDDED:
        return f"remove {path} to fetch it again"
    return "its files are damaged or incomplete; copy or make them again" if Path(path).is_dir() else _ADVICE


def _check_hub(config: ModelConfig, path: str) -> None:
    """Asks the hub once for a model that is not on this machine; the loader would keep trying for a minute. Warns
    before a download of weights that this machine has no memory for."""
    if not Path(path).is_dir() and not isinstance(try_to_load_from_cache(path, "config.json"), str):
        try:
            files = model_info(path, timeout=10, files_metadata=True).siblings or []
        except (httpx2.TransportError, OfflineModeIsEnabled):
            raise ModelError(f"{path} is not a folder, and the model hub cannot be reached; {_ADVICE}") from None
        except GatedRepoError:
            raise ModelError(f"{path}: {_LOGIN}") from None
        warn_of_size(config, sum(file.size or 0 for file in files if file.rfilename.endswith(".safetensors")))


_LOGIN = "its owner wants a login: accept the licence on its page, and run: hf auth login"


def warn_of_size(config: ModelConfig, size: float) -> None:
    """Warns of weights of so many bytes, in 16 bits, that do not fit into the free memory of their device."""
    kept = size * {"none": 1, "int8": 0.55, "nf4": 0.35}[config.quantization]
    if resolve_dtype(config) == torch.float32 and config.quantization == "none":
        kept *= 2
    free = free_memory(resolve_device(config))
    if kept > free:
        less = "" if config.quantization == "nf4" else "; model.quantization=nf4 needs a third"
        what = f"{config.name}: {in_words(size)} to download, {in_words(kept)} of memory"
        warnings.warn(f"{what}, but only {in_words(free)} are free{less}", LabWarning, stacklevel=2)


def describe(model: PreTrainedModel) -> str:
    """The device and dtype of a model and the number of processes, in words, for environment.json."""
    device, threads, count = model.device, torch.get_num_threads(), distributed.count()
    on_cpu = f"cpu, {threads} {'thread' if threads == 1 else 'threads'}"
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else on_cpu
    each = f"{count} processes, each on " if count > 1 else ""
    return f"{each}{name}, {str(model.dtype).removeprefix('torch.')}"


def resolve_device(config: ModelConfig | ScratchConfig) -> torch.device:
    """The device of a config. Raises ModelError if it asks for CUDA and there is none."""
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ModelError("model.device is cuda, but torch sees no CUDA device; use auto or cpu")
    if config.device == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", distributed.local_rank())


def resolve_dtype(config: ModelConfig | ScratchConfig) -> torch.dtype:
    """The dtype of a config. auto chooses bfloat16 only on a device that multiplies in it: a CPU that does not is a
    hundred times slower with it (measured)."""
    if config.dtype != "auto":
        return getattr(torch, config.dtype)
    on_gpu = resolve_device(config).type == "cuda"
    # GPUs before Ampere compute bfloat16 by way of float32
    fast = torch.cuda.is_bf16_supported(including_emulation=False) if on_gpu else _cpu_multiplies_bfloat16()
    return torch.bfloat16 if fast else torch.float32


def _cpu_multiplies_bfloat16() -> bool:
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def _stay_differentiable(model: PreTrainedModel) -> None:
    """Keeps bitsandbytes from repacking the weights. On CPUs with AVX512-BF16 it does so permanently at the first
    inference, and its product with repacked weights has no gradient: a model that is tested and then tuned would hardly
    learn."""
    from bitsandbytes.nn.modules import Linear4bit  # slow to import, and not quiet about it: only where it is used

    for module in model.modules():
        if isinstance(module, Linear4bit):
            module.support_avx512bf16_for_cpu = False


def _quantization(config: ModelConfig, dtype: torch.dtype) -> Any:
    if config.quantization == "nf4":
        return BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
        )
    return BitsAndBytesConfig(load_in_8bit=True) if config.quantization == "int8" else None
