"""Low-rank adapters on a pretrained model: attach, load, merge (PEFT)."""

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedModel

from lab.config.earlier import renamed
from lab.config.finetuning import LoraConfig
from lab.errors import ModelError, in_one_line
from lab.models.swaps import recorded, swap_of
from lab.trees.fused_lora import fuse, round_adapters

if TYPE_CHECKING:  # PEFT imports bitsandbytes, and models without adapters need neither
    from peft import PeftModel


def has_adapters(model: Any) -> bool:
    """Whether a model has adapters that are not merged into its weights."""
    return type(model).__module__.partition(".")[0] == "peft"


def check_targets(model: PreTrainedModel, config: LoraConfig) -> None:
    """Raises ModelError if a target is not a linear layer of the model or is tied to its embeddings, or if the rank
    exceeds the width of every target."""
    linear = [(name, module) for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    layers = {name.rpartition(".")[2] for name, _ in linear}
    unknown = sorted(set(config.targets) - layers)
    if unknown or not config.targets:
        raise ModelError(f"adapter.targets {unknown}: the model has no such layers; it has {', '.join(sorted(layers))}")
    if "lm_head" in config.targets and model.config.tie_word_embeddings:
        # merged adapters would change the embeddings as well
        raise ModelError("adapter.targets: lm_head shares its weights with this model's embeddings; leave it out")
    widest = max(max(m.in_features, m.out_features) for name, m in linear if name.rpartition(".")[2] in config.targets)
    if config.rank > widest:
        raise ModelError(f"adapter.rank={config.rank}: no layer of adapter.targets is wider than {widest}")


def attach(model: PreTrainedModel, config: LoraConfig, seed: int) -> "PeftModel":
    """The model with new adapters, whose initial weights are drawn from the seed. Only the adapters, in float32, and
    the weights of parts are trainable."""
    from peft import LoraConfig as PeftLoraConfig
    from peft import get_peft_model

    torch.manual_seed(seed)
    new_tokens = getattr(model, "new_tokens", [])
    parts = getattr(model, "parts", {}).items()
    added = [f"parts.{kind}" for kind, part in parts if any(True for _ in part.parameters())]
    tables = ["embed_tokens"] if model.config.tie_word_embeddings else ["embed_tokens", "lm_head"]
    lora = PeftLoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,  # type: ignore[arg-type]
        lora_dropout=config.dropout,
        target_modules=config.targets,
        task_type="CAUSAL_LM",
        modules_to_save=added or None,
        trainable_token_indices=dict.fromkeys(tables, new_tokens) if new_tokens else None,
    )
    tuned: Any = get_peft_model(model, lora)
    fuse(tuned)
    # do not save a whole embedding table that got new rows: the adapters already save these rows as trained tokens
    tuned.save_pretrained = partial(tuned.save_pretrained, save_embedding_layers=False)
    return tuned


def load(model: PreTrainedModel, folder: Path) -> "PeftModel":
    """The base model with the adapters in `folder`.

    Raises ModelError if the adapters are damaged or do not fit, or if they were trained with a swap that the model does
    not have.
    """
    trained, there = recorded(folder), swap_of(model)
    if trained != there:
        raise ModelError(
            f"{folder}: trained with {trained!r}, but the model has {there!r}; lab.models.loading loads both"
        )
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Found missing adapter keys")  # they would keep their first values
            tuned = _opened(model, folder)
    except Exception as error:
        raise ModelError(f"{folder}: not a loadable adapter: {in_one_line(error)}") from error
    fuse(tuned)
    return tuned


def _opened(model: PreTrainedModel, folder: Path) -> "PeftModel":
    """The model with the adapters in `folder`, which may be those of a version before there were parts."""
    from peft import PeftConfig, PeftModel

    saved: Any = PeftConfig.from_pretrained(str(folder))
    moved = {
        old: new for old, new in renamed(getattr(model, "parts", ())).items() if old in (saved.modules_to_save or ())
    }
    if not moved:
        return PeftModel.from_pretrained(model, str(folder))
    saved.modules_to_save = [moved.get(name, name) for name in saved.modules_to_save]
    mapping = {rf"^{old}\.": f"{new}." for old, new in moved.items()}
    return PeftModel.from_pretrained(model, str(folder), config=saved, key_mapping=mapping)


def for_inference(model: "PeftModel", quantized: bool) -> PreTrainedModel:
    """The tuned model in its fastest form: adapters are merged into the weights if that loses no precision.

    They are not merged into bfloat16 or quantized weights, where part of them would be lost to rounding.
    """
    round_adapters(model)
    exact = not quantized and model.dtype == torch.float32
    return (model.merge_and_unload() if exact else model).eval()  # type: ignore[return-value]
