"""Measure a model on NUPA or a related benchmark, and compare runs.

The model is a local one (embedded, a checkpoint, a run directory, or a hub name), or any OpenAI-compatible endpoint,
such as the server of vLLM. Every answer is written to disk as soon as it arrives. If a run is killed, resume=true
continues it and asks only the questions without an answer, including those that an endpoint failed to answer.

    lab evaluate CONFIG [key.sub=value ...]                 measure, and write a run directory
    lab evaluate CONFIG [key.sub=value ...] export=FOLDER   write the NUPA problems of a config: JSON and parquet
    lab evaluate RUN [RUN ...] [out=FOLDER] [names=[NAME, ...]]
                                                            compare runs with each other and with the paper
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from lab import distributed
from lab.command import ResultsFolder, entry_point, is_config, is_word, read_config, read_options
from lab.config.describing import did_you_mean
from lab.config.evaluation import EndpointConfig, EvaluateConfig, LocalEngineConfig, NupaConfig
from lab.config.schema import Section
from lab.engines.api_key import needed_key
from lab.errors import ConfigError
from lab.models.sources import check_name
from lab.progress import quiet_libraries
from lab.runs import Run, put_in_place
from lab.shipped import shipped_configs

COMMAND = "lab evaluate"

_MANY_TASKS = 10
"""How many tasks take so long to draw that a line says what is being done."""


class CompareOptions(Section):
    """The options of a comparison of runs."""

    out: ResultsFolder = Path("comparison")
    """The folder for all tables and figures."""
    names: list[str] = Field(default=[])
    """What to call the runs, in their order; by default, the names of their directories."""


@entry_point
def main(arguments: list[str]) -> None:
    if any(part.startswith("export=") for part in arguments):
        export(arguments)
    elif arguments and is_word(arguments[0]) and not is_config(arguments[0]):
        compare(arguments)
    else:
        config = read_config(EvaluateConfig, arguments, COMMAND, __doc__ or "")
        config.check_run()
        check_inputs(config)
        evaluate(config)


def check_inputs(config: EvaluateConfig) -> None:
    """Raises LabError if a file or folder that the config names cannot be used, or if its endpoint lacks its key. Call
    it before loading a model."""
    if isinstance(config.engine, LocalEngineConfig):
        check_name(config.engine.model.name, "engine.model.name")
    if isinstance(config.engine, EndpointConfig):
        needed_key(config.engine)
    from lab.benchmarks.kinds import check_benchmark

    check_benchmark(config.benchmark)


def evaluate(config: EvaluateConfig) -> None:
    """Asks the model of a config every question of its benchmark, and writes a run directory."""
    quiet_libraries()
    from lab.api import engine_of
    from lab.benchmarks import arrivals
    from lab.benchmarks import compare as report
    from lab.benchmarks.benchmark import measure
    from lab.benchmarks.kinds import open_benchmark
    from lab.benchmarks.nupa.problems import out_of_reach
    from lab.benchmarks.results import Summary, parse_errors
    from lab.drawing.terminal import end
    from lab.engines.engine import Sampling

    engine, device = engine_of(config.engine)
    benchmark = open_benchmark(config.benchmark, config.seed, config.limit, engine)
    requests = benchmark.requests(engine.count_tokens)
    engine.check(requests[0])
    sampling = Sampling.of(config.sampling, config.seed)
    with config.open_run() as run:
        run.record_environment(device=device)
        samples = measure(benchmark, engine, run, sampling=sampling, model=config.model_name, requests=requests)
        if not distributed.is_main():
            return
        kind = config.benchmark.kind
        summary = benchmark.summarize(samples)
        if any("parse_error" in sample.remarks for sample in samples):
            run.rewrite("parse_errors", [sample.to_json() for sample in parse_errors(samples)])
        came = arrivals.arrivals(samples, requests)
        run.write_json("summary", Summary.of(kind, summary, came).to_json())
        if isinstance(summary, dict) and len(summary) >= _MANY_TASKS:
            print(f"drawing the figures of {len(summary)} tasks", file=sys.stderr)
        report.write(kind, {config.name: summary}, run.path)
        asked_twice = isinstance(config.engine, EndpointConfig)
        for line in filter(None, (*arrivals.in_short(came, kind, asked_twice), benchmark.note)):
            print(line)
        if isinstance(config.benchmark, NupaConfig) and (told := out_of_reach(config.benchmark, config.limit)):
            print(told)
        then = f"lab report {run.path} out=report (every answer); lab evaluate OTHER {run.path} (compare)"
        end(report.in_short(kind, {config.name: summary}), f"{run.path} (tables/, figures/)", then)


def compare(arguments: Sequence[str]) -> None:
    """Print how the runs compare, in a few lines, and write all tables and figures to a folder."""
    from lab.benchmarks import compare as report
    from lab.drawing.terminal import show

    words, options = read_options(CompareOptions, arguments, COMMAND, __doc__ or "", "RUN [RUN ...]")
    paths, out = list(map(Path, words)), options.out
    for word in words:
        if not os.path.exists(word):  # unlike Path.exists, False for a name that is too long
            meant = did_you_mean(word, list(shipped_configs()))
            raise ConfigError(f"{word}: there is no such run or config{meant}")
    Run.check_writable(out)
    summaries = report.collect(paths, options.names)
    show([report.settings(paths, options.names)])
    for line in report.arrivals_in_short(paths, options.names):
        print(line)
    for benchmark, runs in summaries.items():
        report.write(benchmark, runs, out / (benchmark if len(summaries) > 1 else ""), compared=True)
        print(*report.in_short(benchmark, runs, compared=len(paths) > 1), sep="\n")
    first, found = report.differences(paths, options.names)
    if found:
        report.write_table("differences", report.differences_table(first, found), out)
        print(*report.differences_in_short(first, found), sep="\n")
    elif len({path.resolve() for path in paths}) > 1:
        print("no two of these runs share a problem, so their differences were not tested")
    print(f"tables and figures: {out}")
    told = "every answer, side by side for runs that were asked the same problems"
    print(f"next: lab report {' '.join(words)} out=report ({told})")


def export(arguments: list[str]) -> None:
    """Write the problems of a config to a new folder."""
    name = next(part for part in arguments if part.startswith("export="))
    folder = Path(name.removeprefix("export="))
    if folder == Path() or folder.exists():
        raise ConfigError(f"{name}: should be the name of a folder that does not exist yet")
    Run.check_writable(folder)
    config = read_config(EvaluateConfig, [part for part in arguments if part != name], COMMAND, __doc__ or "")
    if not isinstance(config.benchmark, NupaConfig) or config.benchmark.published:
        raise ConfigError(f"{name}: benchmark.kind should be nupa, with the lab's problems (no benchmark.published)")
    quiet_libraries()
    from lab.benchmarks.benchmark import evenly
    from lab.benchmarks.nupa.files import write_dataset, write_published
    from lab.benchmarks.nupa.problems import problems_of

    problems = problems_of(config.benchmark, config.seed)
    if config.limit:
        problems = [problems[place] for place in evenly(len(problems), config.limit)]
    with put_in_place(folder) as made:
        write_dataset(problems, config.seed, made)
        write_published(problems, made / "test.json")
    print(f"{len(problems)} problems in {folder}: test.json (the published layout), data/test.parquet and README.md")


if __name__ == "__main__":
    main()
