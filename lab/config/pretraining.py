"""The config of `lab.pretrain`: the notation, the model, its training and its test. Does not import torch."""

from collections.abc import Iterable
from itertools import product
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from lab.config.notation import FormatConfig, TokenizerConfig
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
    check_no_products,
    chosen,
    known,
    wrong,
)
from lab.numbers.additions import VARIED
from lab.numbers.sampling import Cell
from lab.numbers.tasks import KNOWN, LONGEST_SHORT_FACTOR, SUM, Task, several, shorter_second

PositionKind = Literal["plain", "abacus", "coupled", "countdown", "counted", "grid"]


class PositionsConfig(Section):
    """Which integer (position id) a token gets."""

    kind: PositionKind = "plain"
    """plain: 0, 1, 2 ... abacus: a digit's place in its number, and 0 for other tokens (McLeish et al. 2024). coupled:
    digits of the same place share one id, and so do the operator and "=" (Cho et al. 2024). countdown: coupled, for
    numbers as people write them; the places of an answer are counted down, starting one place above the question's
    highest (needs format.carry_place). counted: like countdown, but the model learns which words to count
    (lab/scratch/counted_places.py). grid: the row and the place of a digit in running totals
    (lab/scratch/grid_places.py)."""
    largest: int = Field(default=1024, ge=2)
    """How many ids there are. Coupled ids start at any of them and wrap around. Plain and grid ids ignore it."""
    segments: bool = False
    """Add a learned embedding that says which number a token belongs to: first, second, or answer; in running totals,
    also a part or a total."""
    through_point: bool = False
    """Let abacus, coupled and countdown ids continue across a number's point, so that decimals and the digits of the
    integer part have different ids. So that a place has the same id in all three numbers, this needs format.pad=all
    and, unless ids count down, format.reverse=total."""


