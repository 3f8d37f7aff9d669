"""Trains a whole model instead of adapters, with the same training loop, and measures the speed."""

import torch
from transformers import TrainerCallback
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab import processes
from lab.config.pretraining import PretrainTrainingConfig
from lab.models.scratch import NumberLlama
from lab.runs import Run
from lab.text.internalizing import Removal
from lab.training.callbacks import ForgetAtStages, Measure, MeasureWhileTraining
from lab.training.sequences import SequenceCollator, sequence_loss
from lab.training.throughput import ThroughputMeter, matrix_product_rate, step_operations
from lab.training.trainer import Method, TrainingSets, train


def train_from_scratch(
    model: NumberLlama,
    tokenizer: PreTrainedTokenizerBase,
    config: PretrainTrainingConfig,
    sets: TrainingSets,
    collate: SequenceCollator,
    seed: int,
    run: Run,
    dtype: torch.dtype,
    measure: Measure | None = None,
) -> None:
    """Train all weights of a model; see `train`. Prints the speed and writes it to throughput.json.

    `dtype` is that of matrix products. If `measure` is given, it is called at each validation, and its points
    are appended to curve.jsonl.
    """
    first = collate([sets.train.examples[place] for place in range(config.micro_batch_size)])
    parts = config.batch_size // config.micro_batch_size
    meter = ThroughputMeter(parts * step_operations(model, first), config.batch_size)
    rate = processes.count() * matrix_product_rate(model.device, dtype)
    callbacks: list[TrainerCallback] = [meter]
    if config.internalize.stages:
        callbacks.append(ForgetAtStages(Removal(config.internalize, config.batch_size)))
    if measure:
        callbacks.append(MeasureWhileTraining(run, measure, config.batch_size))
    # on a CPU the backward pass of fused attention takes half a step if rows are short; plain attention compiles well
    plain_attention = config.compile and model.device.type == "cpu"
    usual = model.config._attn_implementation or "eager"
    if plain_attention and usual == "sdpa":
        model.set_attn_implementation("eager")
    bfloat16 = dtype == torch.bfloat16
    method = Method(collate, sequence_loss, callbacks=callbacks, bfloat16=bfloat16, compile=config.compile)
    train(model, tokenizer, config, sets, method, run, seed)
    model.set_attn_implementation(usual)
    if found := meter.found(rate):
        print(found)
        run.write_json("throughput", {**found._asdict(), "operations_a_step": meter.operations})
