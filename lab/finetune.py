"""Fine-tune a pretrained model on NUPA and show what it gained.

Scores the untouched model on a test sample, trains adapters on the mixed tasks, scores the tuned model on the same
problems, prints one table (task x representation x range: before, after, n, interval) and leaves all of it in a run
directory. A run that was killed goes on with resume=true and ends as if nothing had happened.
"""

import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from lab.config.loading import dump, parse_command_line
from lab.config.schema import FinetuneConfig
from lab.errors import exit_cleanly
from lab.runs import Run


@exit_cleanly
def main(argv: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if argv is None else argv
    config = parse_command_line(FinetuneConfig, arguments, "python -m lab.finetune", __doc__ or "")
    path = config.output / config.name
    Run.check(path, config.resume, config.overwrite)
    finetune(config, path)


def finetune(config: FinetuneConfig, path: Path) -> None:
    from rich.console import Console
    from transformers.utils import logging

    from lab.benchmarks import nupa
    from lab.inference.local import LocalEngine
    from lab.models import adapters, pretrained
    from lab.reporting import figures, tables
    from lab.training.trainer import train

    warnings.simplefilter("ignore", FutureWarning)  # of transformers and TRL, about each other
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model, tokenizer = pretrained.load(config.model)
    adapters.check_targets(model, config.adapter)
    quantized = config.model.quantization != "none"
    problems = nupa.pick_problems(config.test_cells, config.seed, config.evaluation.problems_per_range)

    with Run.open(path, dump(config), config.resume, config.overwrite) as run:
        run.record_environment(device=pretrained.describe(model))
        batch_size = config.evaluation.batch_size
        before = nupa.measure(LocalEngine(model, tokenizer, batch_size), problems, tokenizer, run, "samples_before")
        if not run.model.exists():
            tuned = adapters.attach(model, config.adapter, config.seed)
            train(tuned, tokenizer, config.training, config.data.cells, config.seed, run)
            del tuned, model  # of a large model there is room for one
            model, tokenizer = pretrained.load(config.model)
        shutil.rmtree(run.path / "checkpoints", ignore_errors=True)
        tuned = adapters.for_inference(adapters.load(model, run.model), quantized)
        after = nupa.measure(LocalEngine(tuned, tokenizer, batch_size), problems, tokenizer, run, "samples_after")

        summary = {"before": nupa.summarize(before), "after": nupa.summarize(after)}
        rows = tables.changes(summary["before"], summary["after"])
        title = f"{config.model.name}: NUPA before and after {config.training.max_steps} steps of LoRA"
        run.write_json("summary", summary)
        run.write_text("table.md", tables.markdown(rows))
        figures.before_after(rows, title, run.figures / "before_after.png")
        Console().print(tables.terminal(rows, title))
        print(f"run directory: {path}")


if __name__ == "__main__":
    main()
