"""Fine-tune a pretrained model on NUPA and show what it gained.

Scores the original model on a sample of test problems, trains adapters on a mixture of the tasks, and scores the tuned
model on the same problems. Prints one table: for each task, exact match before and after with 95 % intervals, at
trained lengths and beyond. Saves everything in a run directory, with a second table by range. If a run is killed,
resume=true continues it, and it ends with the same result.
"""

import gc
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab import distributed
from lab.command import entry_point, read_config
from lab.config.finetuning import FinetuneConfig
from lab.config.schema import ModelConfig, chosen
from lab.models.sources import check_name
from lab.progress import quiet_libraries
from lab.text.rule_following import check_rules
from lab.tune.checkpoints import undamaged
from lab.tune.loggers import check_loggers

if TYPE_CHECKING:
    from lab.benchmarks.nupa.scoring import Nupa
    from lab.benchmarks.results import Sample
    from lab.runs import Run


@entry_point
def main(arguments: list[str]) -> None:
    config = read_config(FinetuneConfig, arguments, "lab finetune", __doc__ or "", plan=planned)
    config.check_run()
    check_name(config.model.name, "model.name")
    check_loggers(config.training.report_to)
    if config.resume:
        undamaged(config.path / "checkpoints")
    if config.data.rules_followed:
        check_rules(chosen(config.data.tasks), config.data.rules)
    finetune(config)


def planned(config: FinetuneConfig) -> str:
    """What a dry run says of the job."""
    quiet_libraries()
    from lab.benchmarks.nupa.problems import pick_problems
    from lab.tune.planning import plan

    return plan(config, len(pick_problems(config.test_cells, config.seed, config.evaluation.problems_per_range)))


def finetune(config: FinetuneConfig) -> None:
    """Tests the original model, trains adapters, tests the tuned model on the same problems, and shows the change."""
    quiet_libraries()
    from lab.benchmarks.benchmark import measure
    from lab.benchmarks.nupa.problems import pick_problems
    from lab.benchmarks.nupa.scoring import Nupa
    from lab.engines.local import LocalEngine
    from lab.models import adapters, loading, pretrained, swaps
    from lab.text import formats
    from lab.tune.problem_sets import training_sets
    from lab.tune.trainer import train
    from lab.tune.tuning import adapter_training, check_memory_of_steps

    wording, tested = formats.tuned(config.format, config.data), config.evaluation
    model, tokenizer = swaps.load(config.model, config.swap)
    adapters.check_targets(model, config.adapter)
    engine = LocalEngine(model, tokenizer, tested.batch_size)
    problems = pick_problems(config.test_cells, config.seed, tested.problems_per_range)
    benchmark = Nupa(problems, wording).within_window(engine)
    requests = benchmark.requests(engine.count_tokens)  # the tuned model has the same tokenizer
    trained = config.resume and (config.path / "model").exists()
    sets = None if trained else training_sets(config, wording, tokenizer)
    if sets:
        check_memory_of_steps(config, model, tokenizer, sets)

    with config.open_run() as run:
        run.record_environment(device=pretrained.describe(model))
        before = measure(benchmark, engine, run, "samples_before", requests=requests)
        if sets:
            train(adapter_training(config, model, tokenizer, sets), run)
        shutil.rmtree(run.path / "checkpoints", ignore_errors=True)
        del model, engine  # there may be memory for only one large model, and the trainer refers to itself
        gc.collect()
        model, tokenizer = loading.load(ModelConfig(name=str(run.path)))
        engine = LocalEngine(model, tokenizer, tested.batch_size)
        after = measure(benchmark, engine, run, "samples_after", requests=requests)
        if distributed.is_main():
            report(config, run, benchmark, before, after)


def report(
    config: FinetuneConfig, run: "Run", benchmark: "Nupa", before: "Sequence[Sample]", after: "Sequence[Sample]"
) -> None:
    """Writes the summary, the table and the figure of what tuning changed, and prints them in short."""
    from lab.benchmarks.nupa import figures, in_short
    from lab.benchmarks.nupa.tables import by_training, change_table, changes, trained_and_beyond
    from lab.benchmarks.results import VERSION, Summary
    from lab.drawing.terminal import end, show

    summary = Summary(version=VERSION, before=benchmark.summarize(before), after=benchmark.summarize(after))
    rows = changes(before, after)
    title = f"{config.model.name}: NUPA before and after {config.training.max_steps} steps of LoRA"
    by_lengths = changes(before, after, by_training(config.data.cells))
    table = trained_and_beyond(by_lengths, f"{title}: exact match, % (95 %)")
    run.write_json("summary", summary.to_json())
    run.write_text("table.md", f"{table.markdown()}\n{change_table(rows, title).markdown()}")
    figures.before_after(rows, title, run.figures / "before_after.png")
    show([table])
    if benchmark.note:
        print(benchmark.note)
    then = f'lab ask {run.path} "12 + 34"; lab report {run.path} out=report (every answer, before and after)'
    end(in_short.changed(by_lengths), f"{run.path} (table.md, figures/)", then)


if __name__ == "__main__":
    main()
