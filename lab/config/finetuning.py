"""The config of `lab.finetune`. Does not import torch."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, field_validator, model_validator

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
    check_no_products,
    chosen,
    wrong,
)
from lab.numbers.additions import VARIED
from lab.numbers.representations import Float, Integer
from lab.numbers.sampling import Cell


class LoraConfig(Section):
    """Low-rank adapters (Hu et al. 2022) on the linear layers."""

    kind: Literal["lora"] = "lora"
    rank: int = Field(default=128, ge=1, le=16384)
    alpha: float = Field(default=32, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: list[str] = Field(default=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])


class DigitTokensConfig(Section):
    """How the pretrained tokenizer splits runs of digits."""

    kind: Literal["original", "one_digit", "k_digit"] = "original"
    """original: as the tokenizer does. one_digit: each digit is a token. k_digit: groups of at most `k` digits. Groups
    that are not in the vocabulary become new tokens, whose trainable embeddings start as the mean of their digits'
    embeddings. Tokens with more digits than that are never produced."""
    k: int = Field(default=3, ge=2, le=4)
    """With kind=k_digit: the largest number of digits in a group."""
    align: Literal["left", "right"] = "right"
    """The end of a run of digits from which k_digit counts groups. Even with right, decimals are counted from the
    point."""

    @model_validator(mode="after")
    def _groups(self) -> Self:
        if self.kind != "k_digit" and (self.k, self.align) != (3, "right"):
            raise ValueError(f"k and align are for groups of digits: use kind=k_digit, not {self.kind}")
        return self


class TextTokenizerConfig(Section):
    digits: DigitTokensConfig = DigitTokensConfig()


def _in_order(layers: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= layers[0] <= layers[1]:
        raise ValueError("should be [first, last], from layer 0 up")
    return layers


LayerRange: TypeAlias = Annotated[tuple[int, int], AfterValidator(_in_order)]


class WalkConfig(Section):
    """Heads that look for a carry by walking down the places of the question's numbers
    (lab/models/walking_heads.py)."""

    heads: int = Field(default=0, ge=0)
    """How many heads of each layer walk (the last ones); 0 for none."""
    layers: LayerRange | None = None
    """The first and the last layer with such heads; all layers if not given."""


class LocalityConfig(Section):
    """Which digits and words a token may attend to with positions.kind=coupled (lab/models/coupled.py)."""

    window: int = Field(default=1, ge=0)
    """How many places are visible on each side of the place of the digit that is written next."""
    operands: int = Field(default=2, ge=1, le=2)
    """How many numbers come before an answer. A token with fewer numbers before it sees itself, and words as `words`
    allows, but no other digits, not even those of its own number."""
    words: Literal["all", "last", "nearest", "none"] = "all"
    """Which words digits see. all: all words before them. last: the digits of an answer see only the first token of the
    text and the last word before the answer, which has seen all other words; so everything that the answer learns about
    the wording of the question passes through one token. nearest: the digits of every number, not only of an answer,
    see only the first token of the text and the last word before their number; with format.reverse=none, use this
    instead of last. none: no digit sees any word except the first token of the text, which suits models of a single
    task. The wording then reaches an answer only in three ways: through its first digit, which is predicted at the last
    word before it; through the first token of the text, which is a word of the question if the tokenizer does not add a
    token; and through the number of words between digits, which position ids count."""
    layers: LayerRange | None = None
    """The first and the last layer in which other digits are hidden; all layers if not given."""
    far: Literal["hidden", "seen", "fading"] = "hidden"
    """What happens to digits outside the window. hidden: no token attends to them. seen: tokens may attend to them, and
    each head of each layer learns how much to lower their scores, starting from 0. fading: in addition, each head
    learns by how much their scores fall with each further place. With seen and fading, leave out `layers`."""
    far_at_most: int = Field(default=0, ge=0)
    """With far=seen or fading: limits the total attention weight of all digits outside the window. However many there
    are, together they weigh no more than this many would; 0 for no limit."""
    spacing: int = Field(default=0, ge=0)
    """The distance in position ids between one number and the next, as seen by a token that attends to digits, no
    matter what text is between the numbers (lab/models/even_spacing.py). 0: the distance in the text, which is 3 in "12
    + 30 ="."""
    walk: WalkConfig = WalkConfig()
    """Which heads walk down the places. Needs format.reverse=none."""

    @model_validator(mode="after")
    def _hidden_or_seen(self) -> Self:
        if self.far != "hidden" and self.layers:
            raise ValueError(f"far={self.far} hides no digits in any layer: leave layers out")
        if self.far == "hidden" and self.far_at_most:
            raise ValueError("far_at_most needs far=seen or fading")
        return self


