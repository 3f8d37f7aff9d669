"""The training loop: TRL's SFTTrainer on problems that are computed on demand."""

import math
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from safetensors import SafetensorError
from torch.utils.data import BatchSampler, DataLoader
from transformers import PreTrainedModel, PrinterCallback, TrainerCallback
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.trainer import TRAINING_ARGS_NAME
from transformers.trainer_utils import EvalLoopOutput
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from lab import distributed
from lab.config.schema import TrainingConfig
from lab.errors import DivergedError, LabWarning, RunError, in_one_line
from lab.runs import Run
from lab.text.examples import IGNORED
from lab.trees.losses import AnswerLoss, tree_loss
from lab.tune.callbacks import KeepSteps, MetricsFile, TrainingProgress, ValidateLastStep
from lab.tune.checkpoints import last_checkpoint, undamaged
from lab.tune.loggers import PROJECT, log_into
from lab.tune.problem_sets import Row, TrainingSets


@dataclass(frozen=True)
class Training:
    """A model, what it is trained on, and how."""

    model: PreTrainedModel | PeftModel
    """A model whose weights are all trained, or a model with adapters."""
    tokenizer: PreTrainedTokenizerBase
    """Saved beside the weights."""
    config: TrainingConfig
    sets: TrainingSets
    seed: int
    """The seed of dropout."""
    collate: Callable[[list[Row]], dict[str, torch.Tensor]]
    """Turns rows of a problem set into the inputs of `answer_loss`, which include shift_labels."""
    answer_loss: AnswerLoss = tree_loss
    """Returns the loss of a batch, summed over its answer tokens."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Separate learning rates: each key is part of the names of the parameters that its rate applies to."""
    callbacks: Sequence[TrainerCallback] = ()
    bfloat16: bool = False
    """Compute matrix products in bfloat16, whatever the dtype of the weights."""
    compile: bool = False
    """Use torch.compile."""
    beside: Mapping[str, str] = field(default_factory=dict)
    """More text files for the model's folder: file name to contents."""


def train(training: Training, run: Run) -> None:
    """Train a model or its adapters. Continues from the last complete checkpoint, if there is one; a run that was
    interrupted and continued ends with the same weights and losses, bit for bit.

    Writes to the run directory: model/, the weights with the lowest validation loss; metrics.jsonl, the losses;
    left_out.json, the number of problems that did not fit the window of their rules; training_times.jsonl, the seconds
    of each call that reached the last step, and which steps it covered.

    Raises DivergedError if a loss or a gradient is not finite, RunError if a file cannot be written, and ModelError if
    the last checkpoint cannot be continued (see `undamaged`).
    """
    folder, sets = run.path / "checkpoints", training.sets
    last = distributed.from_main(lambda: undamaged(folder))
    step = int(last.name.rpartition("-")[2]) if last else 0
    run.rewrite("metrics", [row for row in run.read("metrics") if row["step"] <= step])
    run.write_json("left_out", {"train": sets.train.left_out, "valid": sets.valid.left_out})
    progress = TrainingProgress()
    trainer = _trainer(training, run, folder, progress)
    began = time.perf_counter()
    with progress.bar:
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    times = {"from_step": step, "to_step": training.config.max_steps, "seconds": time.perf_counter() - began}
    run.append("training_times", [{**times, "kept_step": trainer.state.best_global_step}])
    _save(trainer, run, training.beside)
    distributed.from_main(lambda: shutil.rmtree(folder))


def _trainer(training: Training, run: Run, folder: Path, progress: TrainingProgress) -> "AnswerTrainer":
    """The trainer, which keeps its checkpoints in `folder`."""
    arguments = _arguments(training, folder)
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # several GPUs in one process would split a tree, so only one is used
    kept = [KeepSteps(run, training.beside)] if training.config.keep_steps else []
    log_into(run)
    trainer = AnswerTrainer(
        training.answer_loss,
        training.rates,
        model=training.model,
        args=arguments,
        train_dataset=training.sets.train.examples,
        eval_dataset=training.sets.valid.examples,
        processing_class=training.tokenizer,
        data_collator=training.collate,
        callbacks=[MetricsFile(run), ValidateLastStep(), progress, *kept, *training.callbacks],
    )
    trainer.remove_callback(PrinterCallback)
    for parameter in training.model.parameters():
        if parameter.requires_grad:  # TRL rounds the adapters of a quantized model to bfloat16
            parameter.data = parameter.data.float()
    return trainer


