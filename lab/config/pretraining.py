"""What a config of `lab.pretrain` may say: a notation, a model to build, its training, its test. No torch."""

from collections.abc import Iterable
from itertools import product
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from lab.config.notation import FormatConfig, TokenizerConfig
from lab.config.schema import LONGEST, Rate, RunConfig, Section, Tasks, TrainingConfig, Variation, chosen, wrong
from lab.numbers.sampling import Cell
from lab.numbers.tasks import LONGEST_SHORT_FACTOR, shorter_second

PositionKind = Literal["plain", "randomised", "abacus", "coupled"]


class PositionsConfig(Section):
    """Which integer a token gets."""

    kind: PositionKind = "plain"
    """plain: 0, 1, 2 ... randomised: an ordered draw from all ids (Ruoss et al. 2023). abacus: a digit's place in its
    number, 0 elsewhere (McLeish et al. 2024). coupled: one id for digits of one place, the same for operator and "="
    (Cho et al. 2024)."""
    largest: int = Field(default=1024, ge=2)
    """How many ids there are. Randomised ones are drawn from them, coupled ones begin anywhere and go round."""
    segments: bool = False
    """Add a learned embedding of which number a token is of: first, second, answer."""
    through_point: bool = False
    """Count abacus and coupled ids on through a number's point, so that they tell decimals from the digits of its
    integer part. Goes with format.reverse=total and pad=all, where like places of all three numbers then agree."""


Encoding = Literal["rope", "nope", "alibi", "alibi_released", "fire", "learned"]
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
"""Layers, width, width of the feed-forward, heads, and key-value heads of the paper. The last three are its Table 11;
1.3M is the 2-layer model of A.4.3, whose width it does not give."""