class TextPositionsConfig(Section):
    """How a pretrained Llama knows the positions of tokens."""

    kind: Literal["original", "nope", "alibi", "coupled"] = "original"
    """original: RoPE, as in pretraining. nope: no rotation. alibi: no rotation; slope times distance is subtracted from
    the scores instead (Press et al. 2022). coupled: RoPE in which a number counts as one token, whatever its length. A
    token then sees all words before it, but only those digits whose place is close to the place of the digit that it
    writes (lab/models/coupled.py)."""
    locality: LocalityConfig = LocalityConfig()
    """Which digits are visible with kind=coupled."""
    places: int = Field(default=0, ge=0)
    """How many places have an embedding, which is added to the embedding of a digit (Abacus, McLeish et al. 2024); 0
    for none. The place of a token is how many digits its run of digits has up to and including this token. The
    embeddings start at zero, so at first they change nothing. In training, the place of the first digit is drawn for
    each batch, so that all embeddings are trained."""
    same_place: bool = False
    """Give every head a learned bias towards those digits of the two preceding numbers that are at the same place as
    the digit that is written next (lab/models/same_place.py). The biases start at zero, so at first they change
    nothing. Answers must be written from their lowest digit up: format.reverse=total or answer."""


class Swap(Section):
    """What a tuned model changes in its base model apart from the adapters; it is saved beside them."""

    tokenizer: TextTokenizerConfig = TextTokenizerConfig()
    positions: TextPositionsConfig = TextPositionsConfig()
    format: FormatConfig = FormatConfig()

    @property
    def of_model(self) -> bool:
        """Whether the network or its tokens change, and not only the format of the questions."""
        return self.tokenizer.digits.kind != "original" or self.positions != TextPositionsConfig() or self.hinted

    @property
    def hinted(self) -> bool:
        return self.format.index_hints != "none"


class TrainedLengths(Lengths):
    """Lengths to train on; by default those of the paper, which are the ranges S and M."""

    hard: tuple[int, int] = (1, 8)
    easy: tuple[int, int] = (1, 20)


class DataConfig(Section):
    tasks: Tasks = "all"
    """Names such as add_integer or max_hard_float; all: the 53 of lab/numbers/tasks.py."""
    lengths: TrainedLengths = TrainedLengths()
    """Lengths to train on; by default those of the paper, which are the ranges S and M."""
    style: Literal["direct", "rule_following"] = "direct"
    """direct: the answer alone. rule_following: the prompt contains a rule, and the response executes it before the
    answer (section 4). The test uses the same style."""
    rules: RulesConfig = RulesConfig()
    """Which rules to follow, if style is rule_following."""
    variation: Variation = Variation()
    """Hard cases among the training problems of addition and subtraction (lab/numbers/additions.py)."""
    templates: Literal["benchmark", "many", "mixed", "varied"] = "benchmark"
    """How training problems are worded. benchmark: as in NUPA. many: in a wording drawn for each problem from NUPA's
    and all those of lab/text/templates.py, with equal probabilities. mixed: half of the problems as in NUPA, the others
    with the wordings of lab/text/templates.py. varied: a third as in NUPA, a third with the wordings of
    lab/text/templates.py, and a third among random words. Validation and test always use NUPA's wording."""
    example_number: Literal["benchmark", "drawn"] = "benchmark"
    """The example in the format hint of training problems, "like 123 .". benchmark: always 123. drawn: a number of 1-8
    digits or the word "this", drawn anew for every eight problems (lab/text/example_numbers.py). Problems in
    another wording than NUPA's have no hint. Validation and test always have NUPA's example."""
    passages: float = Field(default=0, ge=0, le=1)
    """Share of training problems that are preceded by a passage of ordinary text (lab/text/passages.py). Validation and
    test problems have none."""
    curriculum: int = Field(default=1, ge=1)
    """Number of equally long stages in which the maximum length grows; 1 trains on all lengths from the first step."""

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
    """Rewards heads for attending to the operand digit at the place of the answer digit that is predicted."""

    first: list[tuple[int, int]] = Field(default=[])
    """Heads, each as [layer, head], that should attend to the first operand; for example, those that lab.probe finds to
    be aligned."""
    second: list[tuple[int, int]] = Field(default=[])
    """Heads that should attend to the second operand."""
    weight: float = Field(default=0.1, gt=0)
    """Weight of this loss, which is the mean negative logarithm of these heads' attention weights on that digit."""

    @property
    def heads(self) -> list[tuple[int, int]]:
        """All heads that are rewarded."""
        return [*self.first, *self.second]

    @field_validator("first", "second")
    @classmethod
    def _not_negative(cls, heads: list[tuple[int, int]]) -> list[tuple[int, int]]:
        if any(number < 0 for head in heads for number in head):
            raise ValueError("should be pairs [layer, head], both counted from 0")
        return heads


