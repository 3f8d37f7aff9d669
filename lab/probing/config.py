"""The config of `lab.probe`: a model, the sums or pairs that it is asked, and the instruments. Does not import
torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import yaml
from pydantic import Field, field_validator, model_validator

from lab.config.schema import LONGEST, DigitCounts, RunConfig, Section

COMPETENCE = "competence"
"""The instrument that every probing run begins with."""
_HERE = Path(__file__).parent
_ANY, _SUMS = (
    yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in (_HERE / "instruments.yaml", _HERE / "addition/instruments.yaml")
)
LOOK_FOR: Mapping[str, str] = _ANY | _SUMS
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


class PairsConfig(Section):
    """Pairs of prompts: problems of a task whose numbers differ in one thing, or a file of one's own."""

    task: str = ""
    """The key of a number task, such as max_float."""
    change: Literal["first", "middle", "last", "comparison", "order", "point"] = "first"
    """What differs: one digit, so that the answer changes at its first token, in the middle, or at its last token
    alone; one digit, so that the other number becomes the larger one; the order of the numbers; or where the point
    is."""
    length: int = Field(default=3, ge=1, le=LONGEST)
    """How many digits the longest part of the longest number has."""
    count: int = Field(default=32, ge=2)
    """Number of pairs. Components are chosen on one half, and measured on the other."""
    template: str = ""
    """How a pretrained model is asked for a problem of the task, such as "max({a}, {b}) = "; NUPA's prompt if empty."""
    right: Literal["first", "likelier"] = "first"
    """When a pair of a task counts as answered right: if each answer is the most likely of all tokens, or is likelier
    than the other one. Pairs that are answered wrong are left out."""
    file: str = ""
    """A file of pairs, .jsonl or .csv, with the fields base, source, base_answer and source_answer."""
    roles: str = ""
    """A regular expression with named groups for the file's prompts: the tokens of a group have its name as their role.
    """
    read: Literal["whole", "first"] = "whole"
    """Whether the answers in the file must be one token each, or are read at the first token at which they differ."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.task) == bool(self.file):
            raise ValueError("give a task, such as max_float, or a file of pairs")
        return self


class ProbeConfig(RunConfig):
    COMMAND = "probe"
    SMOKE = ("sums.per_length=8", "sums.pairs=8", "sums.probed=64", "examples=1")

    subject: str
    """The model: a run directory, a folder of adapters, a hub name or an embedded model."""
    instruments: list[Instrument] = Field(default=["alignment", "destinations", "interchange", "illusion", "surgery"])
    """The instruments, in the order in which they measure."""
    sums: SumsConfig = SumsConfig()
    pairs: PairsConfig | None = None
    """Pairs of prompts to measure with instead of sums."""
    batch_size: int = Field(default=64, ge=1)
    """Sums per forward pass."""
    examples: int = Field(default=2, ge=0)
    """Number of sums whose attention patterns are shown on the page."""

    @model_validator(mode="before")
    @classmethod
    def _instruments_of_pairs(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("pairs") and "instruments" not in given:
            return {**given, "instruments": ["patching", "attribution", "logit_lens"]}
        return given

    @model_validator(mode="after")
    def _sums_for_instruments_of_sums(self) -> Self:
        wrong = [name for name in self.instruments if name in _SUMS] if self.pairs else []
        if wrong:
            raise ValueError(f"instruments: {', '.join(wrong)} take sums and no pairs; leave pairs out, or them")
        return self

    @model_validator(mode="after")
    def _columns_whose_digits_vary(self) -> Self:
        if self.pairs:
            return self
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