class ScratchConfig(Section):
    """A decoder of the Llama architecture with weights drawn at random."""

    size: str = "0.4M"
    """0.2M, 0.4M, 1.3M, 3.2M, 0.1B, 0.9B or 3B: parameters without the embeddings, with the paper's key-value heads
    (with as many as heads, 1.3M and the last three have 11 to 12 % more)."""
    key_value_heads: Literal["as_heads", "paper"] = "as_heads"
    """paper: shared by several heads, as in Table 11; as_heads: one for each, as some probing instruments need."""
    encoding: Encoding = "rope"
    """What attention does with position ids. rope: rotates (Su et al. 2021). nope: nothing (Kazemnejad et al. 2023).
    alibi: takes away slope times distance (Press et al. 2022); alibi_released: adds it, as the paper's code does. fire:
    adds a learned function of the distance (Li et al. 2024). learned: nothing, but ids have embeddings."""
    locality: Slope | list[Slope] = 0.0
    """Beside rope or learned: what every score of attention loses for each step between the two ids, the shorter way
    round where ids are coupled; one number for all heads, or one for each. What leaks to far digits then does not grow
    with their number. 0 for none; 1 serves sums, and a product by one digit needs a head that sees it from afar."""
    positions: PositionsConfig = PositionsConfig()
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of products while training: auto is bfloat16 where the device multiplies in it. Weights are float32, and so is
    the test at the end."""
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
            raise ValueError("positions.kind=abacus tells places, not order: use encoding=learned")
        if self.positions.kind != "plain" and self.encoding == "nope":
            raise ValueError(f"encoding=nope looks at no position ids, so positions.kind={self.positions.kind} is void")
        if self.locality and self.encoding not in ("rope", "learned"):
            raise ValueError(f"locality goes with encoding=rope or learned, not with encoding={self.encoding}")
        heads = SIZES[self.size][3]
        if isinstance(self.locality, list) and len(self.locality) != heads:
            raise ValueError(f"locality has {len(self.locality)} slopes, and size={self.size} has {heads} heads")
        return self


class PretrainingDataConfig(Section):
    tasks: Tasks = Field(default=["add_integer"])
    lengths: tuple[int, int] = (1, 8)
    """Digits of training problems, both ends included."""
    factor_digits: int = Field(default=LONGEST_SHORT_FACTOR, ge=1, le=LONGEST_SHORT_FACTOR)
    """Of the second factor of multiply_easy_integer at most: 1 makes it a product by one digit."""
    packing: int = Field(default=1, ge=1)
    """Problems in one sequence, without a mask between them."""
    variation: Variation = Variation()

    @field_validator("lengths")
    @classmethod
    def _in_order(cls, bounds: tuple[int, int]) -> tuple[int, int]:
        if not 1 <= bounds[0] <= bounds[1] <= LONGEST:
            raise ValueError(f"should be [shortest, longest], from 1 digit to {LONGEST}")
        return bounds

    @model_validator(mode="after")
    def _variation_of_additions(self) -> Self:
        if self.variation != Variation() and [task.key for task in chosen(self.tasks)] != ["add_integer"]:
            raise ValueError("variation is of integer addition: use tasks=[add_integer], or leave it out")
        return self

    @model_validator(mode="after")
    def _factor_of_products(self) -> Self:
        short = self.factor_digits < LONGEST_SHORT_FACTOR
        if short and [task.key for task in chosen(self.tasks)] != ["multiply_easy_integer"]:
            raise ValueError("factor_digits is of multiply_easy_integer alone: use tasks=[multiply_easy_integer]")
        return self

    @property
    def trained(self) -> range:
        return range(self.lengths[0], self.lengths[1] + 1)

    @property
    def cells(self) -> list[Cell]:
        return self.cells_of(self.trained)

    def cells_of(self, lengths: Iterable[int]) -> list[Cell]:
        short = self.factor_digits < LONGEST_SHORT_FACTOR
        prepare = shorter_second(self.factor_digits) if short else None
        return [Cell(item, length, prepare) for item, length in product(chosen(self.tasks), lengths)]


class LengthCurvesConfig(Section):
    """What is measured of a model at every length."""

    lengths: list[int] = Field(default=list(range(1, 21)))
    """Digits to test at, inside and outside of training."""
    problems_per_length: int = Field(default=100, ge=1)
    batch_size: int = Field(default=200, ge=1)
    sharpness: float = Field(default=1, gt=0)
    """What attention's scores are multiplied by in the test at the end. A little above 1 takes away what leaks to the
    many keys of contexts that are longer than those of training."""
    while_training: list[int] = Field(default=[])
    """Lengths that are also measured at each validation, for curves over the samples seen."""
    problems_while_training: int = Field(default=50, ge=1)

    @field_validator("lengths", "while_training")
    @classmethod
    def _lengths(cls, lengths: list[int]) -> list[int]:
        if any(not 1 <= length <= LONGEST for length in lengths) or len(set(lengths)) < len(lengths):
            raise ValueError(f"should be numbers of digits from 1 to {LONGEST}, none twice")
        return sorted(lengths)


class PretrainTrainingConfig(TrainingConfig):
    learning_rate: Rate = 1e-3
    micro_batch_size: int = Field(default=64, ge=1)
    compile: bool = False
    """torch.compile while training, with attention that is not fused on a CPU; the first steps take longer, and a CPU
    needs a C++ compiler."""


class PretrainConfig(RunConfig):
    COMMAND = "pretrain"
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
        kind = self.model.positions.kind
        if kind in ("abacus", "coupled"):
            self.format.check_that_places_agree(f"model.positions.kind={kind}")
        if self.model.positions.through_point:
            if kind not in ("abacus", "coupled"):
                raise ValueError(
                    f"model.positions.through_point goes with kind=abacus or coupled, not with kind={kind}"
                )
            if (self.format.reverse, self.format.pad) != ("total", "all"):
                what = "counts decimals and integer part as one number, from its end"
                raise ValueError(f"model.positions.through_point {what}: use format.reverse=total and format.pad=all")
        if not self.evaluation.lengths:
            raise ValueError("evaluation.lengths should name at least one length")
        return self
