"""The sections that several configs share. Does not import torch."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from lab import distributed
from lab.config.loading import dump, renewed
from lab.errors import ConfigError, TaskError
from lab.numbers.sampling import Cell
from lab.numbers.tasks import EASY, HARD, KNOWN, TASKS, Task, task
from lab.runs import Run


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    SMOKE: ClassVar[tuple[str, ...]] = ()
    """The overrides that smoke=true stands for; they shorten a command's job to seconds."""


def wrong(keys: str, allowed: str) -> PydanticCustomError:
    """The error to raise if keys of a section are valid individually, but not together.

    Args:
        keys: dotted keys, separated by spaces. The error names the first one that was given on the command line, or the
            first of all.
        allowed: what would be allowed.
    """
    return PydanticCustomError("together", "{allowed}", {"keys": keys.split(), "allowed": allowed})


LONGEST = 1000
"""The largest number of digits in a number. Three such numbers are a few thousand tokens, about as many as attention
can handle."""


def _digit_counts(lengths: list[int]) -> list[int]:
    if any(not 1 <= length <= LONGEST for length in lengths) or len(set(lengths)) < len(lengths):
        raise ValueError(f"should be numbers of digits from 1 to {LONGEST}, none twice")
    return sorted(lengths)


DigitCounts: TypeAlias = Annotated[list[int], AfterValidator(_digit_counts)]
"""Numbers of digits, sorted."""

Rate: TypeAlias = Annotated[float, Field(gt=0, le=10)]
"""A learning rate. The upper bound only catches typos."""


def _below_one(betas: tuple[float, float]) -> tuple[float, float]:
    if not all(0 <= beta < 1 for beta in betas):
        raise ValueError("should be two numbers, each at least 0 and below 1")
    return betas


Betas: TypeAlias = Annotated[tuple[float, float], AfterValidator(_below_one)]


class ModelConfig(Section):
    name: str
    """smollm2-135m-instruct (embedded, from the package index), a local directory, or a name on the model hub."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: bfloat16 if the device supports it natively (CUDA from Ampere on, AMX, AVX512-BF16), float32 if not."""
    quantization: Literal["none", "nf4", "int8"] = "none"
    """How the frozen weights are stored (bitsandbytes); nf4 with an adapter is QLoRA."""
    device: Literal["auto", "cpu", "cuda"] = "auto"


TaskNames: TypeAlias = Literal["all"] | list[str]


def known(names: TaskNames, among: Mapping[str, Task]) -> TaskNames:
    """Returns the names. Raises ValueError unless each of them names a task in `among`, and none twice."""
    if names == "all":
        return names
    if not names or len(set(names)) < len(names):
        raise ValueError("should name at least one task, and none twice")
    for name in names:
        try:
            task(name, among)
        except TaskError as error:
            raise ValueError(str(error)) from None
    return names


Tasks: TypeAlias = Annotated[TaskNames, AfterValidator(lambda names: known(names, TASKS))]
"""Names of tasks in lab/numbers/tasks.py, or "all"."""


def chosen(names: TaskNames) -> list[Task]:
    return list(TASKS.values()) if names == "all" else [task(name, KNOWN) for name in names]


def check_no_products(tasks: Sequence[Task], key: str) -> None:
    """Raises ValueError if some of the tasks are products, whose answers may be more than one digit longer than the
    longest operand. `key` names the setting that counts places down from one above the longest operand."""
    products = [item.key for item in tasks if item.key.startswith("multiply")]
    if products:
        what = f"{key} counts down from one place more than the longest number has"
        raise ValueError(f"{what}, and products are longer: leave {', '.join(products)} out of data.tasks")


