"""What a config of `lab.cost` may say: two models and the problems that both are given. No torch."""

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
    """The model that follows rules, named likewise; it may be the same one."""
    tasks: Tasks = "all"
    """Names such as add_integer or max_hard_float; all: the 53 of lab/numbers/tasks.py."""
    lengths: Lengths = Lengths()
    """Lengths to test at; those that a task is never tested at are passed over."""
    problems_per_length: int = Field(default=4, ge=1)
    """Test problems of each task at each length (fewer where there are fewer)."""
    rules: RulesConfig = RulesConfig()
    """Which rules are followed; problems whose rule does not fit the window are left out for both models."""
    batch_size: int = Field(default=128, ge=1)
    """Of every variant but the one at equal memory."""
    speculation: int = Field(default=16, ge=1)
    """Tokens drafted for a request and forward pass at most, in the variant that has drafts."""
    plain: bool = True
    """Measure the loop over `generate` of transformers too: many times slower, and what others' figures stand on."""

    @property
    def cells(self) -> list[Cell]:
        return self.lengths.tested(self.tasks)

    @model_validator(mode="after")
    def _on_one_device(self) -> Self:
        if self.direct.device != self.rule_following.device:
            raise ValueError("direct.device should be rule_following.device: only there can seconds be compared")
        return self

    @model_validator(mode="after")
    def _something_to_measure(self) -> Self:
        self.lengths.check_tested(self.tasks, "lengths", "tasks")
        return self
