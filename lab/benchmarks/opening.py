"""Makes a benchmark from its config."""

from lab.benchmarks.benchmark import Benchmark, Subset
from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.own_questions import OwnQuestions
from lab.benchmarks.sums.carry_free import CarryFree
from lab.benchmarks.sums.two_integers import TwoIntegers
from lab.config.evaluation import BenchmarkConfig, CarryFreeConfig, NupaConfig, OwnQuestionsConfig, TwoIntegersConfig
from lab.config.notation import FormatConfig
from lab.inference.engine import Engine


def open_benchmark(
    config: BenchmarkConfig,
    seed: int,
    limit: int | None = None,
    engine: Engine | None = None,
) -> Benchmark:
    """The benchmark of a config.

    Args:
        config: the benchmark's config.
        seed: the seed from which problems are drawn.
        limit: the most questions to ask, spread evenly; None asks all.
        engine: the engine that will answer; it decides the number format, and which problems fit its window.

    Raises TaskError if a file of problems cannot be used.
    """
    match config:
        case NupaConfig():
            whole: Benchmark = Nupa.from_config(config, seed, engine.format if engine else FormatConfig())
            if engine:
                whole = whole.within_window(engine)
        case TwoIntegersConfig():
            whole = TwoIntegers(config, seed)
        case CarryFreeConfig():
            whole = CarryFree(config, seed)
        case OwnQuestionsConfig():
            whole = OwnQuestions(config, seed)
    return whole if limit is None else Subset(whole, limit)
