"""What a config of `lab.sweep` may say: a command, what is tried in its config, where, and what is shown. No torch.

Every combination of `grid` with every one of `cells` is a cell; every cell with every seed is a run of the command.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from lab.config.cost import CostConfig
from lab.config.evaluation import FREE_ON_RESUMING, EvaluateConfig
from lab.config.finetuning import FinetuneConfig
from lab.config.pretraining import PretrainConfig
from lab.config.schema import FolderName, RunConfig, Section
from lab.probing.config import ProbeConfig
from lab.smallest_adder.config import AdderConfig


class Command(NamedTuple):
    """A command that a sweep can run."""

    schema: type[RunConfig]
    words: tuple[str, ...]
    """What follows ``python -m`` before the config."""
    free: tuple[str, ...] = ()
    """Keys that a run may have otherwise when it is taken up."""


COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "finetune": Command(FinetuneConfig, ("lab.finetune",)),
        "pretrain": Command(PretrainConfig, ("lab.pretrain",)),
        "evaluate": Command(EvaluateConfig, ("lab.evaluate",), FREE_ON_RESUMING),
        "cost": Command(CostConfig, ("lab.cost",)),
        "probe": Command(ProbeConfig, ("lab.probe",)),
        "adder": Command(AdderConfig, ("lab.adder", "train")),
    }
)

_NOT_OF_A_CELL = ("name", "seed", "output", "resume", "overwrite")


class LocalLauncherConfig(Section):
    """Processes on this machine. They end when the sweep does, however it ends."""

    kind: Literal["local"] = "local"
    jobs: int = Field(default=1, ge=1)
    """Runs at a time. They share the cores evenly (OMP_NUM_THREADS, where it is not set already)."""
    gpus: list[int] = Field(default=[])
    """Devices that are dealt out, one to a run at a time (CUDA_VISIBLE_DEVICES); where empty, all runs see all of
    them."""

    @model_validator(mode="after")
    def _a_device_each(self) -> Self:
        if self.gpus and (len(set(self.gpus)) < len(self.gpus) or len(self.gpus) < self.jobs):
            raise ValueError(f"gpus should name a device for each of jobs={self.jobs}, none twice")
        return self


class SlurmLauncherConfig(Section):
    """Jobs of SLURM, by submitit. They go on when the sweep ends; started again, it waits for those that do."""

    kind: Literal["slurm"] = "slurm"
    cluster: Literal["slurm", "local"] = "slurm"
    """local: jobs of submitit on this machine, to rehearse a sweep where there is no SLURM."""
    jobs: int = Field(default=64, ge=1)
    """Submitted at a time."""
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    gpus: int = Field(default=1, ge=0)
    """Of a job, as are the next three."""
    cpus: int = Field(default=8, ge=1)
    memory_gb: int | None = Field(default=None, ge=1)
    minutes: int = Field(default=60, ge=1)
    requeues: int = Field(default=3, ge=0)
    """How often a job that was out of time is queued again; it goes on where it was."""
    setup: list[str] = Field(default=[])
    """Lines of shell before the command, such as "module load cuda"."""


class LengthCurvesResults(Section):
    """Exact match by length, of sweeps of `lab.pretrain`. Cells that differ in data.tasks alone are one line."""

    kind: Literal["length_curves"] = "length_curves"


class ValuesResults(Section):
    """Figures by cell. A path is of keys in summary.json, such as after.add_integer.ranges.S.exact_match; * stands for
    any key, and all that it matches is taken together; probe_alignment:0.value.3 is of probe_alignment.json."""

    kind: Literal["values"] = "values"
    shares: dict[str, str] = Field(default={})
    """By the name to show, paths of proportions of problems, which are shown in percent."""
    means: dict[str, str] = Field(default={})
    """Likewise, of any other numbers."""

    @model_validator(mode="after")
    def _something_to_show(self) -> Self:
        if not self.shares and not self.means:
            raise ValueError("shares or means should name a path at least")
        if both := self.shares.keys() & self.means.keys():
            raise ValueError(f"{min(both)} is a name in both shares and means")
        return self


class SweepConfig(Section):
    name: FolderName
    """The sweep's directory is <output>/<name>; its runs are beside it, <name>_<cell>_<seed>."""
    run_prefix: FolderName | None = None
    """What the names of runs begin with instead of `name`."""
    output: Path = Path("checkpoints")
    title: str = ""
    """Of the table and the figure."""
    command: Literal["finetune", "pretrain", "evaluate", "cost", "probe", "adder"]
    config: Path
    """Of the command; relative to this file."""
    seeds: list[int] = Field(default=[0], min_length=1)
    changes: dict[str, JsonValue] = Field(default={})
    """Keys of the command's config, the same in every cell."""
    grid: dict[str, Annotated[list[JsonValue], Field(min_length=1)]] = Field(default={})
    """Keys of the command's config and the values to try, in all combinations."""
    cells: dict[str, dict[str, JsonValue]] = Field(default={})
    """Settings by name: keys of the command's config and their values."""
    only: list[str] = Field(default=[])
    """Which of `cells` to run and show; all where empty."""
    results: Annotated[LengthCurvesResults | ValuesResults, Field(discriminator="kind")]
    """What is shown of the runs, as means over seeds."""
    launcher: Annotated[LocalLauncherConfig | SlurmLauncherConfig, Field(discriminator="kind")] = LocalLauncherConfig()

    @property
    def path(self) -> Path:
        return self.output / self.name

    @field_validator("seeds")
    @classmethod
    def _different(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) < len(seeds) or not all(0 <= seed < 2**32 for seed in seeds):
            raise ValueError("should be different numbers from 0 up, below 2 ** 32")
        return seeds

    @model_validator(mode="after")
    def _cells_of_the_command(self) -> Self:
        if not self.grid and not self.cells:
            raise ValueError("grid or cells should name something to try")
        given = [*self.changes, *self.grid, *dict.fromkeys(key for cell in self.cells.values() for key in cell)]
        for key in given:
            if key.split(".")[0] in _NOT_OF_A_CELL:
                raise ValueError(f"{key} is not a cell's to set: the sweep names, seeds and resumes its runs")
        if both := self.grid.keys() & given[len(self.changes) + len(self.grid) :]:
            raise ValueError(f"{min(both)} is set by both grid and cells")
        if unknown := [name for name in self.only if name not in self.cells]:
            raise ValueError(f"only: {unknown[0]} is none of cells: {', '.join(self.cells) or 'there are none'}")
        if self.results.kind == "length_curves" and self.command != "pretrain":
            raise ValueError("results.kind=length_curves is of command=pretrain")
        return self
