"""A run of `lab.adder train`: a group of seeds trained, the best of them tested and written as a submission."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from lab.numbers.statistics import Estimate, wilson
from lab.smallest_adder.asking import WEIGHTS
from lab.smallest_adder.codecs import digits_of
from lab.smallest_adder.config import AdderConfig
from lab.smallest_adder.contract import PUBLIC_SEED, problems
from lab.smallest_adder.groups import Batch, BatchedModel, Group, train_group
from lab.smallest_adder.models import build
from lab.smallest_adder.rows import PLACES, rows
from lab.smallest_adder.submission import submission


def train_submission(
    config: AdderConfig, batched_as: Callable[[torch.nn.Module], BatchedModel] = BatchedModel
) -> tuple[Estimate, Path]:
    """Trains a group and writes its best adder as a submission.

    Returns the share of the public test (10 edge cases, 10,000 pairs) that is right, and the submission's path.
    """
    with config.open_run() as run:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # more do not speed up a small model, and would round its sums differently
        run.record_environment(device="cpu")
        start = time.perf_counter()
        batched, group = train_group(config, run, batched_as)
        print(f"{batched.parameters:,} parameters, {time.perf_counter() - start:.1f} s")

        pairs = problems(PUBLIC_SEED)
        tested = Batch.of(rows(*np.split(digits_of(pairs), [PLACES], axis=1)))
        _, shares_S = batched.measure(group.best_P[None], tested)
        share = wilson(round(shares_S.item() * len(pairs)), len(pairs))
        best = {"parameters": batched.parameters, "exact_match": share._asdict(), **group.best}
        run.write_json("summary", best)

        model = build(config.model)
        model.load_state_dict(batched.state_dict(group.best_P))
        run.model.mkdir(exist_ok=True)
        save_file({name: weight.contiguous() for name, weight in model.state_dict().items()}, run.path / WEIGHTS)
        settings = config.model.model_dump(exclude={"kind"})
        run.write_text("submission.py", submission(model, settings, describe(config, group, batched.parameters)))
        torch.set_num_threads(threads)
    return share, run.path / "submission.py"


def describe(config: AdderConfig, group: Group, parameters: int) -> str:
    """How an adder was trained, as the docstring of its submission."""
    training, seeds = config.training, config.group.seeds
    went_on = "".join(f", {count} after {after} steps" for after, count in config.group.halvings)
    return (
        f"A trained adder of {parameters:,} parameters ({config.name}, seed {config.seed}).\n\n"
        f"AdamW, {group.step} steps of {training.batch_size} problems, learning rate {training.learning_rate};\n"
        f"{seeds} seeds side by side{went_on};\n"
        f"these are the weights of seed {group.best['seed']} at step {group.best['step']}, "
        "the best of all by validation.\n\n"
        f"Seeds: {seeds}"
    )
