"""The config of `lab.cost`: two models, and the problems that both answer. Does not import torch."""

from typing import Self

from pydantic import Field, model_validator

from lab.config.schema import Lengths, ModelConfig, RulesConfig, RunConfig, Tasks
from lab.numbers.sampling import Cell


class CostConfig(RunConfig):
    COMMAND = "cost"
    SMOKE = ("problems_per_length=1",)

    direct: ModelConfig
    """The model that answers directly; its name may also be a run directory or a folder of adapters (PEFT)."""
    rule_following: ModelConfig
    """The model that follows rules, named in the same way; it may be the same model."""
    tasks: Tasks = "all"
    """Names such as add_integer or max_hard_float; all: the 53 of lab/numbers/tasks.py."""
    lengths: Lengths = Lengths()
    """Lengths to test at. A task skips lengths at which it is never tested."""
    problems_per_length: int = Field(default=4, ge=1)
    """Number of test problems of each task at each length; if there are fewer, all of them are used."""
    rules: RulesConfig = RulesConfig()
    """Which rules the model follows; problems whose rule does not fit the window are left out for both models."""
    batch_size: int = Field(default=128, ge=1)
    """Number of problems answered together, in all variants except the one with equal memory."""
    plain: bool = True
    """Also measure the plain loop over `generate` of transformers. It is many times slower, but it is what published
    figures are based on."""

    @property
    def cells(self) -> list[Cell]:
        return self.lengths.tested(self.tasks)

    @model_validator(mode="after")
    def _on_one_device(self) -> Self:
        if self.direct.device != self.rule_following.device:
            raise ValueError(
                "direct.device should equal rule_following.device: times can only be compared on one device"
            )
        return self

    @model_validator(mode="after")
    def _something_to_measure(self) -> Self:
        self.lengths.check_tested(self.tasks, "lengths", "tasks")
        return self
