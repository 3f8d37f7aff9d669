"""How each benchmark is checked, opened and shown. A new benchmark needs a case in `open_benchmark` and a row in
REPORTS.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lab.benchmarks import own_questions
from lab.benchmarks.benchmark import Benchmark, Subset
from lab.benchmarks.length_curves import figures as length_figures
from lab.benchmarks.length_curves import tables as length_tables
from lab.benchmarks.nupa import figures as nupa_figures
from lab.benchmarks.nupa import in_short as nupa_in_short
from lab.benchmarks.nupa import tables as nupa_tables
from lab.benchmarks.nupa.files import read_published
from lab.benchmarks.nupa.published import PUBLISHED
from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.own_questions import OwnQuestions
from lab.benchmarks.sums import figures as sum_figures
from lab.benchmarks.sums import tables as sum_tables
from lab.benchmarks.sums.carry_free import CarryFree
from lab.benchmarks.sums.two_integers import TwoIntegers
from lab.config.evaluation import BenchmarkConfig, CarryFreeConfig, NupaConfig, OwnQuestionsConfig, TwoIntegersConfig
from lab.config.notation import FormatConfig
from lab.config.schema import chosen
from lab.drawing.tables import Table
from lab.engines.engine import Engine, NotatedEngine
from lab.errors import TaskError
from lab.text.rule_following import check_rules


def check_benchmark(config: BenchmarkConfig) -> None:
    """Raises LabError if a file or folder that the config names cannot be used. Call it before loading a model."""
    match config:
        case NupaConfig():
            if config.setting == "rule_following":
                check_rules(chosen(config.tasks), config.rules)
            if config.published:
                read_published(config.published)
        case OwnQuestionsConfig():
            own_questions.read_file(config.file)


def open_benchmark(
    config: BenchmarkConfig, seed: int, limit: int | None = None, engine: Engine | None = None
) -> Benchmark:
    """The benchmark of a config.

    Args:
        config: the benchmark's config.
        seed: the seed from which problems are drawn.
        limit: asks at most this many questions, spread evenly; None asks all.
        engine: the engine that will answer. It determines the number format, and which problems fit its window.

    Raises TaskError if a file of problems cannot be used, or if the engine's model cannot read the questions.
    """
    notated = engine if isinstance(engine, NotatedEngine) else None
    if notated and not isinstance(config, NupaConfig):
        what = "this model reads only its own notation: use benchmark.kind=nupa"
        raise TaskError(f"benchmark.kind={config.kind} asks in words, and {what}")
    match config:
        case NupaConfig() if notated:
            whole: Benchmark = Nupa.in_notation(config, seed, notated.notation)
        case NupaConfig():
            whole = Nupa.from_config(config, seed, engine.format if engine else FormatConfig())
            if engine:
                whole = whole.within_window(engine)
        case TwoIntegersConfig():
            whole = TwoIntegers(config, seed)
        case CarryFreeConfig():
            whole = CarryFree(config, seed)
        case OwnQuestionsConfig():
            whole = OwnQuestions(config, seed)
    return whole if limit is None else Subset(whole, limit)


Summaries = Mapping[str, Any]
"""Summaries of one benchmark, by label; each has the type that the benchmark's `summarize` returns."""


class Report(NamedTuple):
    """How the summaries of a benchmark are shown."""

    title: str
    tables: Callable[[Summaries], dict[str, Table]]
    """All tables, by file name."""
    in_short: Callable[[Any], list[str]]
    """What one summary says, in the few lines that a command prints at its end."""
    draw: Callable[[Summaries, str, Path], None] | None = None
    """Draws the figures, under a title, into a folder."""
    compared: Callable[[Summaries], dict[str, Table]] | None = None
    """The tables of a comparison, if they differ from `tables`."""


REPORTS = {
    "nupa": Report(
        "NUPA",
        nupa_tables.all_tables,
        nupa_in_short.found,
        nupa_figures.all_figures,
        partial(nupa_tables.all_tables, published=PUBLISHED),
    ),
    "lengths": Report("By length", length_tables.all_tables, length_tables.in_short, length_figures.all_figures),
    "two_integers": Report(
        "The sum of two integers of 2-30 digits", sum_tables.all_tables, sum_tables.in_short, sum_figures.all_figures
    ),
    "carry_free": Report("Carry-free addition", sum_tables.all_tables, sum_tables.in_short, sum_figures.all_figures),
    "own_questions": Report("Questions of your own", own_questions.all_tables, own_questions.in_short),
}
"""The reports by the kind of the benchmark, which is also the name of its part of summary.json. The kind lengths is
what lab.pretrain measures."""
