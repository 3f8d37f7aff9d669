"""A run of `lab adder train`: trains a group of seeds, tests the best one and declares it. A run can also be exported
as a small folder that the lab opens by name."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import torch

from lab.adders.asking import AdderEngine
from lab.adders.config import AdderConfig
from lab.adders.files import write
from lab.adders.groups import BatchedModel, Group, check_memory, train_group
from lab.adders.judge import Runner
from lab.adders.problems import PUBLIC_SEED, problems
from lab.adders.spec import Adder, check
from lab.config.loading import dump
from lab.models.sources import ADDER
from lab.numbers.statistics import Estimate, wilson

CARD = Path(__file__).with_name("card.md").read_text(encoding="utf-8")


def train_adder(
    config: AdderConfig, batched_as: Callable[[AdderConfig], BatchedModel] = BatchedModel
) -> tuple[Estimate, Path]:
    """Trains a group and declares its best adder.

    Returns the share of the public test (10 edge cases, 10,000 pairs) that is right, and the adder's file. Raises
    ModelError, before anything is written, if a step needs more memory than is free.
    """
    batched = batched_as(config)
    check_memory(config, batched)
    with config.open_run() as run:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # more do not speed up a small model, and would round its sums differently
        run.record_environment(device="cpu")
        start = time.perf_counter()
        group = train_group(config, run, batched)
        print(f"{batched.parameters:,} parameters, {time.perf_counter() - start:.1f} s")
        numbers = {name: table.tolist() for name, table in batched.tables(group.best_P).items()}
        facts = {
            "category": "trained",
            "seeds": config.group.seeds,
            "about": describe(config, group, batched.parameters),
        }
        value = config.declared(numbers, **facts)
        share = tested(check(value))
        run.write_json("summary", {"parameters": batched.parameters, "exact_match": share._asdict(), **group.best})
        write(value, run.path / ADDER)
        torch.set_num_threads(threads)
    return share, run.path / ADDER


def tested(adder: Adder) -> Estimate:
    """The share of the public test that an adder writes right."""
    pairs = problems(PUBLIC_SEED)
    return wilson(
        sum(found == a + b for (a, b), found in zip(pairs, Runner(adder).add(pairs), strict=True)), len(pairs)
    )


def describe(config: AdderConfig, group: Group, parameters: int) -> str:
    """How an adder was trained."""
    training, seeds = config.training, config.group.seeds
    went_on = "".join(f", {count} after {after} steps" for after, count in config.group.halvings)
    return (
        f"A trained adder of {parameters:,} parameters ({config.name}, seed {config.seed}). "
        f"AdamW, {group.step} steps of {training.batch_size} problems, learning rate {training.learning_rate}; "
        f"{seeds} seeds side by side{went_on}; "
        f"these are the numbers of seed {group.best['seed']} at step {group.best['step']}, the best by validation."
    )


def export(run: Path, config: AdderConfig, made: Path, folder: Path, dtype: str) -> None:
    """Writes the adder of a run, with its config and a card.

    Args:
        run: the run directory of `lab adder train`. config: its config. made: the empty folder to write into. folder:
        the final folder, which `made` becomes later. It names the adder in the config and on the card. dtype: number
        type to which the numbers are rounded, a key of DTYPES. The card's figure is that of the rounded ones.

    Raises ModelError if the run has no adder.
    """
    from lab.models.exporting import DTYPES, opened_as, published  # imported here, because training needs none of it

    adder = AdderEngine.of(run).adder
    rounded = {name: torch.tensor(table).to(DTYPES[dtype]).tolist() for name, table in adder.numbers.items()}
    value = json.loads((run / ADDER).read_text(encoding="utf-8")) | {"numbers": rounded}
    config = published(config, folder.name)
    write(value, made / ADDER)
    (made / "config.yaml").write_text(dump(config), encoding="utf-8")
    share = tested(check(value))
    card = CARD.format(
        parameters=AdderEngine.of(made).parameters,
        batch=config.training.batch_size,
        seeds=config.group.seeds,
        name=opened_as(folder),
        right=round(share.value * share.n),
        n=share.n,
        share="{:.2f} %, {:.2f}-{:.2f}".format(*(100 * part for part in share[:3])),
        drawn=share.n - 10,
    )
    (made / "README.md").write_text(card, encoding="utf-8")
