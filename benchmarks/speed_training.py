"""Training samples per second, compared with plain SFTTrainer (same data, model, batches and dtype), and with the
machine's peak.

    python -m benchmarks.speed_training [steps]

The baseline is TRL's SFTTrainer with its defaults on (prompt, completion) text. The losses of both are printed beside
each other. Floating-point operations are counted for the tokens that a step really computes, and are compared with the
rate of matrix products alone on this machine.
"""

import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from experiments.shared.lora_operations import lora_operations
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.errors import exit_cleanly
from lab.models import adapters, pretrained
from lab.numbers.sampling import Mixture
from lab.runs import Run
from lab.text.examples import IGNORED, encode
from lab.text.wording import Wording
from lab.trees.paths import attend_along_paths
from lab.tune.collation import PrefixTreeCollator
from lab.tune.problem_sets import training_sets
from lab.tune.trainer import train
from lab.tune.tuning import adapter_training

CONFIG = Path(__file__).parents[1] / "configs" / "smollm2_lora.yaml"
OVERRIDES = ["adapter.rank=128", "training.learning_rate=5e-4", "training.log_every=1", "training.warmup_steps=0"]


class StepTimes(TrainerCallback):
    """The seconds of each optimizer step, without validation and saving, and its loss."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.losses: list[float] = []

    def on_step_begin(self, *args, **kwargs) -> None:
        self.began = time.perf_counter()

    def on_step_end(self, *args, **kwargs) -> None:
        self.seconds.append(time.perf_counter() - self.began)

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        if logs and "loss" in logs:
            self.losses.append(logs["loss"])

    def samples_per_second(self, batch: int) -> float:
        """The samples per second of the median step, without the first step."""
        return batch / sorted(self.seconds[1:])[len(self.seconds[1:]) // 2]


def plain(config: FinetuneConfig, folder: str) -> StepTimes:
    model, tokenizer = pretrained.load(config.model)
    model = adapters.attach(model, config.adapter, config.seed)
    size = config.training.max_steps * config.training.batch_size
    items = [Wording().example(problem) for problem in Mixture(config.data.cells, "train", config.seed, size)]
    rows = {"prompt": [item.prompt for item in items], "completion": [item.completion for item in items]}
    arguments = SFTConfig(
        folder,
        max_steps=config.training.max_steps,
        per_device_train_batch_size=config.training.batch_size,
        learning_rate=config.training.learning_rate,
        lr_scheduler_type=config.training.schedule,
        weight_decay=config.training.weight_decay,
        train_sampling_strategy="sequential",
        bf16=model.dtype == torch.bfloat16,
        use_cpu=model.device.type == "cpu",
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    times = StepTimes()
    baseline = SFTTrainer(
        model, args=arguments, train_dataset=Dataset.from_dict(rows), processing_class=tokenizer, callbacks=[times]
    )
    baseline.remove_callback(PrinterCallback)
    baseline.train()
    return times


def ours(config: FinetuneConfig, folder: str) -> StepTimes:
    model, tokenizer = pretrained.load(config.model)
    training = adapter_training(config, model, tokenizer, training_sets(config, Wording(), tokenizer))
    times = StepTimes()
    run = Run.open(Path(folder) / "run", "name: speed\n")
    train(replace(training, callbacks=[times]), run)
    return times


def operations_per_step(config: FinetuneConfig) -> float:
    """The operations of one of our steps, forward and backward, with attention. A multiply-add counts as two."""
    model, tokenizer = pretrained.load(config.model)
    model = adapters.attach(model, config.adapter, config.seed)
    batch = config.training.batch_size
    mixture = Mixture(config.data.cells, "train", config.seed, batch)
    attend_along_paths(model)
    inputs = PrefixTreeCollator(model=model)([encode(Wording().example(problem), tokenizer) for problem in mixture])
    pairs = inputs["attention_mask"].numel() * 6 / 7  # along paths, no product is recomputed in the backward pass
    tokens, answers = inputs["input_ids"].numel(), int((inputs["shift_labels"] != IGNORED).sum())
    frozen = sum(w.numel() for n, w in model.named_parameters() if "layers" in n and "lora" not in n and w.ndim == 2)
    adapter = sum(w.numel() for n, w in model.named_parameters() if "lora" in n)
    head = model.get_output_embeddings().weight.numel()
    width = model.config.num_attention_heads * model.config.head_dim * model.config.num_hidden_layers
    return lora_operations(frozen, adapter, head, width, tokens, answers, pairs)


def matrix_rate(dtype: torch.dtype, device: torch.device) -> float:
    """Floating-point operations a second of plain products of the model's shapes."""
    a, b = torch.randn(1024, 576, device=device).to(dtype), torch.randn(576, 1536, device=device).to(dtype)
    best = 0.0
    for _ in range(20):
        began = time.perf_counter()
        products = [a @ b for _ in range(20)]
        products[-1].sum().item()
        best = max(best, 20 * 2 * 1024 * 576 * 1536 / (time.perf_counter() - began))
    return best


@exit_cleanly
def main() -> None:
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    steps = sys.argv[1] if len(sys.argv) > 1 else "8"
    more = [f"training.max_steps={steps}", f"training.evaluate_every={steps}", "training.valid_problems=8"]
    config = load(FinetuneConfig, CONFIG, [*OVERRIDES, *more])
    batch = config.training.batch_size
    with tempfile.TemporaryDirectory() as folder:
        fast, slow = ours(config, folder), plain(config, folder)
    fast_rate, slow_rate = fast.samples_per_second(batch), slow.samples_per_second(batch)
    print("step  lab loss  plain loss")
    for step, (a, b) in enumerate(zip(fast.losses, slow.losses, strict=True), 1):
        print(f"{step:>4}  {a:>8.4f}  {b:>10.4f}")
    print(f"samples/s: lab {fast_rate:.2f}, plain SFTTrainer {slow_rate:.2f}, ratio {fast_rate / slow_rate:.2f}")
    dtype, device = pretrained.resolve_dtype(config.model), pretrained.resolve_device(config.model)
    rate, most = operations_per_step(config) * fast_rate / batch, matrix_rate(dtype, device)
    print(f"{dtype}: {rate / 1e9:.0f} of {most / 1e9:.0f} GFLOP/s that matrix products reach here, {rate / most:.0%}")


if __name__ == "__main__":
    main()
