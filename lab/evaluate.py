"""Measure a model on NUPA or one of its sister benchmarks, and lay runs side by side.

A model is a local one (embedded, a checkpoint, a run directory, a hub name), one in vLLM, or any OpenAI-compatible
endpoint. Every answer is on disk as soon as it has come; a run that was killed goes on with resume=true and asks only
for what is missing, questions that an endpoint failed to answer included.

    python -m lab.evaluate config.yaml [key.sub=value ...]     measure; leaves a run directory
    python -m lab.evaluate RUN [RUN ...] [out=FOLDER]          compare runs, and with the paper's legible rows
    python -m lab.evaluate config.yaml [...] --export FOLDER   write the NUPA problems of a config: JSON and parquet
    python -m lab.evaluate --lm-eval-tasks                     the folder of tasks for lm-evaluation-harness
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from lab.config.evaluation import EvaluateConfig, NupaConfig
from lab.config.loading import dump, parse_command_line
from lab.errors import ConfigError, exit_cleanly
from lab.progress import quiet_libraries
from lab.runs import Run

COMMAND = "python -m lab.evaluate"


@exit_cleanly
def main(argv: Sequence[str] | None = None) -> None:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["--lm-eval-tasks"]:
        from lab.plugins.lm_eval import tasks_folder

        print(tasks_folder())
    elif arguments and Path(arguments[0]).is_dir():
        compare(arguments)
    elif "--export" in arguments:
        export(arguments)
    else:
        config = parse_command_line(EvaluateConfig, arguments, COMMAND, __doc__ or "")
        Run.check(config.path, config.resume, config.overwrite)
        evaluate(config)


def evaluate(config: EvaluateConfig) -> None:
    from lab.benchmarks.benchmark import measure
    from lab.benchmarks.benchmarks import open_benchmark
    from lab.benchmarks.carry_free import parse_errors
    from lab.inference.engine import Sampling
    from lab.inference.engines import open_engine
    from lab.reporting import report

    quiet_libraries()
    benchmark = open_benchmark(config.benchmark, config.seed, config.limit)
    engine, device = open_engine(config.engine, config.chat)
    sampling = Sampling(config.sampling.temperature, config.sampling.top_p, config.seed)
    with Run.open(config.path, dump(config), config.resume, config.overwrite) as run:
        run.record_environment(device=device)
        samples = measure(benchmark, engine, run, sampling=sampling)
        kind = config.benchmark.kind
        summary = benchmark.summarize(samples)
        if kind == "carry_free":
            run.rewrite("parse_errors", parse_errors(samples))
        run.write_json("summary", {kind: summary})
        show(report.write(kind, {config.name: summary}, run.path))
        unanswered = sum(bool(sample["error"]) for sample in samples)
        if unanswered:
            print(f"{unanswered} of {len(samples)} questions were never answered; resume=true asks them again")
        print(f"run directory: {run.path}")


def compare(arguments: Sequence[str]) -> None:
    """Print the runs' tables side by side; with out=FOLDER write all tables and figures there."""
    from tempfile import TemporaryDirectory

    from lab.reporting import report

    out = [argument.removeprefix("out=") for argument in arguments if argument.startswith("out=")]
    summaries = report.collect(Path(argument) for argument in arguments if not argument.startswith("out="))
    with TemporaryDirectory() as scratch:
        for benchmark, runs in summaries.items():
            folder = Path(out[-1] if out else scratch) / (benchmark if len(summaries) > 1 else "")
            show(report.write(benchmark, runs, folder, with_published=True))
    if out:
        print(f"tables and figures: {out[-1]}")


def export(arguments: list[str]) -> None:
    place = arguments.index("--export")
    folder = Path(arguments[place + 1] if place + 1 < len(arguments) else "")
    if folder == Path("") or folder.exists():
        raise ConfigError("--export FOLDER: give the name of a folder that does not exist yet")
    config = parse_command_line(EvaluateConfig, arguments[:place] + arguments[place + 2 :], COMMAND, __doc__ or "")
    if not isinstance(config.benchmark, NupaConfig):
        raise ConfigError(f"--export: benchmark.kind is {config.benchmark.kind}; only nupa has a published layout")
    from lab.benchmarks.nupa import Nupa
    from lab.benchmarks.nupa_files import write_dataset, write_published

    problems = Nupa.from_config(config.benchmark, config.seed).problems
    write_dataset(problems, config.seed, folder)
    write_published(problems, folder / "test.json")
    print(f"{len(problems)} problems in {folder}: test.json (the published layout), data/test.parquet and README.md")


def show(tables: Sequence) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 160)
    for table in tables:
        console.print(table.terminal())


if __name__ == "__main__":
    main()
