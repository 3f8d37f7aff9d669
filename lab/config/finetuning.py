"""What a config of `lab.finetune` may say. No torch."""

from typing import Literal, Self

from pydantic import Field, model_validator

from lab.config.schema import Lengths, ModelConfig, RulesConfig, RunConfig, Section, Tasks, TrainingConfig, chosen
from lab.numbers.sampling import Cell


class LoraConfig(Section):
    """Low-rank adapters (Hu et al. 2022) on the linear layers."""

    kind: Literal["lora"] = "lora"
    rank: int = Field(default=128, ge=1)
    alpha: float = Field(default=32, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: list[str] = Field(default=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])


class DataConfig(Section):
    tasks: Tasks = "all"
    """Names such as add_integer or max_hard_float; all: the 53 of lab/numbers/tasks.py."""
    lengths: Lengths = Lengths(hard=(1, 8), easy=(1, 20))
    """Lengths to train on; the default is the paper's, the ranges S and M."""
    style: Literal["direct", "rule_following"] = "direct"
    """The answer alone, or a rule in the prompt and its execution before the answer (section 4); also in the test."""
    rules: RulesConfig = RulesConfig()
    """Of the style rule_following."""

    @property
    def rules_followed(self) -> RulesConfig | None:
        return self.rules if self.style == "rule_following" else None

    @property
    def cells(self) -> list[Cell]:
        return [Cell(item, length) for item in chosen(self.tasks) for length in self.lengths.of(item)]


class FinetuningConfig(TrainingConfig):
    share_prefixes: bool = True
    """Compute the prompt tokens that problems of a batch have in common once (lab/training/collation.py)."""


class EvaluationConfig(Section):
    lengths: Lengths = Lengths()
    """Lengths to test at, inside and outside of training; those that a task is never tested at are passed over."""
    problems_per_range: int = Field(default=100, ge=1)
    """Test problems of each task in each of its ranges S, M, L, XL, spread over the lengths (fewer where there are
    fewer)."""
    batch_size: int = Field(default=128, ge=1)
    speculation: int = Field(default=0, ge=0)
    """Tokens that are drafted for a problem and forward pass at most (lab/inference/speculation.py); pays where long
    responses repeat what stands before them, as those of rules do."""


class FinetuneConfig(RunConfig):
    model: ModelConfig
    adapter: LoraConfig = LoraConfig()
    data: DataConfig = DataConfig()
    training: FinetuningConfig = FinetuningConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _something_to_measure(self) -> Self:
        if not self.data.lengths.tested(self.data.tasks):
            raise ValueError("data.lengths holds no length that is validated; numbers of 1 or 2 digits only train")
        if not self.test_cells:
            raise ValueError("evaluation.lengths holds no length at which one of data.tasks is tested")
        return self

    @property
    def test_cells(self) -> list[Cell]:
        return self.evaluation.lengths.tested(self.data.tasks)
