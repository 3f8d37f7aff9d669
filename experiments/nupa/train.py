"""Trains one small model to write the lines of the rules of many tasks.

    python -m experiments.nupa.train [start=FOLDER] [config keys, such as name=nupa_1 seed=1 training.max_steps=2000]

The config is nupa.yaml; data.lengths is that of tasks whose test goes to 20 digits, and the others are trained up to
LONGEST_EASY digits. Validation has lines of other questions. `start`: a model of fewer tasks to begin with, a folder
with its weights.
"""

import sys
from pathlib import Path

import torch

from experiments.nupa.lines import line_rows, tasks_of, trained_cells, vocabulary
from lab.command import read_config
from lab.config.pretraining import PretrainConfig
from lab.errors import exit_cleanly
from lab.models import pretrained
from lab.progress import quiet_libraries
from lab.scratch import llama as scratch
from lab.text.scratch_tokenizer import build_tokenizer
from lab.tune.from_scratch import train_from_scratch
from lab.tune.problem_sets import TrainingSets, validated
from lab.tune.sequences import SequenceCollator, sequence_loss
from lab.tune.trainer import Training

CONFIG = Path(__file__).parent / "nupa.yaml"


@exit_cleanly
def main(arguments: list[str]) -> None:
    start = next((key.partition("=")[2] for key in arguments if key.startswith("start=")), None)
    keys = [key for key in arguments if not key.startswith("start=")]
    config = read_config(PretrainConfig, [str(CONFIG), *keys], "nupa", __doc__ or "")
    quiet_libraries()
    cells = trained_cells(tasks_of(config.data.tasks), config.data.lengths[1])
    words, settings = vocabulary(), config.training
    model = scratch.build(config, words)
    model.set_attn_implementation("eager")  # rows are so short that fused attention takes twice as long
    sets = TrainingSets(
        line_rows(cells, "train", config.seed, settings.max_steps * settings.batch_size),
        line_rows(validated(cells, config.seed), "valid", config.seed, settings.valid_problems, 0.05),
    )
    if start:
        begin_with(model, Path(start))
    training = Training(
        model,
        build_tokenizer(words),
        settings,
        sets,
        config.seed,
        SequenceCollator(model, 1, config.seed),
        sequence_loss,
        bfloat16=pretrained.resolve_dtype(config.model).itemsize == 2,
        compile=settings.compile,
    )
    with config.open_run() as run:
        run.record_environment(device="cpu")
        print(f"{model.parameters_without_embeddings():,} parameters, {model.num_parameters():,} with embeddings")
        train_from_scratch(training, run)


@torch.no_grad()
def begin_with(model: scratch.NumberLlama, folder: Path) -> None:
    """Takes over the weights of another model; of embeddings and head, those of words that both know."""
    other = scratch.NumberLlama.from_pretrained(folder)
    weights, old = model.state_dict(), other.state_dict()
    known = {word: index for index, word in enumerate(other.config.vocabulary)}
    pairs = [(index, known[word]) for index, word in enumerate(model.config.vocabulary) if word in known]
    new_at, old_at = (list(indices) for indices in zip(*pairs, strict=True))
    for name, weight in weights.items():
        if name in ("model.embed_tokens.weight", "lm_head.weight"):
            weight[new_at] = old[name][old_at]
        else:
            weight.copy_(old[name])


if __name__ == "__main__":
    main(sys.argv[1:])
