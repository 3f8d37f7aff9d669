"""The config of `lab.pretrain`: the notation, the model, its training and its test. Does not import torch."""

from collections.abc import Iterable
from itertools import product
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from lab.config.notation import FormatConfig, TokenizerConfig
from lab.config.parts import Parts, Uses, check_parts
from lab.config.schema import (
    LONGEST,
    DigitCounts,
    Rate,
    RulesConfig,
    RunConfig,
    Section,
    TaskNames,
    TrainingConfig,
    Variation,
    chosen,
    known,
    wrong,
)
from lab.numbers.additions import VARIED
from lab.numbers.sampling import Cell
from lab.numbers.tasks import KNOWN, LONGEST_SHORT_FACTOR, SUM, Task, several, shorter_second

SIZES: dict[str, tuple[int, int, int, int, int]] = {
    "0.2M": (1, 128, 344, 4, 4),
    "0.4M": (2, 128, 344, 4, 4),
    "1.3M": (2, 224, 784, 8, 2),
    "3.2M": (4, 256, 688, 4, 4),
    "0.1B": (8, 1024, 3584, 8, 2),
    "0.9B": (16, 2048, 7168, 16, 4),
    "3B": (24, 3072, 10752, 24, 6),
}
"""Layers, width, width of the feed-forward, heads, and key-value heads of the paper. The last three sizes are those of
its Table 11; 1.3M is the 2-layer model of A.4.3, whose width the paper does not give."""


