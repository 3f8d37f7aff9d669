"""Fine-tune a pretrained model on NUPA and show what it gained.

Scores the untouched model on a test sample, trains adapters on the mixed tasks, scores the tuned model on the same
problems, prints one table (task x representation x range: before, after, n, interval) and leaves all of it in a run
directory. A run that was killed goes on with resume=true and ends as if nothing had happened.
"""

import shutil
import sys
from collections.abc import Sequence

from lab import processes
from lab.config.finetuning import AlignmentConfig, FinetuneConfig
from lab.config.loading import parse_command_line
from lab.config.schema import chosen
from lab.errors import exit_cleanly
from lab.progress import quiet_libraries
from lab.runs import Run
from lab.text.rule_following import check_rules


@exit_cleanly
def main(argv: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if argv is None else argv
    config = parse_command_line(FinetuneConfig, arguments, "python -m lab.finetune", __doc__ or "")
    Run.check(config.path, config.resume, config.overwrite)
    if config.data.rules_followed:
        check_rules(chosen(config.data.tasks), config.data.rules)
    finetune(config)


def finetune(config: FinetuneConfig) -> None:
    from rich.console import Console

    from lab.benchmarks.benchmark import measure
    from lab.benchmarks.compare import VERSION
    from lab.benchmarks.nupa import figures
    from lab.benchmarks.nupa.scoring import Nupa, pick_problems
    from lab.benchmarks.nupa.tables import change_table, changes
    from lab.inference.local import LocalEngine
    from lab.models import adapters, pretrained, swaps
    from lab.text.formats import opened
    from lab.training.alignment import AlignedLoss, check_heads
    from lab.training.collation import PrefixTreeCollator
    from lab.training.replay import ReplayLoss
    from lab.training.trainer import train, training_sets

    quiet_libraries()
    data, alignment = config.data, config.training.alignment
    written = opened(config.format, chosen(data.tasks))
    model, tokenizer = swaps.load(config.model, config.swap)
    adapters.check_targets(model, config.adapter)
    check_heads(model, alignment)
    quantized = config.model.quantization != "none"
    tested, rules = config.evaluation, data.rules_followed
    engine = LocalEngine(model, tokenizer, tested.batch_size, tested.speculation)
    problems = pick_problems(config.test_cells, config.seed, tested.problems_per_range)
    benchmark = Nupa(problems, "rule_following" if rules else "base", rules=rules, written=written)
    benchmark = benchmark.within_window(engine)

    trained = (config.path / "model").exists()
    training, cells, seed = config.training, data.cells, config.seed
    sets = None
    if not trained:
        aligned = alignment != AlignmentConfig()
        sets = training_sets(
            training,
            cells,
            seed,
            tokenizer,
            rules,
            written,
            data.curriculum,
            aligned,
            data.variation,
            data.templates == "many",
        )

    with config.open_run() as run:
        run.record_environment(device=pretrained.describe(model))
        before = measure(benchmark, engine, run, "samples_before")
        if sets:
            tuned = adapters.attach(model, config.adapter, seed)
            collate = PrefixTreeCollator(training.share_prefixes, model).of_rows
            beside = {swaps.FILE: config.swap.model_dump_json(indent=2)}
            rates = {"same_place": training.bias_learning_rate}
            loss = ReplayLoss(training.replay, tokenizer, AlignedLoss(alignment))
            train(tuned, tokenizer, training, sets, seed, run, collate, loss, beside=beside, rates=rates)
            del tuned, model, engine, collate  # of a large model there is room for one
            model, tokenizer = swaps.load(config.model, config.swap)
        shutil.rmtree(run.path / "checkpoints", ignore_errors=True)
        tuned = adapters.for_inference(adapters.load(model, run.model), quantized)
        engine = LocalEngine(tuned, tokenizer, tested.batch_size, tested.speculation)
        after = measure(benchmark, engine, run, "samples_after")
        if not processes.is_main():
            return

        summary = {"version": VERSION, "before": benchmark.summarize(before), "after": benchmark.summarize(after)}
        rows = changes(summary["before"], summary["after"])
        title = f"{config.model.name}: NUPA before and after {config.training.max_steps} steps of LoRA"
        table = change_table(rows, title)
        run.write_json("summary", summary)
        run.write_text("table.md", table.markdown())
        figures.before_after(rows, title, run.figures / "before_after.png")
        Console().print(table.terminal())
        if benchmark.note:
            print(benchmark.note)
        print(f"run directory: {run.path}")


if __name__ == "__main__":
    main()
