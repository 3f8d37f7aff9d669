"""The config of `lab.sweep`: a command, what to try in its config, where to run it, and what to show. No torch.

Every combination of the values in `grid`, with each of `cells`, is a cell. Every cell with every seed is a run.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from lab.adders.config import AdderConfig
from lab.config.cost import CostConfig
from lab.config.evaluation import EvaluateConfig
from lab.config.finetuning import FinetuneConfig
from lab.config.pretraining import PretrainConfig
from lab.config.schema import FolderName, RunConfig, Section
from lab.probing.config import ProbeConfig


class Command(NamedTuple):
    """A command that a sweep can run."""

    schema: type[RunConfig]
    words: tuple[str, ...]
    """What stands between ``python -m`` and the config."""


COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "finetune": Command(FinetuneConfig, ("lab.finetune",)),
        "pretrain": Command(PretrainConfig, ("lab.pretrain",)),
        "evaluate": Command(EvaluateConfig, ("lab.evaluate",)),
        "cost": Command(CostConfig, ("lab.cost",)),
        "probe": Command(ProbeConfig, ("lab.probe",)),
        "adder": Command(AdderConfig, ("lab.adder", "train")),
    }
)


class LocalLauncherConfig(Section):
    """Runs as processes on this machine. When the sweep ends, for whatever reason, they end too."""

    kind: Literal["local"] = "local"
    jobs: int = Field(default=1, ge=1)
    """How many runs are active at a time. They share the cores evenly (through OMP_NUM_THREADS, unless it is set)."""
    gpus: list[int] = Field(default=[])
    """The GPUs to use, one for each active run (through CUDA_VISIBLE_DEVICES). If empty, all runs see all GPUs."""

    @model_validator(mode="after")
    def _a_device_each(self) -> Self:
        if self.gpus and (len(set(self.gpus)) < len(self.gpus) or len(self.gpus) < self.jobs):
            raise ValueError(f"gpus should name a different device for each of jobs={self.jobs}")
        return self


class SlurmLauncherConfig(Section):
    """Runs as SLURM jobs, through submitit. Jobs continue when the sweep ends; a restarted sweep waits for them."""

    kind: Literal["slurm"] = "slurm"
    cluster: Literal["slurm", "local"] = "slurm"
    """local: submitit's local jobs, to try out a sweep on this machine without SLURM."""
    jobs: int = Field(default=64, ge=1)
    """How many jobs are submitted or running at a time."""
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    gpus: int = Field(default=1, ge=0)
    """Number of GPUs of each job. The next three keys are also per job."""
    cpus: int = Field(default=8, ge=1)
    memory_gb: int | None = Field(default=None, ge=1)
    minutes: int = Field(default=60, ge=1)
    requeues: int = Field(default=3, ge=0)
    """How many times a job that runs out of time is queued again. It continues where it stopped."""
    setup: list[str] = Field(default=[])
    """Shell lines that run before the command, such as "module load cuda"."""


class LengthCurvesResults(Section):
    """Exact match by length, for sweeps of `lab.pretrain`. Cells that differ only in data.tasks share a curve."""

    kind: Literal["length_curves"] = "length_curves"


class ValuesResults(Section):
    """Figures by cell. A path consists of keys in summary.json, such as after.add_integer.ranges.S.strict.exact_match.
    A * stands for any key; everything that it matches is pooled. probe_alignment:0.value.3 is a path in
    probe_alignment.json."""

    kind: Literal["values"] = "values"
    shares: dict[str, str] = Field(default={})
    """Names to show, each with the path of a proportion of problems. Proportions are shown in percent."""
    means: dict[str, str] = Field(default={})
    """Names to show, each with the path of any other number."""

    @model_validator(mode="after")
    def _something_to_show(self) -> Self:
        if not self.shares and not self.means:
            raise ValueError("shares or means should name at least one path")
        if both := self.shares.keys() & self.means.keys():
            raise ValueError(f"{min(both)} is a name in both shares and means")
        return self


class SweepConfig(Section):
    name: FolderName
    """The name of the sweep. Its directory is <output>/<name>; its runs are beside it, as <name>_<cell>_<seed>."""
    run_prefix: FolderName | None = None
    """The first part of the names of runs, if it is not `name`."""
    output: Path = Path("checkpoints")
    title: str = ""
    """The title of the table and the figure. With `length_curves`, the table adds that it shows exact match."""
    command: Literal["finetune", "pretrain", "evaluate", "cost", "probe", "adder"]
    config: Path
    """The config of the command; its path is relative to this file."""
    seeds: list[int] = Field(default=[0], min_length=1)
    changes: dict[str, JsonValue] = Field(default={})
    """Keys of the command's config, with values that are the same in every cell."""
    grid: dict[str, Annotated[list[JsonValue], Field(min_length=1)]] = Field(default={})
    """Keys of the command's config and the values to try, in all combinations."""
    cells: dict[str, dict[str, JsonValue]] = Field(default={})
    """Settings by name: keys of the command's config and their values."""
    only: list[str] = Field(default=[])
    """The names of those `cells` to run and show; all of them if empty."""
    results: Annotated[LengthCurvesResults | ValuesResults, Field(discriminator="kind")]
    """What to show of the runs. Figures are means over seeds."""
    launcher: Annotated[LocalLauncherConfig | SlurmLauncherConfig, Field(discriminator="kind")] = LocalLauncherConfig()

    @property
    def path(self) -> Path:
        return self.output / self.name

    @field_validator("seeds")
    @classmethod
    def _different(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) < len(seeds) or not all(0 <= seed < 2**32 for seed in seeds):
            raise ValueError("should be different numbers, each at least 0 and below 2 ** 32")
        return seeds

    @model_validator(mode="after")
    def _cells_of_the_command(self) -> Self:
        if not self.grid and not self.cells:
            raise ValueError("grid or cells should name something to try")
        given = [*self.changes, *self.grid, *dict.fromkeys(key for cell in self.cells.values() for key in cell)]
        for key in given:
            if key.split(".")[0] in RunConfig.model_fields:
                raise ValueError(f"a cell cannot set {key}: the sweep itself names, seeds and resumes its runs")
        if both := self.grid.keys() & given[len(self.changes) + len(self.grid) :]:
            raise ValueError(f"{min(both)} is set by both grid and cells")
        if unknown := [name for name in self.only if name not in self.cells]:
            raise ValueError(f"only: {unknown[0]} is not one of cells: {', '.join(self.cells) or 'there are none'}")
        if self.results.kind == "length_curves" and self.command != "pretrain":
            raise ValueError("results.kind=length_curves needs command=pretrain")
        return self
