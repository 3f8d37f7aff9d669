"""Fine-tune a pretrained model on NUPA and show what it gained.

Scores the untouched model on a test sample, trains adapters on a mixture of the tasks, and scores the tuned model on
the same problems. Prints one table (task x representation x range: before, after, n, interval) and saves everything in
a run directory. If a run is killed, resume=true continues it, and it ends with the same result.
"""

import shutil
import sys
from collections.abc import Sequence

from lab import processes
from lab.command import read_config
from lab.config.finetuning import AlignmentConfig, FinetuneConfig
from lab.config.schema import chosen
from lab.errors import exit_cleanly
from lab.models.sources import check_name
from lab.progress import quiet_libraries
from lab.text.rule_following import check_rules
from lab.training.checkpoints import undamaged
from lab.training.loggers import check_loggers


@exit_cleanly
def main(argv: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if argv is None else argv
    config = read_config(FinetuneConfig, arguments, "lab finetune", __doc__ or "")
    config.check_run()
    check_name(config.model.name, "model.name")
    check_loggers(config.training.report_to)
    if config.resume:
        undamaged(config.path / "checkpoints")
    if config.data.rules_followed:
        check_rules(chosen(config.data.tasks), config.data.rules)
    finetune(config)


def finetune(config: FinetuneConfig) -> None:
    quiet_libraries()
    from lab.benchmarks.benchmark import measure
    from lab.benchmarks.nupa import figures, in_short
    from lab.benchmarks.nupa.problems import pick_problems
    from lab.benchmarks.nupa.scoring import Nupa
    from lab.benchmarks.nupa.tables import change_table, changes
    from lab.benchmarks.results import VERSION, Summary
    from lab.drawing.lines import end, show
    from lab.inference.local import LocalEngine
    from lab.models import adapters, pretrained, swaps
    from lab.text import formats
    from lab.text.wording import RuleFollowing
    from lab.training.alignment import AlignedLoss, check_heads
    from lab.training.collation import PrefixTreeCollator
    from lab.training.problem_sets import Rows, Selection
    from lab.training.replay import ReplayLoss
    from lab.training.trainer import Method, train, training_sets

    data, alignment = config.data, config.training.alignment
    rules = data.rules_followed
    wording = RuleFollowing(rules) if rules else formats.written(config.format, chosen(data.tasks))
    model, tokenizer = swaps.load(config.model, config.swap)
    adapters.check_targets(model, config.adapter)
    check_heads(model, alignment)
    quantized = config.model.quantization != "none"
    tested = config.evaluation
    engine = LocalEngine(model, tokenizer, tested.batch_size, tested.speculation)
    problems = pick_problems(config.test_cells, config.seed, tested.problems_per_range)
    benchmark = Nupa(problems, wording).within_window(engine)
    requests = benchmark.requests(engine)  # the tuned model has the same tokenizer

    trained = config.resume and (config.path / "model").exists()
    training, seed = config.training, config.seed
    sets = None
    if not trained:
        selection = Selection(data.cells, seed, data.variation, data.curriculum)
        rows = Rows(tokenizer, wording, alignment != AlignmentConfig())
        sets = training_sets(training, selection, rows, data.templates == "many")

    with config.open_run() as run:
        run.record_environment(device=pretrained.describe(model))
        before = measure(benchmark, engine, run, "samples_before", requests=requests)
        if sets:
            tuned = adapters.attach(model, config.adapter, seed)
            beside = {swaps.FILE: config.swap.model_dump_json(indent=2)}
            method = Method(
                PrefixTreeCollator(training.share_prefixes, model).of_rows,
                ReplayLoss(training.replay, tokenizer, AlignedLoss(alignment)),
                {"same_place": training.bias_learning_rate},
            )
            train(tuned, tokenizer, training, sets, method, run, seed, beside)
            del tuned, model, engine, method  # there may be memory for only one large model
            model, tokenizer = swaps.load(config.model, config.swap)
        shutil.rmtree(run.path / "checkpoints", ignore_errors=True)
        tuned = adapters.for_inference(adapters.load(model, run.model), quantized)
        engine = LocalEngine(tuned, tokenizer, tested.batch_size, tested.speculation)
        after = measure(benchmark, engine, run, "samples_after", requests=requests)
        if not processes.is_main():
            return

        figured = benchmark.summarize(before), benchmark.summarize(after)
        rows = changes(before, after)
        title = f"{config.model.name}: NUPA before and after {config.training.max_steps} steps of LoRA"
        table = change_table(rows, title)
        run.write_json("summary", Summary(version=VERSION, before=figured[0], after=figured[1]).to_json())
        run.write_text("table.md", table.markdown())
        figures.before_after(rows, title, run.figures / "before_after.png")
        show([table])
        if benchmark.note:
            print(benchmark.note)
        then = f'lab ask {run.path} "12 + 34"; lab report {run.path} out=report (every answer, before and after)'
        end(in_short.changed(rows), f"{run.path} (table.md, figures/)", then)


if __name__ == "__main__":
    main()