Encoding = Literal["rope", "nope", "alibi", "alibi_released", "fire", "relative", "learned"]
LOCAL_ENCODINGS: tuple[Encoding, ...] = ("rope", "relative", "learned")
"""The encodings that `locality`, `window`, `far_copies` and `far_at_most` work with."""
Slope = Annotated[float, Field(ge=0)]

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
    encoding: Encoding = "rope"
    """What attention does with position ids. rope: rotates queries and keys (Su et al. 2021). nope: nothing (Kazemnejad
    et al. 2023). alibi: subtracts slope times distance from the scores (Press et al. 2022); alibi_released: adds it, as
    the code of the Number Cookbook does. fire: adds a learned function of the distance (Li et al. 2024). relative: adds
    the product of the query with a learned vector for the signed distance, which is clipped at 4 (Shaw et al. 2018).
    learned: nothing; an embedding of each id is added to the inputs instead."""
    locality: Slope | list[Slope] | Literal["learned"] = 0.0
    """With rope, relative or learned: by how much an attention score falls for each step of distance between the two
    position ids. (Coupled ids wrap around; their distance is the shorter way round.) One slope for all heads, or a list
    with one for each head; 0 for none; "learned" if each head learns its own, which starts at 0.01 and is shared by all
    layers. Without a slope, the more far digits there are, the more attention leaks to them. 1 works for sums; a
    product by one digit needs a head that sees this digit from far away."""
    window: int = Field(default=0, ge=0)
    """With rope, relative or learned: a token sees only tokens whose position ids are at most this far from its own; 0
    for no limit. What a layer computes then does not depend on the lengths of the numbers, except in stick-breaking
    heads."""
    far_copies: float = Field(default=1, ge=1)
    """With rope, relative or learned: in training, each digit whose position id is 4 or more away counts as this many
    copies of itself (the logarithm of this number is added to its score). So the model learns to ignore far digits as
    if numbers were that many times longer; each head learns how strongly. 1 adds no copies. In the test, each digit
    counts once."""
    far_at_most: int = Field(default=0, ge=0)
    """With rope, relative or learned: limits the total attention weight of all digits whose position ids are 4 or more
    away. However many there are, together they weigh no more than this many would; 0 for no limit.
    `NumberLlama.bound_far` sets it after training."""
    clip_distance: int = Field(default=0, ge=0)
    """With rope: limits distances. Keys whose position ids are farther away than this are scored as if they were at
    this distance, so long numbers have no distances that short ones lack; 0 for no limit. `locality` still uses the
    true distances. `NumberLlama.clip_distances` sets it after training (finding F-076)."""
    rope_factor: float = Field(default=1, gt=0)
    """With rope: position ids are divided by this factor (position interpolation, Chen et al. 2023), so the pair of
    dimensions that rotates fastest completes a turn every 6.3 times this many ids."""
    stick_breaking: int = Field(default=0, ge=0)
    """How many heads of each layer (the last ones) use stick-breaking attention (Tan et al. 2024): they attend to the
    nearest earlier token that matches, however far away it is. They see the order of tokens but not their position ids,
    so `locality` and `window` do not apply to them."""
    downward: int = Field(default=0, ge=0)
    """With positions.kind=countdown or counted: how many of the stick-breaking heads (the last ones) walk down the
    places instead of back over the tokens. They start one place below the digit that is written next, and attend to the
    highest place that matches."""
    positions: PositionsConfig = PositionsConfig()
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

    @model_validator(mode="after")
    def _ids_that_can_be_told_apart(self) -> Self:
        if self.positions.kind == "abacus" and self.encoding != "learned":
            raise ValueError("positions.kind=abacus gives places, not order: use encoding=learned")
        if self.positions.kind == "grid" and (self.encoding != "relative" or self.stick_breaking):
            raise ValueError("positions.kind=grid has two directions: it needs encoding=relative and no stick_breaking")
        if self.positions.kind in ("grid", "countdown", "counted") and (self.far_copies > 1 or self.far_at_most):
            raise ValueError(f"far_copies and far_at_most do not work with positions.kind={self.positions.kind}")
        if self.positions.kind == "counted" and (self.encoding != "relative" or self.window):
            raise ValueError("positions.kind=counted learns by gradients: use encoding=relative and no window")
        if self.positions.kind != "plain" and self.encoding == "nope":
            raise ValueError(f"encoding=nope ignores position ids: use positions.kind=plain, not {self.positions.kind}")
        for key in ("locality", "window", "far_copies", "far_at_most"):
            changed = getattr(self, key) != type(self).model_fields[key].default
            if changed and self.encoding not in LOCAL_ENCODINGS:
                what = f"{key} works only with encoding=rope, relative or learned"
                raise ValueError(f"{what}, not with encoding={self.encoding}")
        for key in ("clip_distance", "rope_factor"):
            if getattr(self, key) != type(self).model_fields[key].default and self.encoding != "rope":
                raise ValueError(f"{key} works only with encoding=rope, not with encoding={self.encoding}")
        heads = SIZES[self.size][3]
        if self.stick_breaking > heads:
            raise ValueError(f"stick_breaking={self.stick_breaking}, but size={self.size} has {heads} heads")
        if self.stick_breaking and self.encoding == "rope":
            raise ValueError("stick_breaking needs an encoding that does not rotate: encoding=relative, for example")
        if self.downward > self.stick_breaking:
            raise ValueError(f"downward={self.downward}, but only stick_breaking={self.stick_breaking} heads can walk")
        if self.downward and self.positions.kind not in ("countdown", "counted"):
            raise ValueError("downward needs positions.kind=countdown or counted: their lowest ids are at ones digits")
        if isinstance(self.locality, list) and len(self.locality) != heads:
            raise ValueError(f"locality has {len(self.locality)} slopes, and size={self.size} has {heads} heads")
        return self


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
    def _digits_told_from_signs(self) -> Self:
        no_digits = self.model.positions.kind == "plain"
        far = self.model.far_copies > 1 or self.model.far_at_most > 0
        if far and (self.data.packing > 1 or no_digits):
            raise ValueError(
                "model.far_copies and model.far_at_most tell digits from signs by the ids of one problem: they need "
                "model.positions.kind=coupled or abacus, and data.packing=1"
            )
        return self

    @model_validator(mode="after")
    def _positions_that_fit_the_text(self) -> Self:
        kind, totals = self.model.positions.kind, self.data.style == "running_totals"
        if kind == "grid" and not totals:
            raise ValueError("model.positions.kind=grid needs data.style=running_totals")
        if totals and self.data.packing > 1:
            raise ValueError("data.style=running_totals needs data.packing=1")
        if kind in ("abacus", "coupled"):
            self.format.check_that_places_agree(f"model.positions.kind={kind}")
        if kind == "counted" and self.data.packing > 1:
            raise ValueError("model.positions.kind=counted needs data.packing=1")
        if kind in ("countdown", "counted"):
            by_a_digit = [_PRODUCT] if self.data.factor_digits == 1 else []
            tasks = [item for item in chosen(self.data.tasks) if item.key not in by_a_digit]
            check_no_products(tasks, f"model.positions.kind={kind}")
        if kind in ("countdown", "counted") and (self.format.reverse != "none" or not self.format.carry_place):
            raise ValueError(
                f"model.positions.kind={kind} counts down to the ones digit, from the place of a last carry: "
                "use format.reverse=none and format.carry_place=true"
            )
        return self

    @model_validator(mode="after")
    def _positions_through_a_point(self) -> Self:
        kind = self.model.positions.kind
        if not self.model.positions.through_point:
            return self
        if kind not in ("abacus", "coupled", "countdown"):
            what = "model.positions.through_point works only with kind=abacus, coupled or countdown"
            raise ValueError(f"{what}, not with kind={kind}")
        reverse = "none" if kind == "countdown" else "total"
        if (self.format.reverse, self.format.pad) != (reverse, "all"):
            what = "counts decimals and integer part as one number, starting from its end"
            how = f"use format.reverse={reverse} and format.pad=all"
            raise ValueError(f"model.positions.through_point {what}: {how}")
        return self

    @model_validator(mode="after")
    def _test_that_can_be_made(self) -> Self:
        if not self.evaluation.lengths:
            raise ValueError("evaluation.lengths should name at least one length")
        return self
