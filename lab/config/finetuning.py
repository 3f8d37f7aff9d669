"""What a config of `lab.finetune` may say. No torch."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from lab.config.notation import FormatConfig
from lab.config.schema import (
    Lengths,
    ModelConfig,
    Rate,
    RulesConfig,
    RunConfig,
    Section,
    Tasks,
    TrainingConfig,
    Variation,
    chosen,
    wrong,
)
from lab.numbers.sampling import Cell


class LoraConfig(Section):
    """Low-rank adapters (Hu et al. 2022) on the linear layers."""

    kind: Literal["lora"] = "lora"
    rank: int = Field(default=128, ge=1, le=16384)
    alpha: float = Field(default=32, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: list[str] = Field(default=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])


class DigitTokensConfig(Section):
    """How the pretrained tokenizer cuts runs of digits."""

    kind: Literal["original", "one_digit", "k_digit"] = "original"
    """k_digit: groups of at most `k`. Groups that the vocabulary lacks are new tokens, which begin as the mean of their
    digits and are trained; tokens of more digits are never written again."""
    k: int = Field(default=3, ge=2, le=4)
    align: Literal["left", "right"] = "right"
    """Where groups of k_digit are counted from: the left of every run, or its right, but decimals from the point."""


class TextTokenizerConfig(Section):
    digits: DigitTokensConfig = DigitTokensConfig()


class LocalityConfig(Section):
    """Which digits a token may look at, of positions.kind=coupled (lab/models/coupled.py)."""

    window: int = Field(default=1, ge=0)
    """Places to both sides of the digit that is written next."""
    layers: tuple[int, int] | None = None
    """The first and the last layer in which digits are hidden so; all layers if it is not given."""

    @field_validator("layers")
    @classmethod
    def _in_order(cls, layers: tuple[int, int] | None) -> tuple[int, int] | None:
        if layers and not 0 <= layers[0] <= layers[1]:
            raise ValueError("should be [first, last], from layer 0 up")
        return layers


class TextPositionsConfig(Section):
    """What a pretrained Llama knows of positions."""

    kind: Literal["original", "nope", "alibi", "coupled"] = "original"
    """original: RoPE, as it was trained. nope: no rotation. alibi: no rotation, and slope times distance taken away
    (Press et al. 2022). coupled: RoPE in which a number counts as one token, whatever its length; a token sees all text
    before it, but digits only if their place is close to that of the digit that it writes (lab/models/coupled.py)."""
    locality: LocalityConfig = LocalityConfig()
    """Of kind=coupled."""
    places: int = Field(default=0, ge=0)
    """Embeddings of so many places that are added to digits (Abacus, McLeish et al. 2024): how many digits of its run a
    token ends. They begin at zero, and so change nothing before they are trained; 0 for none. While training, the
    first place of a batch is drawn, so that all are trained."""
    same_place: bool = False
    """A bias of every head towards the digits of the place that is written next, in the two numbers before
    (lab/models/same_place.py). All are zero at first, and so change nothing before they are trained. Numbers are to be
    written from their lowest digit up, format.reverse=total."""


class Swap(Section):
    """What a tuned model has that its base has not, other than adapters; kept beside them."""

    tokenizer: TextTokenizerConfig = TextTokenizerConfig()
    positions: TextPositionsConfig = TextPositionsConfig()
    format: FormatConfig = FormatConfig()

    @property
    def of_model(self) -> bool:
        """Whether the network itself is another, not only what it is asked."""
        return self.tokenizer.digits.kind != "original" or self.positions != TextPositionsConfig() or self.hinted

    @property
    def hinted(self) -> bool:
        return self.format.index_hints != "none"


class TrainedLengths(Lengths):
    """The paper's by default: the ranges S and M."""

    hard: tuple[int, int] = (1, 8)
    easy: tuple[int, int] = (1, 20)


class DataConfig(Section):
    tasks: Tasks = "all"
    """Names such as add_integer or max_hard_float; all: the 53 of lab/numbers/tasks.py."""
    lengths: TrainedLengths = TrainedLengths()
    """Lengths to train on; the default is the paper's, the ranges S and M."""
    style: Literal["direct", "rule_following"] = "direct"
    """The answer alone, or a rule in the prompt and its execution before the answer (section 4); also in the test."""
    rules: RulesConfig = RulesConfig()
    """Of the style rule_following."""
    variation: Variation = Variation()
    """Hard cases among training problems; of data.tasks=[add_integer] alone."""
    templates: Literal["benchmark", "many"] = "benchmark"
    """How training problems are asked: in NUPA's words, or in those of lab/text/templates.py too, drawn for each
    problem. Validation and test keep NUPA's."""
    curriculum: int = Field(default=1, ge=1)
    """Stages of equal size in which lengths grow to their longest; 1: all lengths from the first step on."""

    @model_validator(mode="after")
    def _detail_of_a_trace(self) -> Self:
        self.rules.check_that_followed(self.style == "rule_following", "style")
        return self

    @property
    def rules_followed(self) -> RulesConfig | None:
        return self.rules if self.style == "rule_following" else None

    @property
    def cells(self) -> list[Cell]:
        return [Cell(item, length) for item in chosen(self.tasks) for length in self.lengths.of(item)]