def _arguments(training: Training, folder: Path) -> SFTConfig:
    config, model = training.config, training.model
    if config.warmup_steps >= config.max_steps:
        what = f"training.warmup_steps={config.warmup_steps} with training.max_steps={config.max_steps}"
        warnings.warn(f"{what}: the learning rate never reaches its full value", LabWarning, stacklevel=2)
    return SFTConfig(
        output_dir=str(folder),
        max_steps=config.max_steps,
        per_device_train_batch_size=config.micro_batch_size,
        per_device_eval_batch_size=config.micro_batch_size,
        gradient_accumulation_steps=config.passes(),
        learning_rate=config.learning_rate,
        lr_scheduler_type="constant_with_warmup" if config.schedule == "constant" else config.schedule,
        warmup_steps=config.warmup_steps,
        weight_decay=config.weight_decay,
        adam_beta1=config.betas[0],
        adam_beta2=config.betas[1],
        optim={"adamw": "adamw_torch_fused", "adamw_8bit": "adamw_8bit"}[config.optimizer],
        bf16=training.bfloat16 or model.dtype == torch.bfloat16,
        torch_compile=training.compile,
        use_cpu=model.device.type == "cpu",
        dataloader_pin_memory=False,  # some collators return tensors on the model's device
        ddp_find_unused_parameters=False,  # every trained weight is used in every pass
        gradient_checkpointing=getattr(config, "gradient_checkpointing", False),
        gradient_checkpointing_kwargs={"use_reentrant": False},
        max_length=None,
        completion_only_loss=False,  # the collator's labels already leave the prompt out
        dataset_kwargs={"skip_prepare_dataset": True},
        remove_unused_columns=False,
        train_sampling_strategy="sequential",  # the mixture is shuffled by construction
        eval_strategy="steps",
        eval_steps=config.evaluate_every,
        save_strategy="steps",
        save_steps=config.evaluate_every,
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        logging_steps=config.log_every,
        report_to=list(config.report_to),
        run_name=folder.parent.name,
        project=PROJECT,
        logging_nan_inf_filter=False,  # the filter would hide NaN behind the mean of earlier losses
        disable_tqdm=True,
        seed=training.seed,
        data_seed=training.seed,
    )