class ScratchConfig(Section):
    """A decoder of the Llama architecture with weights drawn at random."""

    size: str = "0.4M"
    """0.2M, 0.4M, 1.3M, 3.2M, 0.1B, 0.9B or 3B: the number of parameters without embeddings, with the paper's
    key-value heads. With key_value_heads=as_heads, 1.3M and the last three have 11 to 12 % more."""
    layers: int | None = Field(default=None, ge=1)
    """Number of layers; that of the size if not given."""
    key_value_heads: Literal["as_heads", "paper"] = "as_heads"
    """paper: several heads share a key-value head, as in Table 11. as_heads: each head has its own, as some probing
    instruments need."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """The dtype of matrix products in training; auto is bfloat16 if the device supports it natively. The weights and
    the final test are always in float32."""
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @field_validator("size")
    @classmethod
    def _known(cls, size: str) -> str:
        if size not in SIZES:
            raise ValueError(f"should be one of {', '.join(SIZES)}")
        return size


_PRODUCT = "multiply_easy_integer"


class PretrainingDataConfig(Section):
    tasks: Annotated[TaskNames, AfterValidator(lambda names: known(names, KNOWN))] = Field(default=["add_integer"])
    """Names of tasks in lab/numbers/tasks.py, or "all" for the 53 of NUPA; sum_integers is one more."""
    lengths: tuple[int, int] = (1, 8)
    """The smallest and the largest number of digits in training problems, both included."""
    factor_digits: int = Field(default=LONGEST_SHORT_FACTOR, ge=1, le=LONGEST_SHORT_FACTOR)
    """The largest number of digits in the second factor of multiply_easy_integer; 1 gives products by one digit."""
    operands: tuple[int, int] = (2, 10)
    """The smallest and the largest number of terms of sum_integers in training. In the test, a sum has as many terms as
    digits."""
    style: Literal["notation", "rule_following", "running_totals"] = "notation"
    """What follows the question. notation: only the answer (lab/text/notation.py). rule_following: the execution of the
    task's rule, then the answer (lab/text/rule_notation.py); format.reverse must be none or integer. running_totals:
    partial products and totals, then the answer, all with the ones digit first (lab/text/running_totals.py); set
    format.reverse=integer. With rule_following and running_totals, the other keys of format and tokenizer have no
    effect."""
    rules: RulesConfig = RulesConfig()
    """With style=rule_following: which rules to follow, and in what detail."""
    packing: int = Field(default=1, ge=1)
    """Number of problems in one sequence; later ones can attend to earlier ones."""
    variation: Variation = Variation()
    """Without one of its tasks among `tasks`, only short_second can be set; it then has no effect."""
    curriculum: int = Field(default=1, ge=1)
    """Number of equally long stages in which the maximum length grows; 1 trains on all lengths from the first step."""

    @field_validator("lengths")
    @classmethod
    def _in_order(cls, bounds: tuple[int, int]) -> tuple[int, int]:
        if not 1 <= bounds[0] <= bounds[1] <= LONGEST:
            raise ValueError(f"should be [shortest, longest], from 1 digit to {LONGEST}")
        return bounds

    @model_validator(mode="after")
    def _variation_of_additions(self) -> Self:
        # other tasks ignore short_second, and lab.pretrain says so: configs which set it can be used for them, too
        hard = self.variation.model_copy(update={"short_second": 0.0}) != Variation()
        if hard and not {task.key for task in chosen(self.tasks)} & {*VARIED}:
            raise ValueError(f"variation needs one of {', '.join(VARIED)} among tasks: add one, or leave variation out")
        return self

    @model_validator(mode="after")
    def _factor_of_products(self) -> Self:
        short = self.factor_digits < LONGEST_SHORT_FACTOR
        if short and _PRODUCT not in [task.key for task in chosen(self.tasks)]:
            raise ValueError(f"factor_digits needs {_PRODUCT} among data.tasks")
        return self

    @model_validator(mode="after")
    def _operands_of_sums(self) -> Self:
        if not 2 <= self.operands[0] <= self.operands[1]:
            raise ValueError(f"operands={list(self.operands)} should be [fewest, most], from 2 up")
        sums = SUM in chosen(self.tasks)
        if sums and self.style != "running_totals":
            raise ValueError(f"{SUM.key} needs style=running_totals")
        if not sums and self.operands != type(self).model_fields["operands"].default:
            raise ValueError(f"operands needs {SUM.key} among data.tasks")
        return self

    @model_validator(mode="after")
    def _rules_that_are_followed(self) -> Self:
        self.rules.check_that_followed(self.style == "rule_following", "style")
        return self

    @property
    def trained(self) -> range:
        return range(self.lengths[0], self.lengths[1] + 1)

    @property
    def cells(self) -> list[Cell]:
        """The tasks and lengths of training."""
        return [self._cell(item, n, self.operands) for item, n in product(chosen(self.tasks), self.trained)]

    def tested_cells(self, lengths: Iterable[int]) -> list[Cell]:
        """The tasks at the lengths of a test, where sums of integers have as many terms as digits."""
        return [self._cell(item, n, (max(2, n), max(2, n))) for item, n in product(chosen(self.tasks), lengths)]

    def _cell(self, item: Task, length: int, operands: tuple[int, int]) -> Cell:
        if item is SUM:
            return Cell(item, length, several(*operands))
        short = item.key == _PRODUCT and self.factor_digits < LONGEST_SHORT_FACTOR
        return Cell(item, length, shorter_second(self.factor_digits) if short else None)


class LengthCurvesConfig(Section):
    """What is measured at every length."""

    lengths: DigitCounts = Field(default=list(range(1, 21)))
    """Numbers of digits to test at, inside and outside the training lengths."""
    problems_per_length: int = Field(default=100, ge=1)
    batch_size: int = Field(default=200, ge=1)
    while_training: DigitCounts = Field(default=[])
    """Lengths that are also measured at each validation, to plot scores against the number of samples seen."""
    problems_while_training: int = Field(default=50, ge=1)


class PretrainTrainingConfig(TrainingConfig):
    learning_rate: Rate = 1e-3
    micro_batch_size: int = Field(default=64, ge=1)
    compile: bool = False
    """Train with torch.compile. The first steps take longer. A CPU needs a C++ compiler, and its attention is then not
    fused."""


class PretrainConfig(RunConfig):
    COMMAND = "pretrain"
    FREE = ("evaluation.batch_size",)
    SMOKE = (
        "model.size=0.2M",
        "training.max_steps=2",
        "training.warmup_steps=1",
        "training.log_every=1",
        "training.evaluate_every=1",
        "training.valid_problems=4",
        "evaluation.problems_per_length=2",
        "evaluation.problems_while_training=2",
    )

    model: ScratchConfig = ScratchConfig()
    uses: Uses = Field(default=[])
    """Modules that bring parts of your own (lab/parts)."""
    parts: Parts = Field(default={})
    """Ideas about positions and attention that the model is made of (lab/parts), by their kinds: position ids, such as
    `{coupled_ids: {}}`, what attention does with them, and more. Without parts, it rotates queries and keys by where
    tokens are in the row (RoPE)."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    format: FormatConfig = FormatConfig()
    data: PretrainingDataConfig = PretrainingDataConfig()
    training: PretrainTrainingConfig = PretrainTrainingConfig()
    evaluation: LengthCurvesConfig = LengthCurvesConfig()

    @model_validator(mode="after")
    def _whole_sequences(self) -> Self:
        if self.training.micro_batch_size % self.data.packing:
            what = f"data.packing={self.data.packing} should divide training.micro_batch_size"
            raise wrong(
                "data.packing training.micro_batch_size",
                f"{what}={self.training.micro_batch_size}, which counts problems",
            )
        return self

    @model_validator(mode="after")
    def _rules_as_trained(self) -> Self:
        followed = self.data.style == "rule_following"
        if followed and self.format.reverse not in ("none", "integer"):
            raise ValueError(
                f"data.style=rule_following needs format.reverse=none or integer, not {self.format.reverse}"
            )
        return self

    @model_validator(mode="after")
    def _parts_that_fit(self) -> Self:
        check_parts(self)
        if self.data.style == "running_totals" and self.data.packing > 1:
            raise ValueError("data.style=running_totals needs data.packing=1")
        return self

    @model_validator(mode="after")
    def _test_that_can_be_made(self) -> Self:
        if not self.evaluation.lengths:
            raise ValueError("evaluation.lengths should name at least one length")
        return self