class ReplayConfig(Section):
    """Ordinary text that is trained along with the problems; the model's predictions on it should not change
    (lab/training/replay_loss.py)."""

    tokens: int = Field(default=0, ge=0)
    """Tokens of ordinary text in each forward pass; 0 for none."""
    every: int = Field(default=1, ge=1)
    """Compare the predictions at every n-th token of the text; 1 compares them at all tokens."""
    weight: float = Field(default=1, gt=0)
    """Weight of the divergence from the original model, relative to the mean loss per answer token."""

    @model_validator(mode="after")
    def _something_to_compare(self) -> Self:
        if 0 < self.tokens < self.every:
            raise wrong(
                "every tokens", f"every={self.every} should be at most tokens={self.tokens}, or nothing is compared"
            )
        return self


class AdapterTrainingConfig(TrainingConfig):
    alignment: AlignmentConfig = AlignmentConfig()
    replay: ReplayConfig = ReplayConfig()
    walk_weight: float = Field(default=0, ge=0)
    """Weight of a loss that tells walking heads where to stop (lab/training/walk_loss.py); 0 for no such loss. Needs
    positions.locality.walk."""
    bias_learning_rate: Rate = 0.3
    """Learning rate of the biases of positions.same_place and of the slopes of positions.locality.far=fading; its
    schedule is that of the other parameters. It is large because biases and slopes must grow to the size of attention
    scores, about 1, whereas weights are about 0.01."""
    share_prefixes: bool = True
    """Compute the prompt tokens that the problems of a batch share only once (lab/training/collation.py)."""


class EvaluationConfig(Section):
    lengths: Lengths = Lengths()
    """Lengths to test at, inside and outside the training lengths. A task skips lengths at which it is never tested."""
    problems_per_range: int = Field(default=100, ge=1)
    """Number of test problems of each task in each of its ranges S, M, L and XL, spread over the lengths of the range;
    if there are fewer, all of them are used."""
    batch_size: int = Field(default=128, ge=1)
    speculation: int = Field(default=0, ge=0)
    """Maximum number of tokens drafted for a problem in one forward pass (lab/inference/speculation.py); 0 for no
    drafts. Drafts save time if responses are long and repeat earlier text, as those that follow rules do."""