class AlignmentConfig(Section):
    """Rewards heads for looking, where a digit of the answer is predicted, at the digit of its place in an operand."""

    first: list[tuple[int, int]] = Field(default=[])
    """Heads as [layer, head] that should look at the first operand, such as those that lab.probe finds aligned."""
    second: list[tuple[int, int]] = Field(default=[])
    """And at the second."""
    weight: float = Field(default=0.1, gt=0)
    """Of the loss, the mean negative logarithm of the attention that these heads pay to that digit."""

    @field_validator("first", "second")
    @classmethod
    def _not_negative(cls, heads: list[tuple[int, int]]) -> list[tuple[int, int]]:
        if any(number < 0 for head in heads for number in head):
            raise ValueError("should be pairs of a layer and a head, both from 0 up")
        return heads


class ReplayConfig(Section):
    """Ordinary text beside the problems, on which the model should stay what it was (lab/training/replay.py)."""

    tokens: int = Field(default=0, ge=0)
    """Of text with each forward pass; 0 for none."""
    weight: float = Field(default=1, gt=0)
    """Of the divergence from the untouched model, beside the mean loss of an answer's token."""


class FinetuningConfig(TrainingConfig):
    alignment: AlignmentConfig = AlignmentConfig()
    replay: ReplayConfig = ReplayConfig()
    bias_learning_rate: Rate = 0.3
    """Of positions.same_place, on the schedule of the rest: a score is about one, a weight a hundredth of it."""
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
    COMMAND = "finetune"
    SMOKE = (
        "model.name=smollm2-135m-instruct",
        "model.quantization=none",
        "adapter.rank=4",
        "training.max_steps=2",
        "training.warmup_steps=1",
        "training.log_every=1",
        "training.evaluate_every=1",
        "training.valid_problems=4",
        "training.batch_size=4",
        "training.micro_batch_size=4",
        "evaluation.problems_per_range=1",
    )

    model: ModelConfig
    adapter: LoraConfig = LoraConfig()
    tokenizer: TextTokenizerConfig = TextTokenizerConfig()
    positions: TextPositionsConfig = TextPositionsConfig()
    format: FormatConfig = FormatConfig()
    data: DataConfig = DataConfig()
    training: FinetuningConfig = FinetuningConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _something_to_measure(self) -> Self:
        if not self.data.lengths.tested(self.data.tasks):
            raise wrong(
                "data.lengths", "data.lengths holds no length that is validated; numbers of 1 or 2 digits only train"
            )
        self.evaluation.lengths.check_tested(self.data.tasks, "evaluation.lengths", "data.tasks")
        return self

    @model_validator(mode="after")
    def _swaps_that_go_together(self) -> Self:
        plain = self.format == FormatConfig()
        if self.data.style == "rule_following" and not plain:
            raise ValueError("rules are written in plain numbers: leave format out, or use data.style=direct")
        if self.data.style == "rule_following" and self.data.curriculum > 1:
            raise ValueError("data.curriculum is of direct answers: leave it out, or use data.style=direct")
        if self.format.index_hints != "none" and self.tokenizer.digits.kind == "k_digit":
            raise ValueError("format.index_hints stand before single digits: use tokenizer.digits.kind=one_digit")
        if self.positions.places:
            self.format.check_that_places_agree("positions.places")
        coupled = self.positions.kind == "coupled"
        if coupled and self.positions.same_place:
            raise ValueError("positions.kind=coupled has the bias of positions.same_place: leave that out")
        if self.positions.locality != LocalityConfig() and not coupled:
            raise ValueError("positions.locality is of positions.kind=coupled")
        if coupled or self.positions.same_place:
            key = "positions.kind=coupled" if coupled else "positions.same_place"
            if self.format.reverse not in ("total", "answer"):
                what = f"{key} is of answers from their lowest digit up"
                raise ValueError(f"{what}: use format.reverse=total, or answer")
            if self.tokenizer.digits.kind == "k_digit":
                raise ValueError(f"{key} is of one digit a token: use tokenizer.digits.kind=one_digit")
        adds = [item.key for item in chosen(self.data.tasks)] == ["add_integer"] and self.data.style == "direct"
        if self.data.variation != Variation() and not adds:
            raise ValueError("data.variation is of integer addition: use data.tasks=[add_integer], or leave it out")
        if self.data.templates == "many" and not adds:
            raise ValueError("data.templates=many are of integer addition: use data.tasks=[add_integer]")
        if (self.training.alignment.first or self.training.alignment.second) and not (
            plain and self.data.style == "direct" and self.tokenizer.digits.kind != "k_digit"
        ):
            what = "training.alignment is of plain numbers, one digit a token"
            raise ValueError(f"{what}: leave format out, and use data.style=direct, and not k_digit")
        return self

    @property
    def swap(self) -> Swap:
        return Swap(tokenizer=self.tokenizer, positions=self.positions, format=self.format)

    @property
    def test_cells(self) -> list[Cell]:
        return self.evaluation.lengths.tested(self.data.tasks)
