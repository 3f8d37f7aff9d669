"""What a config of `lab adder train` may say: an adder whose numbers are not known yet, groups of seeds, and their
schedule. Does not import torch."""

from itertools import pairwise
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from lab.adders.references import Refused
from lab.adders.spec import Adder, Model, check
from lab.config.schema import Betas, Rate, RunConfig, Section

_Size: TypeAlias = Annotated[int, Field(ge=1, le=1024)]


class _Initial(Section):
    shape: list[_Size] = Field(default=[], max_length=2)
    """Empty for a single number."""


class NormalConfig(_Initial):
    """mean + std z, with z from the normal distribution; with `relative`, mean (1 + std z)."""

    kind: Literal["normal"] = "normal"
    mean: float | list[float] | Literal["identity"] = 0.0
    std: float = Field(default=1.0, ge=0)
    relative: bool = False


class UniformConfig(_Initial):
    """Between low and high; with `signs`, with a random sign each."""

    kind: Literal["uniform"] = "uniform"
    low: float
    high: float
    signs: bool = False


class _MatrixConfig(_Initial):
    shape: list[_Size] = Field(min_length=2, max_length=2)


class LinearConfig(_MatrixConfig):
    """As torch begins a linear map: uniform up to 1 / sqrt(inputs)."""

    kind: Literal["linear"] = "linear"


class ArcConfig(_MatrixConfig):
    """A point for each token on an arc of a circle, in a random plane, so that neighbours are near each other from the
    start."""

    kind: Literal["arc"] = "arc"
    radius: float = Field(default=1, gt=0)
    spread: float = 1.2
    """The angle of the last token, in radians; the first one has minus this."""
    height: float = Field(default=0, ge=0)
    """The height of the arc's plane above zero: a direction that all digits share."""
    noise: float = Field(default=0.05, ge=0)


class AlongConfig(_MatrixConfig):
    """Rows along the height of the arc of the same width that comes before, so that attention begins almost by position
    alone."""

    kind: Literal["along"] = "along"
    std: float = Field(default=1.0, gt=0)


class WavesConfig(_MatrixConfig):
    """For each position sines, then cosines: neighbouring positions are near each other from the start."""

    kind: Literal["waves"] = "waves"


InitialConfig: TypeAlias = NormalConfig | UniformConfig | LinearConfig | ArcConfig | AlongConfig | WavesConfig


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
    complements: float = Field(default=1.0, ge=0, le=1)
    """In three of four training problems, some digits are changed, to make columns add up to 9 or to put in zeros (see
    `batch` in lab/adders/rows.py). This is the largest share of changed digits at the first step; it falls
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

    numbers: dict[str, Annotated[InitialConfig, Field(discriminator="kind")]] = Field(min_length=1)
    """How each table begins; they are drawn in this order. lab/adders/spec.py describes the other parts of an adder."""
    model: Model
    prompt: list[int | str] = Field(default=[0, "a0..9", 0, 0, "b0..9", 0])
    answer: list[int | str] = Field(default=["s0..10"])
    vocabulary: int | None = None
    group: GroupConfig = GroupConfig()
    training: AdderTrainingConfig = AdderTrainingConfig()

    def declared(self, numbers: dict[str, Any], **facts: Any) -> dict[str, Any]:
        """The adder with these numbers, as plain values. `facts`: its other keys."""
        own = {"model": self.model.model_dump(exclude_defaults=True), "prompt": self.prompt, "answer": self.answer}
        return {"numbers": numbers} | own | ({"vocabulary": self.vocabulary} if self.vocabulary else {}) | facts

    @property
    def untrained(self) -> Adder:
        """The adder with zeros for numbers. Raises Refused if its parts do not fit."""
        zeros = {name: _zeros(initial.shape) for name, initial in self.numbers.items()}
        return check(self.declared(zeros))

    @model_validator(mode="after")
    def _fits(self) -> Self:
        try:
            self.untrained  # noqa: B018
        except Refused as error:
            raise ValueError(str(error)) from None
        return self

    @model_validator(mode="after")
    def _halvings_at_validations(self) -> Self:
        every = self.training.evaluate_every
        if any(after % every or after >= self.training.max_steps for after, _ in self.group.halvings):
            raise ValueError(f"group.halvings should be at validations (every {every} steps), before the last step")
        return self


def _zeros(shape: list[int]) -> Any:
    return [_zeros(shape[1:]) for _ in range(shape[0])] if shape else 0.0