class Lengths(Section):
    """The smallest and the largest number of digits, both included. Hard tasks have up to 20 digits, easy ones up to
    100 (A.1.6)."""

    hard: tuple[int, int] = (1, 20)
    easy: tuple[int, int] = (1, 100)

    @field_validator("hard", "easy")
    @classmethod
    def _in_range(cls, bounds: tuple[int, int], info: ValidationInfo) -> tuple[int, int]:
        longest = {"hard": HARD, "easy": EASY}[info.field_name or ""].longest
        if not 1 <= bounds[0] <= bounds[1]:
            raise ValueError("should be [shortest, longest], from 1 digit up")
        if bounds[1] > longest:
            raise ValueError(f"should not go beyond {longest} digits")
        return bounds

    def of(self, item: Task) -> range:
        shortest, longest = self.hard if item.difficulty is HARD else self.easy
        return range(shortest, longest + 1)

    def tested(self, tasks: Tasks) -> list[Cell]:
        """The tasks and lengths that can be tested, in the order of `tasks`."""
        return [Cell(item, n) for item in chosen(tasks) for n in self.of(item) if n in item.tested_lengths]

    def check_tested(self, tasks: Tasks, lengths_key: str, tasks_key: str) -> None:
        """Raises an error that names both keys if none of the tasks is tested at any of these lengths."""
        if self.tested(tasks):
            return
        spans = {item.key: f"{min(item.tested_lengths)}-{max(item.tested_lengths)}" for item in chosen(tasks)}
        shown = ", ".join(f"{key} at {span}" for key, span in list(spans.items())[:3])
        more = f" and {len(spans) - 3} more" if len(spans) > 3 else ""
        what = f"{lengths_key} = {{hard: {list(self.hard)}, easy: {list(self.easy)}}} holds no length at which one of"
        raise wrong(f"{lengths_key} {tasks_key}", f"{what} {tasks_key} is tested: {shown}{more}")


Detail: TypeAlias = Literal["full", "values", "state", "bare", "results", "answer"]
"""What the trace of a rule shows (lab/rules/traces/tracing.py)."""


class RulesConfig(Section):
    """Rule-following CoT (Number Cookbook, section 4): which rules to follow, and how many tokens this may take."""

    unit: int | None = Field(default=None, ge=1, le=5)
    """How many digits one step of a rule handles; by default, each rule has its own number."""
    detail: Detail = "full"
    """How much of the execution of the rule a response shows. full: every statement and its effect. values: only what
    each statement looked up and assigned. state: one line for each iteration of a loop, with the variables that
    changed. bare: the same values without names, and without what the rule's text already says. results: only those
    values of bare that were computed, not those that were looked up in the numbers. answer: only the answer."""
    folder: Path | None = None
    """A folder of rules that replace the lab's own: files named <task>.py, such as add_integer.py
    (lab/rules/rulebook.py)."""
    window: int = Field(default=2000, ge=1)
    """Maximum number of tokens in prompt and response together. Problems that need more are left out and counted."""

    def check_that_followed(self, followed: bool, key: str) -> None:
        """Raises ValueError if a detail is set although no rule is followed; then there is no trace to score."""
        if self.detail != "full" and not followed:
            raise ValueError(f"rules.detail={self.detail} needs {key}=rule_following: without it there is no trace")


class Variation(Section):
    """Makes training problems of addition and subtraction harder than those with uniform digits. Problems of other
    tasks do not change."""

    carries: float = Field(default=0, ge=0, le=1)
    """Share of problems in which many digits of the second number are 9 minus the digit of the first; the number of
    such digits is drawn for each problem."""
    short_second: float = Field(default=0, ge=0, le=1)
    """Share of problems whose second number may have any length from 1 digit up; it is then never 0. In the others, it
    has at least half as many digits as the first."""
    nines: float = Field(default=0, ge=0, le=1)
    """Share of problems whose first number is all nines, so that a carry runs through all of it."""


