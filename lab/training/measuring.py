"""Measures a model during training, for curves over the number of samples that it has seen."""

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from lab.runs import Run


class MeasureWhileTraining(TrainerCallback):
    """At each validation, appends the rows of `measure()` to curve.jsonl, with the step and the samples seen."""

    def __init__(self, run: Run, measure: Callable[[], list[dict[str, Any]]], batch_size: int) -> None:
        self.run, self.measure, self.batch_size = run, measure, batch_size

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.run.rewrite("curve", [row for row in self.run.read("curve") if row["step"] <= state.global_step])

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        seen = {"step": state.global_step, "samples": state.global_step * self.batch_size}
        self.run.append("curve", [{**seen, **row} for row in self.measure()])
