"""The training of a whole model, as a config of `lab.pretrain` describes it. It uses the same loop as the training of
adapters, and also measures the speed."""

from dataclasses import replace
from typing import cast

import torch
from transformers import TrainerCallback
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab import distributed
from lab.config.pretraining import PretrainConfig, PretrainTrainingConfig
from lab.models import pretrained
from lab.runs import Run
from lab.scratch.llama import NumberLlama
from lab.text.scratch_notation import ScratchNotation
from lab.tune.callbacks import Measure, MeasureWhileTraining
from lab.tune.memory import check_memory
from lab.tune.sequences import SequenceCollator, check_that_it_fits, longest_rows, sequence_loss, sequence_sets
from lab.tune.throughput import ThroughputMeter, matrix_product_rate, step_operations
from lab.tune.trainer import Training, train


def scratch_training(
    config: PretrainConfig, model: NumberLlama, tokenizer: PreTrainedTokenizerBase, notation: ScratchNotation
) -> Training:
    """The training of a new model on problems in its notation. Raises ModelError if the model does not have enough
    position ids for the longest training sequence, or the machine not enough memory for a step."""
    data, seed = config.data, config.seed
    sets = sequence_sets(data, config.training, seed, notation, tokenizer)
    collate = SequenceCollator(model, data.packing, seed)
    bfloat16 = pretrained.resolve_dtype(config.model) == torch.bfloat16
    compiled = config.training.compile
    training = Training(
        model, tokenizer, config.training, sets, seed, collate, sequence_loss, bfloat16=bfloat16, compile=compiled
    )
    longest = longest_rows(data, seed, notation, tokenizer)
    shortest = sets.train.rows(range(min(len(sets.train.examples), config.training.micro_batch_size)))
    check_memory(training, [*shortest, *longest], data.packing)
    check_that_it_fits(model, collate, longest)
    return training


def train_from_scratch(training: Training, run: Run, measure: Measure | None = None) -> None:
    """Train all weights of a model; see `train`. Prints the speed and writes it to throughput.json.

    If `measure` is given, it is called at each validation, and the points that it returns are appended to curve.jsonl.
    """
    model, config = cast(NumberLlama, training.model), cast(PretrainTrainingConfig, training.config)
    first = training.collate(training.sets.train.rows(range(config.micro_batch_size)))
    parts = config.batch_size // config.micro_batch_size
    meter = ThroughputMeter(parts * step_operations(model, first), config.batch_size)
    dtype = torch.bfloat16 if training.bfloat16 else torch.float32
    rate = distributed.count() * matrix_product_rate(model.device, dtype)
    watching: list[TrainerCallback] = [MeasureWhileTraining(run, measure, config.batch_size)] if measure else []
    # on a CPU with short rows, the backward pass of fused attention takes half the time of a step; torch.compile does
    # better with plain attention
    usual = model.config._attn_implementation or "eager"
    if training.compile and model.device.type == "cpu" and usual == "sdpa":
        model.set_attn_implementation("eager")
    train(replace(training, callbacks=[meter, *watching, *training.callbacks]), run)
    model.set_attn_implementation(usual)
    if found := meter.found(rate):
        print(found)
        run.write_json("throughput", {**found._asdict(), "operations_a_step": meter.operations})
