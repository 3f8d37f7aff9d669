"""Trains groups of small adders side by side, and only the better ones to the end.

Calling a model of thirty numbers takes as long as its computation, so all seeds of a group are one batched model: their
numbers are rows of a matrix, `vmap` runs the model over the rows, and AdamW is a few lines over the matrix. After some
validations only the better rows go on. Everything is a function of (config, step): a group that was cut short goes on
from its last validation and ends with the same bytes.

Shapes: S seeds, P parameters of one model, B problems, T tokens, A digits of an answer, V digits.
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch.func import vmap
from torch.nn.functional import cross_entropy

from lab.adders.config import AdderConfig, AdderTrainingConfig
from lab.adders.initial import draw
from lab.adders.model import DeclaredModel
from lab.adders.rows import batch
from lab.drawing.tables import counted
from lab.models.free_memory import check_free, free_memory, kept_by
from lab.progress import progress_bar
from lab.runs import Run

LOWEST_RATE = 0.01
"""The end of the cosine schedule, as a share of the learning rate."""
ADAM_EPSILON = 1e-8
STATE = "training_state"
MEASURED_AT_ONCE = 500
"""Problems per forward pass of a validation: their logits for all seeds should fit into memory."""
PER_SEED = ("rows_SP", "mean_SP", "square_SP")


class Batch(NamedTuple):
    """Rows (B, T) and their answers (B, A)."""

    ids: torch.Tensor
    answers: torch.Tensor

    @classmethod
    def of(cls, rows: tuple[np.ndarray, np.ndarray]) -> Self:
        return cls(*map(torch.from_numpy, rows))


class BatchedModel:
    """One architecture with many sets of numbers, each a row of a matrix (S, P)."""

    def __init__(self, config: AdderConfig) -> None:
        self.adder = config.untrained
        self.model = DeclaredModel(self.adder)
        self.names = list(config.numbers)
        self.shapes = [torch.Size(initial.shape) for initial in config.numbers.values()]
        self.sizes = [shape.numel() for shape in self.shapes]

    @property
    def parameters(self) -> int:
        return sum(self.sizes)

    def tables(self, row_P: torch.Tensor) -> dict[str, torch.Tensor]:
        """The tables by name."""
        parts = zip(self.names, row_P.split(self.sizes), self.shapes, strict=True)
        return {name: part.view(shape) for name, part, shape in parts}

    def logits(self, rows_SP: torch.Tensor, ids_BT: torch.Tensor) -> torch.Tensor:
        """The logits of the answers, (B, A, V, S)."""

        def one(row_P: torch.Tensor) -> torch.Tensor:
            return self.model(ids_BT, len(self.adder.answer), self.tables(row_P))

        return vmap(one, out_dims=-1)(rows_SP)

    def losses(self, logits_BAVS: torch.Tensor, answers_BA: torch.Tensor) -> torch.Tensor:
        """The mean cross-entropy per digit, for each seed (S,)."""
        answers_NS = answers_BA.flatten()[:, None].expand(-1, logits_BAVS.shape[-1])
        return cross_entropy(logits_BAVS.flatten(0, 1), answers_NS, reduction="none").mean(0)

    def gradients(self, rows_SP: torch.Tensor, problems: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses (S,) and the gradient of each with respect to its own row (S, P)."""
        rows_SP = rows_SP.detach().requires_grad_()
        losses_S = self.losses(self.logits(rows_SP, problems.ids), problems.answers)
        (gradients_SP,) = torch.autograd.grad(losses_S.sum(), rows_SP)
        return losses_S.detach(), gradients_SP

    @torch.no_grad()
    def measure(self, rows_SP: torch.Tensor, problems: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses (S,) and the share of sums whose every digit is right (S,).

        A sum that is right digit by digit, each after the true ones, is also what greedy generation writes.
        """
        losses_S, right_S = torch.zeros(len(rows_SP)), torch.zeros(len(rows_SP))
        for ids_BT, answers_BA in zip(*(part.split(MEASURED_AT_ONCE) for part in problems), strict=True):
            logits_BAVS = self.logits(rows_SP, ids_BT)
            losses_S += len(ids_BT) * self.losses(logits_BAVS, answers_BA)
            right_S += (logits_BAVS.argmax(-2) == answers_BA[..., None]).all(1).sum(0)
        return losses_S / len(problems.ids), right_S / len(problems.ids)


def initial_rows(config: AdderConfig) -> torch.Tensor:
    """The initial numbers (S, P). Those of each seed are drawn separately, so they do not depend on the size of the
    group."""
    seeds = (config.seed * 1_000_003 + member for member in range(config.group.seeds))
    return torch.stack(
        [torch.cat([table.flatten() for table in draw(config.numbers, seed).values()]) for seed in seeds]
    )


class Group:
    """The seeds that are still trained, their optimizer, and the best weights so far."""

    def __init__(self, rows_SP: torch.Tensor) -> None:
        self.step = 0
        self.members = list(range(len(rows_SP)))
        self.rows_SP = rows_SP
        self.mean_SP, self.square_SP = torch.zeros_like(rows_SP), torch.zeros_like(rows_SP)
        self.best: dict[str, Any] = {"accuracy": -1.0, "loss": math.inf}
        self.best_P = rows_SP[0]

    def update(self, gradients_SP: torch.Tensor, config: AdderTrainingConfig) -> None:
        """One step of AdamW. The gradient of each seed is clipped separately."""
        norms_S1 = gradients_SP.norm(dim=1, keepdim=True)
        gradients_SP = torch.nan_to_num(gradients_SP) * (config.clip / (norms_S1 + 1e-12)).clamp(max=1)
        rate = rate_at(self.step, config)
        self.step += 1
        near, far = config.betas
        self.mean_SP = torch.lerp(gradients_SP, self.mean_SP, near)
        self.square_SP = torch.lerp(gradients_SP**2, self.square_SP, far)
        mean_SP = self.mean_SP / (1 - near**self.step)
        deviation_SP = (self.square_SP / (1 - far**self.step)).sqrt() + ADAM_EPSILON
        self.rows_SP = self.rows_SP * (1 - rate * config.weight_decay) - rate * mean_SP / deviation_SP

    def keep_best(self, losses_S: torch.Tensor, accuracies_S: torch.Tensor) -> None:
        """Keeps the row with the most right answers so far; if several have as many, the one with the lowest loss."""
        for place, (accuracy, loss) in enumerate(zip(accuracies_S.tolist(), losses_S.tolist(), strict=True)):
            if (accuracy, -loss) > (self.best["accuracy"], -self.best["loss"]):
                self.best = {"accuracy": accuracy, "loss": loss, "seed": self.members[place], "step": self.step}
                self.best_P = self.rows_SP[place]

    def halve(self, losses_S: torch.Tensor, count: int) -> None:
        """Keeps only the `count` seeds with the lowest loss, in their old order. A loss that is nan counts as the
        highest."""
        order = torch.nan_to_num(losses_S, nan=math.inf).argsort(stable=True)
        places = sorted(order[:count].tolist())
        self.members = [self.members[place] for place in places]
        for name in PER_SEED:
            setattr(self, name, getattr(self, name)[places])

    def state(self) -> dict[str, Any]:
        """The state as JSON, which keeps every float32 unchanged."""
        matrices = {name: getattr(self, name).tolist() for name in (*PER_SEED, "best_P")}
        return {"step": self.step, "members": self.members, "best": self.best, **matrices}

    def restore(self, state: dict[str, Any]) -> None:
        self.step, self.members, self.best = state["step"], state["members"], state["best"]
        for name in (*PER_SEED, "best_P"):
            setattr(self, name, torch.tensor(state[name]))


def rate_at(step: int, config: AdderTrainingConfig) -> float:
    """The learning rate at a step; steps count from 0."""
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, config.max_steps - config.warmup_steps)
    return config.learning_rate * (LOWEST_RATE + (1 - LOWEST_RATE) * (1 + math.cos(math.pi * done)) / 2)


def complements_at(step: int, config: AdderTrainingConfig) -> float:
    """The largest rate of changed digits at a step (`rows.batch`)."""
    return config.complements * max(0.0, 1 - step / (config.complements_end * config.max_steps))


def train_group(config: AdderConfig, run: Run, batched: BatchedModel) -> Group:
    """Trains a group of seeds, or goes on with it. Returns the group, whose best weights are `best_P`.

    Each validation writes a line of metrics.jsonl: losses and accuracies of the seeds that are left, in the order of
    `seeds`.

    Args:
        config: the model, the group and the training.
        run: the run directory, which also keeps the state from which an interrupted training goes on.
        batched: the model; another class may compute the same gradients in another way
            (experiments/plain-adder/run.py).
    """
    training = config.training
    group = Group(initial_rows(config))
    if (run.path / f"{STATE}.json").exists():
        group.restore(run.read_json(STATE))
    run.rewrite("metrics", [record for record in run.read("metrics") if record["step"] <= group.step])
    valid = Batch.of(batch(batched.adder, "valid", config.seed, 0, training.valid_problems))
    halvings = dict(config.group.halvings)
    with progress_bar() as bar:
        item = bar.add_task("training", total=training.max_steps, completed=group.step, note="")
        while group.step < training.max_steps and group.best["accuracy"] < training.enough:
            complements = complements_at(group.step, training)
            drawn = batch(batched.adder, "train", config.seed, group.step, training.batch_size, complements)
            problems = Batch.of(drawn)
            _, gradients_SP = batched.gradients(group.rows_SP, problems)
            group.update(gradients_SP, training)
            bar.update(item, completed=group.step)
            if group.step % training.evaluate_every and group.step < training.max_steps:
                continue
            losses_S, accuracies_S = batched.measure(group.rows_SP, valid)
            group.keep_best(losses_S, accuracies_S)
            run.append("metrics", [record(group, losses_S, accuracies_S)])
            if group.step in halvings:
                group.halve(losses_S, halvings[group.step])
            run.write_json(STATE, group.state())
            bar.update(item, note=f"best {group.best['accuracy']:.2%}, loss {losses_S.min():.4f}")
    return group


_SAMPLE = 4
"""Problems whose forward pass is measured, to estimate the memory of a whole batch."""


def check_memory(config: AdderConfig, batched: BatchedModel) -> None:
    """Raises ModelError, in one line, if a step of the whole group needs more memory than is free."""
    size, seeds = config.training.batch_size, config.group.seeds
    problems = Batch.of(batch(batched.adder, "train", config.seed, 0, _SAMPLE))
    rows_SP = initial_rows(config).requires_grad_()
    kept = kept_by(lambda: batched.losses(batched.logits(rows_SP, problems.ids), problems.answers).sum(), [rows_SP])
    free, a_problem = free_memory(torch.device("cpu")), kept / _SAMPLE
    what = f"a training step ({counted(size, 'problem')} for each of {counted(seeds, 'seed')})"
    advice = f"use training.batch_size={max(1, int(free / a_problem / 2))} or less, or fewer group.seeds"
    check_free(a_problem * size, free, what, lambda: advice)


def record(group: Group, losses_S: torch.Tensor, accuracies_S: torch.Tensor) -> dict[str, Any]:
    """The line of metrics.jsonl for a validation; None for a figure that is not finite."""
    losses, accuracies = (
        [round(value, 6) if math.isfinite(value) else None for value in values_S.tolist()]
        for values_S in (losses_S, accuracies_S)
    )
    return {"step": group.step, "seeds": group.members, "valid_loss": losses, "valid_accuracy": accuracies}