class AnswerTrainer(SFTTrainer):
    """TRL's trainer with a loss on answer tokens only."""

    def __init__(self, answer_loss: AnswerLoss, rates: Mapping[str, float], **arguments: Any) -> None:
        """See `Training`; `arguments` are those of SFTTrainer."""
        self.answer_loss, self.rates = answer_loss, rates
        super().__init__(**arguments)
        self.model_accepts_loss_kwargs = True  # so that answer tokens are counted over the whole step

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> torch.Tensor:
        """Mean negative log-likelihood over the answer tokens of the whole step (`num_items_in_batch` of them)."""
        total = self.answer_loss(model, inputs)
        if num_items_in_batch is None:
            return total / (inputs["shift_labels"] != IGNORED).sum()
        # The count includes all processes, but their gradients are averaged.
        return total * self.accelerator.num_processes / num_items_in_batch

    def training_step(self, *arguments: Any, **settings: Any) -> torch.Tensor:
        loss = super().training_step(*arguments, **settings)
        self._check_finite({"loss": loss.item()}, self.state.global_step + 1)
        return loss

    def log(self, logs: dict[str, float], *arguments: Any, **settings: Any) -> None:
        self._check_finite({name: logs[name] for name in _FINITE if name in logs}, self.state.global_step)
        super().log(logs, *arguments, **settings)

    def _check_finite(self, values: Mapping[str, float], step: int) -> None:
        """Raises DivergedError if a value is not finite, because no later step can repair that."""
        for name, value in values.items():
            if math.isfinite(value):
                continue
            last = last_checkpoint(Path(str(self.args.output_dir)))  # each was validated, with a finite loss
            rate = self._get_learning_rate()
            good = f"the last good checkpoint is {last}" if last else "there is no checkpoint yet"
            raise DivergedError(
                f"the training diverged: {_FINITE[name]} {value} at step {step}, learning rate {rate:g}; {good}; "
                "try a lower training.learning_rate or more training.warmup_steps"
            )

    def _save_checkpoint(self, *arguments: Any, **settings: Any) -> None:
        with _as_run_error(f"the checkpoint of step {self.state.global_step}", Path(str(self.args.output_dir))):
            super()._save_checkpoint(*arguments, **settings)

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        optimizer = super().create_optimizer(model)
        names = {id(parameter): name for name, parameter in self.model.named_parameters()}  # type: ignore[union-attr]
        for part, rate in self.rates.items():
            own = {which for which, name in names.items() if part in name}
            for group in optimizer.param_groups[:]:
                moved = [parameter for parameter in group["params"] if id(parameter) in own]
                if moved:
                    group["params"] = [parameter for parameter in group["params"] if id(parameter) not in own]
                    # what a swap adds is a bias or a slope, and biases do not decay
                    optimizer.add_param_group({**group, "params": moved, "lr": rate, "weight_decay": 0.0})
        return optimizer

    def evaluation_loop(self, dataloader: DataLoader, *arguments: Any, **settings: Any) -> EvalLoopOutput:
        """Mean negative log-likelihood over all answer tokens. Each counts once, however many processes there are.

        The base class averages over batches, and with several processes it repeats problems in the last batches.
        """
        problems: Any = self.eval_dataset
        model: Any = self.model.eval()  # type: ignore[union-attr]
        batches = list(BatchSampler(range(len(problems)), self.args.eval_batch_size, drop_last=False))
        mine, total, answers = distributed.share(batches), 0.0, 0
        for turn in range(-(-len(batches) // distributed.count())):
            # all processes compute a sharded model together, so a process that has no batch left repeats one
            batch = mine[turn] if turn < len(mine) else batches[0]
            inputs = self._prepare_inputs(self.data_collator([problems[index] for index in batch]))
            with torch.no_grad(), self.compute_loss_context_manager():
                found = self.answer_loss(model, inputs).item()
            if turn < len(mine):
                total, answers = total + found, answers + int((inputs["shift_labels"] != IGNORED).sum())
        totals, counts = zip(*distributed.gather((total, answers)), strict=True)
        metrics = {"eval_loss": sum(totals) / sum(counts)}
        return EvalLoopOutput(None, None, metrics, len(problems))  # type: ignore[arg-type]


_FINITE = {"loss": "loss", "grad_norm": "norm of the gradient", "eval_loss": "validation loss"}
"""The values that must stay finite, and their names in errors."""


def _save(trainer: AnswerTrainer, run: Run, beside: Mapping[str, str]) -> None:
    """Writes the model and the files beside it, and puts them in place of an earlier model in one step."""
    staged = run.path / ".model"
    distributed.from_main(lambda: shutil.rmtree(staged, ignore_errors=True))
    with _as_run_error("the trained model", run.path):
        trainer.save_model(str(staged))  # called in all processes, as each may hold a shard

    def put_in_place() -> None:
        (staged / TRAINING_ARGS_NAME).unlink()  # a pickle
        for name, text in beside.items():
            (staged / name).write_text(text)
        shutil.rmtree(run.model, ignore_errors=True)
        staged.rename(run.model)

    distributed.from_main(put_in_place)


@contextmanager
def _as_run_error(what: str, folder: Path) -> Iterator[None]:
    """Turns errors of the disk, for which each library has its own exception, into a RunError for the user."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        free = shutil.disk_usage(folder).free
        raise RunError(
            f"{folder}: {what} cannot be written ({in_one_line(error)}; {free / 1e6:,.0f} MB are free there); "
            "resume=true continues from the last checkpoint that was written"
        ) from error
