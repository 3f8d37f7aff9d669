"""The config of `lab.finetune`. Does not import torch."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from lab.config.earlier import with_parts
from lab.config.notation import FormatConfig
from lab.config.parts import Parts, Uses, check_parts
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
from lab.numbers.additions import VARIED
from lab.numbers.representations import Integer
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


class Swap(Section):
    """What a tuned model changes in its base model apart from the adapters; it is saved beside them."""

    uses: Uses = Field(default=[])
    tokenizer: TextTokenizerConfig = TextTokenizerConfig()
    parts: Parts = Field(default={})
    format: FormatConfig = FormatConfig()

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, given: Any) -> Any:
        return with_parts(given)

    @property
    def of_model(self) -> bool:
        """Whether the network or its tokens change, and not only the format of the questions."""
        return self.tokenizer.digits.kind != "original" or bool(self.parts) or self.hinted

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
    style: Literal["direct", "chat", "rule_following"] = "direct"
    """direct: the answer alone. chat: the question as a user's message in the model's chat template, the answer as the
    assistant's; ask such a model with benchmark.setting=chat. rule_following: the prompt contains a rule, and the
    response executes it before the answer (section 4). The test uses the same style."""
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


class ReplayConfig(Section):
    """Ordinary text that is trained along with the problems; the model's predictions on it should not change
    (lab/tune/replay_loss.py)."""

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
    replay: ReplayConfig = ReplayConfig()
    bias_learning_rate: Rate = 0.3
    """Learning rate of the biases and slopes that parts add to attention scores; its schedule is that of the other
    parameters. It is large because biases and slopes must grow to the size of attention scores, about 1, whereas
    weights are about 0.01."""
    gradient_checkpointing: bool = False
    """Compute the activations of a layer again in the backward pass instead of keeping them: less memory, a third more
    time."""


class EvaluationConfig(Section):
    lengths: Lengths = Lengths()
    """Lengths to test at, inside and outside the training lengths. A task skips lengths at which it is never tested."""
    problems_per_range: int = Field(default=100, ge=1)
    """Number of test problems of each task in each of its ranges S, M, L and XL, spread over the lengths of the range;
    if there are fewer, all of them are used."""
    batch_size: int = Field(default=128, ge=1)


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
    uses: Uses = Field(default=[])
    """Modules that bring parts of your own (lab/parts)."""
    parts: Parts = Field(default={})
    """Ideas about positions and attention that are put into the model (lab/parts), by their kinds: `{coupled: {}}`
    makes it a graft (docs/guides/graft.md). Without parts, the model is tuned as it is."""
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
        if self.data.style != "direct" and self.format != FormatConfig():
            what = "rules are" if self.data.style == "rule_following" else "chats are"
            raise ValueError(f"{what} written with plain numbers: leave format out, or use data.style=direct")
        if self.data.style == "rule_following" and self.data.curriculum > 1:
            raise ValueError("data.curriculum needs direct answers: leave it out, or use data.style=direct")
        return self

    @model_validator(mode="after")
    def _digits_that_have_places(self) -> Self:
        if self.format.index_hints != "none" and self.tokenizer.digits.kind == "k_digit":
            raise ValueError("format.index_hints stand before single digits: use tokenizer.digits.kind=one_digit")
        return self

    @model_validator(mode="after")
    def _parts_that_fit(self) -> Self:
        check_parts(self)
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
    def _layers_that_can_be_computed_again(self) -> Self:
        if self.training.gradient_checkpointing and self.parts:
            raise ValueError("training.gradient_checkpointing computes layers without parts: leave one of them out")
        return self

    @property
    def swap(self) -> Swap:
        return Swap(uses=self.uses, tokenizer=self.tokenizer, parts=self.parts, format=self.format)

    @property
    def test_cells(self) -> list[Cell]:
        return self.evaluation.lengths.tested(self.data.tasks)