class TrainingConfig(Section):
    """Settings that the training of adapters and of whole models share."""

    max_steps: int = Field(default=800, ge=1)
    """Number of optimizer steps."""
    batch_size: int = Field(default=64, ge=1)
    """Number of problems in an optimizer step."""
    micro_batch_size: int = Field(default=32, ge=1)
    """Number of problems in a forward pass; gradients are accumulated until the batch is complete."""
    learning_rate: Rate = 2e-5
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup_steps: int = Field(default=100, ge=0)
    weight_decay: float = Field(default=0.01, ge=0)
    betas: Betas = (0.9, 0.999)
    """Adam's decay rates of the running means of the gradients and of their squares."""
    optimizer: Literal["adamw", "adamw_8bit"] = "adamw"
    log_every: int = Field(default=10, ge=1)
    """Number of steps between two records of the training loss."""
    evaluate_every: int = Field(default=400, ge=1)
    """Number of steps between two validations. Each validation also writes a checkpoint; the model with the lowest
    validation loss is kept."""
    valid_problems: int = Field(default=1024, ge=1)
    keep_steps: bool = False
    """Keep the model of each validation in steps/<step>, to study how it changes during training. Every command opens
    such a folder like a run."""
    report_to: list[Literal["tensorboard", "trackio", "wandb"]] = []
    """Where losses are logged in addition to metrics.jsonl (lab/tune/loggers.py). tensorboard writes into the run
    directory; trackio and wandb use the project number-lab."""

    @model_validator(mode="after")
    def _whole_parts(self) -> Self:
        if self.batch_size % self.micro_batch_size:
            what = f"micro_batch_size={self.micro_batch_size} should divide batch_size={self.batch_size}"
            raise wrong("micro_batch_size batch_size", what)
        if self.evaluate_every % self.log_every:
            what = f"evaluate_every={self.evaluate_every} should be a multiple of log_every={self.log_every}"
            raise wrong("evaluate_every log_every", f"{what}, so that resumed runs log the same means")
        return self

    def passes(self) -> int:
        """Number of forward passes of a step in each process. Raises ConfigError if a step cannot be divided equally
        among the processes."""
        together = self.micro_batch_size * distributed.count()
        if self.batch_size % together:
            what = f"training.batch_size={self.batch_size} is not a multiple of {distributed.count()} processes x"
            counted = "it counts the problems of a step over all processes"
            raise ConfigError(f"{what} training.micro_batch_size={self.micro_batch_size}; {counted}")
        return self.batch_size // together


def _a_folder_name(name: str) -> str:
    if not name or name in (".", "..") or set(name) & set("/\\\0"):
        raise ValueError("should be the name of a folder")
    return name


FolderName: TypeAlias = Annotated[str, AfterValidator(_a_folder_name)]


class RunConfig(Section):
    """The keys that the configs of all commands share, if they describe a single run."""

    COMMAND: ClassVar[str]
    """The command that this config belongs to; its runs record it."""
    FREE: ClassVar[tuple[str, ...]] = ()
    """Dotted keys that may differ from the run that is resumed, because no result depends on them, except by
    rounding."""

    name: FolderName
    """The run directory is <output>/<name>."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of problems, initial weights, dropout and sampling."""
    output: Path = Path("checkpoints")
    """The folder of run directories."""
    resume: bool = False
    """Continue a run that was interrupted."""
    overwrite: bool = False
    """Replace an existing run of the same name."""

    @property
    def path(self) -> Path:
        return self.output / self.name

    def check_run(self) -> None:
        """Raises `RunError` if `open_run` would, or if the run to resume is damaged. Call it before loading a model."""
        taken_up = Run.check(self.path, self.resume, self.overwrite) and self.resume
        Run.check_writable(self.path if taken_up else self.path.parent)
        if taken_up:
            self.run_status()
            Run(self.path).check_records()

    def open_run(self) -> Run:
        """The run directory of this config, new or resumed; see `Run.open`, which raises `RunError`.

        A run of an earlier version gets the defaults of keys that were added later.
        """
        renew = partial(renewed, type(self))
        run = Run.open(self.path, dump(self), self.resume, self.overwrite, self.FREE, renew)
        run.record_environment(command=self.COMMAND)
        return run

    def run_status(self) -> str | None:
        """The status of the run in the directory of this config, or None if there is no run. Changes nothing.

        Raises `RunError` if the directory holds something else, such as a run of another config.
        """
        if not Run.check(self.path, resume=True):
            return None
        run = Run(self.path)
        run.check_config(dump(self), self.FREE, partial(renewed, type(self)))
        return run.status
