"""Low-rank adapters on a pretrained model: attach, load, merge (PEFT)."""

from pathlib import Path

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, get_peft_model, prepare_model_for_kbit_training
from transformers import PreTrainedModel

from lab.config.schema import LoraConfig
from lab.errors import ModelError


def attach(model: PreTrainedModel, config: LoraConfig, quantized: bool, seed: int) -> PeftModel:
    """A model whose only trainable weights are new adapters, kept in float32; raises ModelError for unknown targets."""
    torch.manual_seed(seed)
    if quantized:
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    lora = PeftLoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,  # type: ignore[arg-type]
        lora_dropout=config.dropout,
        target_modules=config.targets,
        task_type="CAUSAL_LM",
    )
    try:
        return get_peft_model(model, lora)  # type: ignore[return-value]
    except ValueError as error:
        raise ModelError(f"adapter.targets: {' '.join(str(error).split())}") from error


def load(model: PreTrainedModel, folder: Path) -> PeftModel:
    """The adapters of a run directory on their base model; raises ModelError when they are damaged or do not fit."""
    try:
        return PeftModel.from_pretrained(model, str(folder))
    except Exception as error:
        raise ModelError(f"{folder}: not a loadable adapter: {' '.join(str(error).split())[:160]}") from error


def for_inference(model: PeftModel, quantized: bool) -> PreTrainedModel:
    """The tuned model at its fastest: merged where that loses nothing, adapters left beside the weights elsewhere.

    Adding an adapter to bfloat16 or quantized weights would round part of it away.
    """
    exact = not quantized and model.dtype == torch.float32
    return (model.merge_and_unload() if exact else model).eval()  # type: ignore[return-value]
