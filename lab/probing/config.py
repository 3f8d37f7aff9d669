"""The config of `lab.probe`: a model, the sums that it is asked, and the instruments. Does not import torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import yaml
from pydantic import Field, field_validator, model_validator

from lab.config.schema import LONGEST, DigitCounts, RunConfig, Section

COMPETENCE = "competence"
"""The instrument that every probing run begins with."""
LOOK_FOR: Mapping[str, str] = yaml.safe_load(Path(__file__).with_name("instruments.yaml").read_text(encoding="utf-8"))
"""Every instrument by name, and what to look for in its figures."""
if TYPE_CHECKING:
    Instrument = str
else:
    Instrument = Literal[tuple(name for name in LOOK_FOR if name != COMPETENCE)]


class SumsConfig(Section):
    """Integer additions, in the format of the model. Both numbers have the same number of digits."""

    template: str = ""
    """How a pretrained model is asked, such as "{a} + {b} = ", with the space that comes before the answer if there is
    one; the NUPA prompt if empty. Models from scratch are asked in their own notation."""
    lengths: DigitCounts = Field(default=[2, 3, 4, 5], min_length=1)
    """Numbers of digits at which alignment, destinations and surgery are measured."""
    trained: int = Field(default=4, ge=2, le=LONGEST)
    """A number of digits that the model can add. All other instruments use sums of this length; surgery also measures
    on them what it gives the model at other lengths."""
    column: int = Field(default=2, ge=1)
    """The column whose digit and incoming carry are studied; 0 is the column of the ones."""
    stratum: Literal["uniform", "carries", "nines_short", "nines"] = "uniform"
    """The stratum from which the sums of each length are drawn (lab/numbers/additions.py)."""
    per_length: int = Field(default=100, ge=8)
    probed: int = Field(default=2000, ge=8)
    """Number of sums for the instruments that fit something: probes, head_contents, helix and heuristics. It should be
    much larger than the width of the residual stream and than 100, the number of digit pairs. With fewer sums, the
    control that probes only the operands looks worse than it is."""
    pairs: int = Field(default=100, ge=8)
    """Number of pairs of sums that differ only in the carry into `column`."""

    @model_validator(mode="after")
    def _column_of_the_sum(self) -> Self:
        if self.column >= self.trained:
            raise ValueError(f"column should be below trained={self.trained}, the number of digits of both operands")
        return self


class ProbeConfig(RunConfig):
    COMMAND = "probe"
    SMOKE = ("sums.per_length=8", "sums.pairs=8", "sums.probed=64", "examples=1")

    subject: str
    """The model: a run directory, a folder of adapters, a hub name or an embedded model."""
    instruments: list[Instrument] = Field(default=["alignment", "destinations", "interchange", "illusion", "surgery"])
    """The instruments, in the order in which they measure."""
    sums: SumsConfig = SumsConfig()
    batch_size: int = Field(default=64, ge=1)
    """Sums per forward pass."""
    examples: int = Field(default=2, ge=0)
    """Number of sums whose attention patterns are shown on the page."""

    @model_validator(mode="after")
    def _columns_whose_digits_vary(self) -> Self:
        wanting = [name for name in self.instruments if name in ("interchange", "illusion", "surgery", "helix")]
        if wanting and self.sums.column > self.sums.trained - 2:
            raise ValueError(
                f"sums.column={self.sums.column} is the highest of sums.trained={self.sums.trained} digits, which is "
                f"never 0; {', '.join(wanting)} need sums.trained of at least {self.sums.column + 2}"
            )
        return self

    @field_validator("instruments")
    @classmethod
    def _once(cls, instruments: list[Instrument]) -> list[Instrument]:
        if not instruments or len(set(instruments)) < len(instruments):
            raise ValueError("should name at least one instrument, none twice")
        return instruments


class BenchmarkConfig(RunConfig):
    """The config of `lab.probe benchmark`."""

    COMMAND = "probe benchmark"
    SMOKE = ("adders=[ones first]", "pairs=4", "steps=2", "das_steps=2")

    adders: list[str] = Field(default=[])
    """Names of the adders (lab/probing/benchmark/families); all of them if empty."""
    seeds: list[int] = Field(default=[1], min_length=1)
    """Seeds of the adders: each seed rotates the residual stream and shuffles the heads. The lab's instruments were
    developed on seed 0, so do not report scores on it."""
    pairs: int = Field(default=16, ge=4)
    """Number of pairs that differ only in the carry. Directions are learned from eight times as many pairs with
    independent digits, and tested on four times as many."""
    steps: int = Field(default=10, ge=2)
    """Number of points of integrated gradients."""
    das_steps: int = Field(default=30, ge=1)
    """Number of gradient steps of distributed alignment search (DAS)."""