class FinetuneConfig(RunConfig):
    COMMAND = "finetune"
    FREE = ("evaluation.batch_size",)
    SMOKE = (
        "model.name=smollm2-135m-instruct",
        "model.quantization=none",
        "adapter.rank=4",
        "data.lengths={hard: [1, 5], easy: [1, 5]}",
        "training.max_steps=2",
        "training.warmup_steps=1",
        "training.log_every=1",
        "training.evaluate_every=2",
        "training.valid_problems=4",
        "training.batch_size=4",
        "training.micro_batch_size=4",
        "evaluation.lengths={hard: [5, 5], easy: [5, 5]}",
        "evaluation.problems_per_range=1",
    )

    model: ModelConfig
    adapter: LoraConfig = LoraConfig()
    tokenizer: TextTokenizerConfig = TextTokenizerConfig()
    positions: TextPositionsConfig = TextPositionsConfig()
    format: FormatConfig = FormatConfig()
    data: DataConfig = DataConfig()
    training: AdapterTrainingConfig = AdapterTrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _something_to_measure(self) -> Self:
        if not self.data.lengths.tested(self.data.tasks):
            raise wrong(
                "data.lengths", "data.lengths has no length for validation; numbers of 1 or 2 digits are for training"
            )
        self.evaluation.lengths.check_tested(self.data.tasks, "evaluation.lengths", "data.tasks")
        return self

    @model_validator(mode="after")
    def _rules_with_plain_numbers(self) -> Self:
        if self.data.style == "rule_following" and self.format != FormatConfig():
            raise ValueError("rules are written with plain numbers: leave format out, or use data.style=direct")
        if self.data.style == "rule_following" and self.data.curriculum > 1:
            raise ValueError("data.curriculum needs direct answers: leave it out, or use data.style=direct")
        return self

    @model_validator(mode="after")
    def _digits_that_have_places(self) -> Self:
        if self.format.index_hints != "none" and self.tokenizer.digits.kind == "k_digit":
            raise ValueError("format.index_hints stand before single digits: use tokenizer.digits.kind=one_digit")
        if self.positions.places:
            self.format.check_that_places_agree("positions.places")
            longest = max(cell.length for cell in [*self.data.cells, *self.test_cells])
            if longest > self.positions.places:
                what = f"positions.places={self.positions.places}: numbers of data.lengths and evaluation.lengths have"
                raise ValueError(f"{what} up to {longest} digits: use as many places or more, or shorter numbers")
        return self

    @model_validator(mode="after")
    def _answers_that_positions_can_follow(self) -> Self:
        coupled = self.positions.kind == "coupled"
        if coupled and self.positions.same_place:
            raise ValueError("positions.kind=coupled includes the bias of positions.same_place: leave same_place out")
        if self.positions.locality != LocalityConfig() and not coupled:
            raise ValueError("positions.locality needs positions.kind=coupled")
        if coupled or self.positions.same_place:
            key = "positions.kind=coupled" if coupled else "positions.same_place"
            downward = coupled and self.format.reverse == "none" and self.format.carry_place
            if self.format.reverse not in ("total", "answer") and not downward:
                what = f"{key} needs answers that are written from their lowest digit up"
                other = ", or format.reverse=none, pad=answer and carry_place=true" if coupled else ""
                raise ValueError(f"{what}: use format.reverse=total, or answer{other}")
            if self.positions.locality.walk.heads and not downward:
                raise ValueError("positions.locality.walk needs format.reverse=none: the lowest digits come first")
            if downward:
                self._check_downward()
            if self.tokenizer.digits.kind == "k_digit":
                raise ValueError(f"{key} needs one digit a token: use tokenizer.digits.kind=one_digit")
        if self.training.walk_weight and not self.positions.locality.walk.heads:
            raise ValueError("training.walk_weight needs heads that walk: positions.locality.walk.heads of 1 or more")
        return self

    @model_validator(mode="after")
    def _problems_that_can_be_changed(self) -> Self:
        tasks, direct = [item.key for item in chosen(self.data.tasks)], self.data.style == "direct"
        if self.data.variation != Variation() and not (direct and {*tasks} & {*VARIED}):
            what = f"data.variation needs direct answers and one of {', '.join(VARIED)} among data.tasks"
            raise ValueError(f"{what}: use such a task and data.style=direct, or leave data.variation out")
        if self.data.passages and not direct:
            raise ValueError("data.passages needs direct answers: leave it out, or use data.style=direct")
        if self.data.templates != "benchmark" and not (direct and tasks == ["add_integer"]):
            what = f"data.templates={self.data.templates}"
            raise ValueError(f"{what} needs data.tasks=[add_integer] and data.style=direct")
        if self.data.example_number == "drawn" and not (direct and all(one.answer is Integer for one in chosen(tasks))):
            what = "data.example_number=drawn needs direct answers that are integers"
            raise ValueError(f"{what}: use such data.tasks and data.style=direct, or leave example_number out")
        return self

    @model_validator(mode="after")
    def _text_that_alignment_can_read(self) -> Self:
        if not self.training.alignment.heads:
            return self
        # digits are found by characters
        if not (
            self.format == FormatConfig() and self.data.style == "direct" and self.tokenizer.digits.kind != "k_digit"
        ):
            what = "training.alignment needs plain numbers, one digit a token"
            raise ValueError(f"{what}: leave format out, use data.style=direct, and do not use k_digit")
        if self.data.passages or (self.data.templates, self.data.example_number) != ("benchmark", "benchmark"):
            what = "training.alignment needs problems in NUPA's words alone"
            raise ValueError(f"{what}: leave data.passages, data.templates and data.example_number out")
        if self.positions.kind == "alibi":
            raise ValueError("training.alignment does not know the bias of positions.kind=alibi: use another kind")
        return self

    def _check_downward(self) -> None:
        """Raises ValueError for settings that do not work with places counted from the highest down."""
        if self.positions.locality.words == "last":
            raise ValueError("positions.locality.words=last needs answers written ones digit first: use nearest")
        placed = (Integer, Float)
        placeless = [one.key for one in chosen(self.data.tasks) if not {one.representation, one.answer} <= {*placed}]
        if placeless:
            what = "format.reverse=none with positions.kind=coupled finds places in integers and floats only"
            raise ValueError(f"{what}: leave {', '.join(placeless)} out of data.tasks")
        check_no_products(chosen(self.data.tasks), "format.reverse=none with positions.kind=coupled")

    @property
    def swap(self) -> Swap:
        return Swap(tokenizer=self.tokenizer, positions=self.positions, format=self.format)

    @property
    def test_cells(self) -> list[Cell]:
        return self.evaluation.lengths.tested(self.data.tasks)
