"""Makes a benchmark from its config."""

from lab.benchmarks.benchmark import Benchmark, Subset
from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.sums.carry_free import CarryFree
from lab.benchmarks.sums.two_integers import TwoIntegers
from lab.config.evaluation import CarryFreeConfig, NupaConfig, TwoIntegersConfig
from lab.config.notation import FormatConfig
from lab.inference.engine import Engine


def open_benchmark(
    config: NupaConfig | TwoIntegersConfig | CarryFreeConfig,
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

    Raises TaskError if a file of published problems cannot be used.
    """
    if isinstance(config, NupaConfig):
        whole: Benchmark | Nupa = Nupa.from_config(config, seed, engine.format if engine else FormatConfig())
        if engine:
            whole = whole.within_window(engine)
    else:
        whole = TwoIntegers(config, seed) if isinstance(config, TwoIntegersConfig) else CarryFree(config, seed)
    return whole if limit is None else Subset(whole, limit)
