"""What a config of `lab adder train` may say: a small architecture, groups of seeds, and their schedule. Does not
import torch."""

from itertools import pairwise
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, PositiveFloat, model_validator

from lab.config.schema import Betas, Rate, RunConfig, Section


class GptAdderConfig(Section):
    """A plain GPT of one layer: learned positions, layer norms, GELU, head tied to the embedding."""

    kind: Literal["gpt"] = "gpt"
    width: int = Field(default=16, ge=1)
    heads: int = Field(default=2, ge=1)
    inner: int = Field(default=32, ge=1)
    """Hidden units of the feed-forward."""

    @model_validator(mode="after")
    def _whole_heads(self) -> Self:
        if self.width % self.heads:
            raise ValueError("width should be a multiple of heads")
        return self


class TinyAdderConfig(Section):
    """Llama's layer: RMS norms, heads of one rotary pair each, SwiGLU. Everything in it is learned."""

    kind: Literal["tiny"] = "tiny"
    width: int = Field(default=4, ge=2)
    heads: int = Field(default=2, ge=1)
    inner: int = Field(default=6, ge=1)
    """Hidden units of the feed-forward."""
    values: int = Field(default=2, ge=1)
    """The dimensions of a head's values. Its queries and keys have two dimensions, one rotary pair."""
    period: PositiveFloat | tuple[PositiveFloat, PositiveFloat] = 12
    """The number of tokens after which rotary positions repeat; the two numbers of a sum stand twelve tokens apart. If
    two values are given, the period is learned, and begins between them."""
    tied: bool = False
    """Whether the embedding is also the head."""
    gains: Literal["all", "last", "none"] = "all"
    """Which norms have learned gains; the last norm is the one before the head."""
    gain: float = Field(default=1, gt=0)
    """The initial value of the gains."""
    signs: bool = False
    """Whether gains begin with random signs. The residual stream contains the latest digit of the answer with a plus
    sign, but the computation of the carry needs it with a minus sign. With a tied head, this works only if the gains of
    the last norm reverse the order of the digits."""
    ties: list[Literal["gate", "down"]] = Field(default=[])
    """Feed-forward weights that are shared. gate: the gate is the up projection. down: the down projection is minus the
    transpose of the up projection."""
    radius: float = Field(default=1, gt=0)
    """The radius of the arc on which the embedding begins."""
    height: float = Field(default=0, ge=0)
    """The height of that arc's plane above zero. If it is not 0, queries and keys at first read only the direction that
    all digits share, so that attention begins almost by position alone."""
    sharpness: float = Field(default=1, gt=0)
    """The standard deviation of the initial weights of queries and keys."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if isinstance(self.period, tuple) and self.period[0] >= self.period[1]:
            raise ValueError("period should be one number, or two of which the second is larger")
        if self.height and self.width < 3:
            raise ValueError("height needs a width of 3 or more: an arc has two dimensions")
        return self


class ReducedAdderConfig(Section):
    """One layer of one head with as few numbers as possible; what is left out can be chosen
    (lab/smallest_adder/models.py, ReducedAdder)."""

    kind: Literal["reduced"] = "reduced"
    width: int = Field(default=2, ge=1)
    hidden: int = Field(default=2, ge=1)
    """Hidden units of the feed-forward."""
    embedding: Literal["table", "arc", "ramp", "unit"] = "arc"
    """table: ten points. arc: points on a circle, from three numbers (width 2). ramp: from one number (width 1). unit:
    the digits themselves, with nothing to learn (width 1)."""
    attention: Literal["content", "position"] = "position"
    """content: queries and keys are maps of the tokens, turned by rotary positions. position: two numbers, the same for
    all tokens, so that attention depends on distances alone."""
    output: Literal["matrix", "identity"] = "identity"
    """The value and output projections as one map: a matrix, or none (identity)."""
    gates: Literal["free", "hinges"] = "hinges"
    """free: each unit has its own directions. hinges: two units share their directions, with opposite signs, and so
    form a step."""
    head: Literal["free", "tied", "nearest"] = "tied"
    """free: ten vectors. tied: the embedding. nearest: the digit whose point in the embedding is nearest."""
    period: float = Field(default=12, gt=0)
    """The number of tokens after which rotary positions repeat; the two numbers of a sum stand twelve tokens apart."""

    @model_validator(mode="after")
    def _fits_its_width(self) -> Self:
        if self.width != {"arc": 2, "ramp": 1, "unit": 1}.get(self.embedding, self.width):
            raise ValueError("embedding=arc needs width=2, embedding=ramp and embedding=unit need width=1")
        if self.gates == "hinges" and self.hidden != 2:
            raise ValueError("gates=hinges needs hidden=2")
        return self


AdderModelConfig: TypeAlias = GptAdderConfig | TinyAdderConfig | ReducedAdderConfig


class GroupConfig(Section):
    """Several seeds trained at once; the better ones go on (successive halving, Jamieson and Talwalkar 2016)."""

    seeds: int = Field(default=1, ge=1)
    """How many seeds begin. Each has its own initial weights; all see the same problems."""
    halvings: list[tuple[int, int]] = Field(default=[])
    """Pairs [steps, seeds]: after this many steps, only this many seeds go on, those with the lowest validation
    loss."""

    @model_validator(mode="after")
    def _fewer_each_time(self) -> Self:
        steps = [0, *(after for after, _ in self.halvings)]
        left = [self.seeds, *(seeds for _, seeds in self.halvings)]
        falls = all(more > fewer >= 1 for more, fewer in pairwise(left))
        if not falls or any(now >= later for now, later in pairwise(steps)):
            raise ValueError("halvings should be in the order of their steps, each with fewer seeds than before")
        return self


class GrokfastConfig(Section):
    """Adds to each gradient a multiple of its slow mean (Lee et al. 2024)."""

    gain: float = Field(default=2, gt=0)
    decay: float = Field(default=0.98, gt=0, lt=1)
    """The decay of the mean at each step."""


class AdderTrainingConfig(Section):
    """AdamW (Loshchilov and Hutter 2019) with a linear warm-up, and a cosine decay to a hundredth of the learning
    rate."""

    max_steps: int = Field(default=3000, ge=1)
    batch_size: int = Field(default=128, ge=1)
    learning_rate: Rate = 1e-2
    warmup_steps: int = Field(default=100, ge=0)
    weight_decay: float = Field(default=0.01, ge=0)
    betas: Betas = (0.9, 0.99)
    clip: float = Field(default=1.0, gt=0)
    """The largest norm of each seed's gradient; larger ones are scaled down to it."""
    grokfast: GrokfastConfig | None = None
    complements: float = Field(default=1.0, ge=0, le=1)
    """In three of four training problems, some digits are changed, to make columns add up to 9 or to put in zeros (see
    `batch` in lab/smallest_adder/rows.py). This is the largest share of changed digits at the first step; it falls
    linearly to 0."""
    complements_end: float = Field(default=0.7, gt=0, le=1)
    """The share of the steps after which it is 0, so that all problems are uniform."""
    evaluate_every: int = Field(default=100, ge=1)
    """Steps between validations; each is a checkpoint too, and the best weights of all are kept."""
    valid_problems: int = Field(default=2000, ge=1)
    enough: float = Field(default=1.0, gt=0, le=1)
    """Training ends when this share of the validation problems is right."""


class AdderConfig(RunConfig):
    COMMAND = "adder"
    SMOKE = (
        "group={seeds: 2, halvings: []}",
        "training.max_steps=2",
        "training.warmup_steps=1",
        "training.evaluate_every=1",
        "training.valid_problems=20",
    )

    model: Annotated[AdderModelConfig, Field(discriminator="kind")]
    group: GroupConfig = GroupConfig()
    training: AdderTrainingConfig = AdderTrainingConfig()

    @model_validator(mode="after")
    def _halvings_at_validations(self) -> Self:
        every = self.training.evaluate_every
        if any(after % every or after >= self.training.max_steps for after, _ in self.group.halvings):
            raise ValueError(f"group.halvings should be at validations (every {every} steps), before the last step")
        return self
