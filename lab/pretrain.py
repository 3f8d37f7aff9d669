"""Train a small model from scratch and show up to which length it is right.

Builds a decoder of the Llama architecture with any tokenizer, number format and position scheme, trains it on one or
several tasks, and keeps the weights with the lowest validation loss. Then measures exact match, digit match and dlength
at every length, inside and outside the training lengths. If a run is killed, resume=true continues it, and it ends with
the same result.
"""

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lab import distributed
from lab.command import entry_point, read_config
from lab.config.pretraining import PretrainConfig
from lab.config.schema import ModelConfig, chosen
from lab.progress import quiet_libraries
from lab.tune.checkpoints import undamaged
from lab.tune.loggers import check_loggers

if TYPE_CHECKING:
    from lab.benchmarks.length_curves.scoring import LengthCurves
    from lab.benchmarks.results import Sample
    from lab.engines.plain import PlainEngine
    from lab.numbers.sampling import Problem
    from lab.runs import Run
    from lab.text.scratch_notation import ScratchNotation
    from lab.tune.callbacks import Measure
    from lab.tune.trainer import Training


@entry_point
def main(arguments: list[str]) -> None:
    config = read_config(PretrainConfig, arguments, "lab pretrain", __doc__ or "")
    config.check_run()
    check_loggers(config.training.report_to)
    if config.resume:
        undamaged(config.path / "checkpoints")
    pretrain(config)


def pretrain(config: PretrainConfig, changed: "Callable[[Training], Training] | None" = None) -> None:
    """Trains a model, and tests the weights with the lowest validation loss at every length. `changed`: what an
    experiment changes in the training."""
    quiet_libraries()
    from lab.benchmarks.benchmark import measure
    from lab.benchmarks.length_curves.scoring import LengthCurves, unseen_problems
    from lab.engines.plain import PlainEngine
    from lab.models import pretrained
    from lab.scratch import llama as scratch
    from lab.text.scratch_notation import notation_of
    from lab.text.scratch_tokenizer import build_tokenizer
    from lab.tune.from_scratch import scratch_training, train_from_scratch

    notation, tested = notation_of(config), config.evaluation
    tokenizer = build_tokenizer(notation.vocabulary)
    device = pretrained.resolve_device(config.model)
    model = scratch.build(config, notation.vocabulary).to(device)  # type: ignore[arg-type]
    training = scratch_training(config, model, tokenizer, notation)
    training = changed(training) if changed else training
    problems = unseen_problems(config.data.tested_cells(tested.lengths), config.seed, tested.problems_per_length)
    benchmark = LengthCurves(problems, notation, config.data.trained)
    benchmark.check(model, tokenizer)
    engine = PlainEngine(model, tokenizer, tested.batch_size, by_group=True)
    engine.check_memory(benchmark.requests(), "evaluation.batch_size")
    on_the_way = while_training(config, engine, notation)

    with config.open_run() as run:
        run.record_environment(device=pretrained.describe(model))
        if not run.model.exists():
            print(f"{config.model.size}: {model.parameters_without_embeddings():,} parameters without embeddings")
            if ignored := ignored_keys(config):
                print(ignored)
            train_from_scratch(training, run, on_the_way)
        shutil.rmtree(run.path / "checkpoints", ignore_errors=True)
        saved = ModelConfig(name=str(run.model), dtype="float32", device=config.model.device)
        model, tokenizer = pretrained.load(saved)
        assert isinstance(model, scratch.NumberLlama)
        samples = measure(benchmark, PlainEngine(model, tokenizer, tested.batch_size, by_group=True), run)
        if distributed.is_main():
            report(config, run, benchmark, samples, probed=model.beyond_scores is None)


def ignored_keys(config: PretrainConfig) -> str:
    """Says that data.variation.short_second, which many configs set, has no effect on the tasks; "" if it has one."""
    from lab.numbers.additions import VARIED

    short = config.data.variation.short_second
    if not short or {task.key for task in chosen(config.data.tasks)} & {*VARIED}:
        return ""
    return f"data.variation.short_second={short:g} has no effect: it shortens numbers only in {', '.join(VARIED)}"


def while_training(config: PretrainConfig, engine: "PlainEngine", notation: "ScratchNotation") -> "Measure | None":
    """The function that measures the model at each validation; None if the config asks for none."""
    from lab.benchmarks.length_curves.scoring import LengthCurves, unseen_problems

    tested = config.evaluation
    if not tested.while_training:
        return None
    cells = config.data.tested_cells(tested.while_training)
    curves = LengthCurves(unseen_problems(cells, config.seed, tested.problems_while_training), notation)
    curves.check(engine.model, engine.tokenizer)
    return partial(curves.points, engine)


def report(
    config: PretrainConfig, run: "Run", benchmark: "LengthCurves", samples: "Sequence[Sample]", probed: bool
) -> None:
    """Writes the summary, the table and the figures by length, and prints them in short. `probed`: whether `lab probe`
    opens the model."""
    from lab.benchmarks.length_curves import figures, tables
    from lab.benchmarks.results import Summary, task_key
    from lab.drawing.terminal import end, show
    from lab.numbers.additions import unequal_pairs

    curves = benchmark.summarize(samples)
    run.write_json("summary", Summary.of("lengths", curves).to_json())
    title = f"Trained on {config.data.lengths[0]}-{config.data.lengths[1]} digits"
    table = tables.table({config.name: curves}, f"{config.name}: {title.lower()}")
    run.write_text("table.md", table.markdown())
    figures.length_curves({config.name: curves}, config.data.lengths, title, run.figures / "lengths.png")
    if seen := tables.while_training(run):
        figures.training_curves(seen, title, run.figures / "training.png")
    show([tables.table({config.name: curves}, f"{config.name}: {title.lower()}", ["exact_match", "digit_match"])])
    for note in (benchmark.note, unequal_pairs(config.data.cells, config.data.variation.short_second)):
        if note:
            print(note)
    first = longest_right(samples) or benchmark.problems[0]
    then = f'lab ask {run.path} "{question(first)}"; lab report {run.path} out=report'
    if task_key(first) == "add_integer" and probed:
        then += f"; lab probe probe_scratch subject={run.path}"
    end(tables.in_short(curves), f"{run.path} (table.md, figures/)", then)


LONGEST_SHOWN = 30
"""Questions of more digits are not suggested, because they are too long to be typed or read."""


def longest_right(samples: "Sequence[Sample]") -> "Problem | None":
    """The longest problem that was answered right, to be asked again; None if there is none."""
    right = [one.problem for one in samples if one.right and one.length <= LONGEST_SHOWN]
    return max(right, key=lambda item: item.length, default=None)


def question(item: "Problem") -> str:
    """A problem as `lab ask` reads it."""
    if (item.task, item.representation) in (("add", "integer"), ("sub", "integer")):
        return f"{item.a} {'+' if item.task == 'add' else '-'} {item.b}"
    return f"{item.task}_{item.representation} {', '.join(filter(None, (item.a, item.b)))}"


if __name__ == "__main__":
    main()
