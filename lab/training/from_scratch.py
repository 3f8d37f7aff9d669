"""Trains a whole model instead of adapters, with the same training loop, and measures the speed."""

from dataclasses import replace
from typing import cast

import torch
from transformers import TrainerCallback

from lab import processes
from lab.config.pretraining import PretrainTrainingConfig
from lab.models.scratch import NumberLlama
from lab.runs import Run
from lab.text.internalizing import Removal
from lab.training.callbacks import ForgetAtStages, Measure, MeasureWhileTraining
from lab.training.throughput import ThroughputMeter, matrix_product_rate, step_operations
from lab.training.trainer import Training, train


def train_from_scratch(training: Training, run: Run, measure: Measure | None = None) -> None:
    """Train all weights of a model; see `train`. Prints the speed and writes it to throughput.json.

    If `measure` is given, it is called at each validation, and the points that it returns are appended to curve.jsonl.
    """
    model, config = cast(NumberLlama, training.model), cast(PretrainTrainingConfig, training.config)
    method = training.method
    first = method.collate(training.sets.train.rows(range(config.micro_batch_size)))
    parts = config.batch_size // config.micro_batch_size
    meter = ThroughputMeter(parts * step_operations(model, first), config.batch_size)
    rate = processes.count() * matrix_product_rate(model.device, torch.bfloat16 if method.bfloat16 else torch.float32)
    watching: list[TrainerCallback] = [MeasureWhileTraining(run, measure, config.batch_size)] if measure else []
    if config.internalize.stages:
        watching.append(ForgetAtStages(Removal(config.internalize, config.batch_size)))
    # on a CPU with short rows, the backward pass of fused attention takes half of a step; plain attention compiles well
    usual = model.config._attn_implementation or "eager"
    if method.compile and model.device.type == "cpu" and usual == "sdpa":
        model.set_attn_implementation("eager")
    train(replace(training, method=method._replace(callbacks=[meter, *watching])), run)
    model.set_attn_implementation(usual)
    if found := meter.found(rate):
        print(found)
        run.write_json("throughput", {**found._asdict(), "operations_a_step": meter.operations})
