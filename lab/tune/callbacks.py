"""Reports on a training: writes losses and measurements to the run directory, and shows progress on the terminal."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from transformers import TrainerCallback

from lab.progress import progress_bar
from lab.runs import Record, Run

_RECORDED = {"loss": "loss", "grad_norm": "grad_norm", "learning_rate": "learning_rate", "eval_loss": "valid_loss"}


class MetricsFile(TrainerCallback):
    """Writes a line to metrics.jsonl for each logged step. Times are left out, so that a resumed run ends with the same
    file, byte for byte."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def on_log(self, args, state, control, logs: Any = None, **kwargs: Any) -> None:
        record = {name: logs[key] for key, name in _RECORDED.items() if key in logs}
        if record and state.is_world_process_zero:
            self.run.append("metrics", [{"step": state.global_step, **record}])


class ValidateLastStep(TrainerCallback):
    """Validates after the last step, even if it is not a multiple of evaluate_every."""

    def on_step_end(self, args, state, control, **kwargs: Any) -> None:
        control.should_evaluate |= state.global_step >= state.max_steps


class TrainingProgress(TrainerCallback):
    """A progress bar over the steps, with the latest losses beside it. The validation loss, which is measured rarely,
    is shown with its step. The caller shows the bar."""

    def __init__(self) -> None:
        self.bar = progress_bar()
        self.losses: dict[str, str] = {}

    def on_train_begin(self, args, state, control, **kwargs: Any) -> None:
        self.item = self.bar.add_task("training", total=state.max_steps, completed=state.global_step, note="")

    def on_step_end(self, args, state, control, **kwargs: Any) -> None:
        self.bar.update(self.item, completed=state.global_step)

    def on_log(self, args, state, control, logs: Any = None, **kwargs: Any) -> None:
        if "loss" in logs:
            self.losses["loss"] = f"loss {logs['loss']:.3f}"
        if "eval_loss" in logs:
            self.losses["valid"] = f"valid loss {logs['eval_loss']:.3f} at {state.global_step:,}"
        self.bar.update(self.item, note=", ".join(self.losses.values()))


class Point(Protocol):
    def to_json(self) -> Record: ...


Measure: TypeAlias = Callable[[int, int], Sequence[Point]]
"""Called as `measure(steps, problems)`: measures the model that is being trained, after that many optimizer steps and
problems. Returns points to append to curve.jsonl."""


class MeasureWhileTraining(TrainerCallback):
    """At each validation, measures the model and appends the points to curve.jsonl.

    If a run is resumed, points after its checkpoint are removed first, because they are measured again.
    """

    def __init__(self, run: Run, measure: Measure, batch_size: int) -> None:
        """`batch_size`: problems in an optimizer step."""
        self.run, self.measure, self.batch_size = run, measure, batch_size

    def on_train_begin(self, args, state, control, **kwargs: Any) -> None:
        self.run.rewrite("curve", [row for row in self.run.read("curve") if row["step"] <= state.global_step])

    def on_evaluate(self, args, state, control, **kwargs: Any) -> None:
        points = self.measure(state.global_step, state.global_step * self.batch_size)
        self.run.append("curve", [point.to_json() for point in points])


class KeepSteps(TrainerCallback):
    """At each validation, saves the model and the run's config in the folder steps/<step>, which opens like a run."""

    def __init__(self, run: Run, beside: Mapping[str, str]) -> None:
        """`beside`: further text files for the model's folder, by name."""
        self.folder, self.config, self.beside = run.path / "steps", run.config, beside

    def on_evaluate(self, args, state, control, model: Any = None, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        folder = self.folder / f"{state.global_step:07}"
        kept = getattr(model, "_orig_mod", model)  # torch.compile wraps the model
        kept.save_pretrained(folder / "model")
        kwargs["processing_class"].save_pretrained(folder / "model")
        for name, text in self.beside.items():
            (folder / "model" / name).write_text(text)
        (folder / "config.yaml").write_text(self.config)
