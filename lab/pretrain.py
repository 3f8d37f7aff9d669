"""Train a small model from scratch and show up to which length it is right.

Builds a decoder of the Llama architecture with any tokenizer, number format and position scheme, trains it on one or
several tasks, and keeps the weights with the lowest validation loss. Then measures exact match, digit match and dlength
at every length, inside and outside the training lengths. If a run is killed, resume=true continues it, and it ends with
the same result.
"""

import shutil
import sys
from collections.abc import Sequence
from functools import partial

from lab import processes
from lab.command import read_config
from lab.config.pretraining import PretrainConfig
from lab.config.schema import ModelConfig
from lab.errors import exit_cleanly
from lab.progress import quiet_libraries
from lab.training.checkpoints import undamaged
from lab.training.loggers import check_loggers


@exit_cleanly
def main(argv: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if argv is None else argv
    config = read_config(PretrainConfig, arguments, "lab pretrain", __doc__ or "")
    config.check_run()
    check_loggers(config.training.report_to)
    if config.resume:
        undamaged(config.path / "checkpoints")
    pretrain(config)


def pretrain(config: PretrainConfig) -> None:
    quiet_libraries()
    import torch

    from lab.benchmarks.benchmark import measure
    from lab.benchmarks.length_curves import figures
    from lab.benchmarks.length_curves import tables as length_curves
    from lab.benchmarks.length_curves.scoring import LengthCurves, unseen_problems
    from lab.benchmarks.results import Summary, task_key
    from lab.drawing.lines import end, show
    from lab.inference.erasing import ErasingEngine
    from lab.inference.plain import PlainEngine
    from lab.models import pretrained, scratch
    from lab.text.scratch_notation import notation_of
    from lab.text.scratch_tokenizer import build_tokenizer
    from lab.training.from_scratch import train_from_scratch
    from lab.training.sequences import SequenceCollator, check_that_it_fits, longest_rows, sequence_loss, sequence_sets
    from lab.training.trainer import Method, Training

    notation = notation_of(config)
    tokenizer = build_tokenizer(notation.vocabulary)
    device, seed, tested = pretrained.resolve_device(config.model), config.seed, config.evaluation
    model = scratch.build(config.model, notation.vocabulary, seed).to(device)  # type: ignore[arg-type]
    sets = sequence_sets(config.data, config.training, seed, notation, tokenizer)
    collate = SequenceCollator(notation.vocabulary, config.data.packing, config.model.positions, seed)
    check_that_it_fits(model, collate, longest_rows(config.data, seed, notation, tokenizer))
    problems = unseen_problems(config.data.cells_of(tested.lengths), seed, tested.problems_per_length)
    benchmark = LengthCurves(problems, notation, config.data.trained)
    benchmark.check(model, tokenizer)
    on_the_way = None
    if tested.while_training:
        some = unseen_problems(config.data.cells_of(tested.while_training), seed, tested.problems_while_training)
        on_the_way = LengthCurves(some, notation)
        on_the_way.check(model, tokenizer)

    with config.open_run() as run:
        run.record_environment(device=pretrained.describe(model))
        if not run.model.exists():
            print(f"{config.model.size}: {model.parameters_without_embeddings():,} parameters without embeddings")
            engine = PlainEngine(model, tokenizer, tested.batch_size, by_group=True)
            measured = partial(on_the_way.points, engine) if on_the_way else None
            bfloat16 = pretrained.resolve_dtype(config.model) == torch.bfloat16
            method = Method(collate, sequence_loss, bfloat16=bfloat16, compile=config.training.compile)
            train_from_scratch(Training(model, tokenizer, config.training, sets, method, seed), run, measured)
        shutil.rmtree(run.path / "checkpoints", ignore_errors=True)
        saved = ModelConfig(name=str(run.model), dtype="float32", device=config.model.device)
        model, tokenizer = pretrained.load(saved)
        assert isinstance(model, scratch.NumberLlama)
        model.sharpen(tested.sharpness)
        asked = ErasingEngine(model, tokenizer, tested.batch_size) if tested.erase else None
        samples = measure(benchmark, asked or PlainEngine(model, tokenizer, tested.batch_size, by_group=True), run)
        if not processes.is_main():
            return

        curves = benchmark.summarize(samples)
        run.write_json("summary", Summary.of("lengths", curves).to_json())
        title = f"{config.name}: trained on {config.data.lengths[0]}-{config.data.lengths[1]} digits"
        table = length_curves.table({config.name: curves}, title)
        run.write_text("table.md", table.markdown())
        figures.length_curves({config.name: curves}, config.data.lengths, title, run.figures / "lengths.png")
        if seen := length_curves.while_training(run):
            figures.training_curves(seen, title, run.figures / "training.png")
        show([table])
        if asked:
            print(f"read again: {asked.read:,} tokens, where whole rows have {asked.whole_rows:,}")
        if benchmark.note:
            print(benchmark.note)
        first = benchmark.problems[0]
        operands = ", ".join(filter(None, (first.a, first.b)))
        then = f'lab ask {run.path} "{task_key(first)} {operands}"; lab report {run.path} out=report'
        if task_key(first) == "add_integer" and not model.config.has_own_attention:
            then += f"; lab probe probe_scratch subject={run.path}"
        end(length_curves.in_short(curves), f"{run.path} (table.md, figures/)", then)


if __name__ == "__main__":
    main()
