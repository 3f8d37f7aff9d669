"""A run of `lab adder train`: trains a group of seeds, tests the best one and writes it as a submission. A run can also
be exported as a small folder that the lab opens by name.

A submission is the one file that the challenge asks for: the class that was trained, and its weights as numbers. The
class and the two codecs are copied from the lab's source, and a weight is written so that it is read back bit for bit.
"""

import inspect
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from lab.config.loading import dump
from lab.numbers.statistics import Estimate, wilson
from lab.smallest_adder.asking import WEIGHTS, open_adder, read_weights
from lab.smallest_adder.codecs import digits_of
from lab.smallest_adder.config import AdderConfig
from lab.smallest_adder.contract import PUBLIC_SEED, problems
from lab.smallest_adder.groups import Batch, BatchedModel, Group, check_memory, train_group
from lab.smallest_adder.models import GptAdder, ReducedAdder, TinyAdder, build
from lab.smallest_adder.rows import ANSWERS, PLACES, decode, encode, rows

SOURCES: dict[object, str] = {
    part: inspect.getsource(part).rstrip() for part in (GptAdder, TinyAdder, ReducedAdder, encode, decode)
}
"""Read at import, so that they are the sources of the trained classes even if a file changes during training."""
TEMPLATE = Path(__file__).with_name("submission.txt").read_text(encoding="utf-8")
CARD = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
_KINDS = {"gpt": "a plain GPT", "tiny": "one layer of Llama", "reduced": "a minimal transformer"}


def train_submission(
    config: AdderConfig, batched_as: Callable[[torch.nn.Module], BatchedModel] = BatchedModel
) -> tuple[Estimate, Path]:
    """Trains a group and writes its best adder as a submission.

    Returns the share of the public test (10 edge cases, 10,000 pairs) that is right, and the submission's path. Raises
    ModelError, before anything is written, if a step needs more memory than is free.
    """
    check_memory(config, batched_as)
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
        run.write_json("summary", {"parameters": batched.parameters, "exact_match": share._asdict(), **group.best})

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


def submission(model: torch.nn.Module, settings: Mapping[str, object], description: str) -> str:
    """The source of a submission.

    `model` is one of models.py, built from `settings`; `description`, plain text, says how it was trained.
    The tokens are 0 to 9, a digit each (lab/smallest_adder/rows.py).
    """
    # read back exactly, as Python writes enough digits of a double, and every float32 is a double; a line for each row
    weights = [f'    "{name}": {weight.tolist()},' for name, weight in model.named_parameters()]
    return TEMPLATE.format(
        description=description,
        answers=ANSWERS,
        model=SOURCES[type(model)],
        name=type(model).__name__,
        arguments=", ".join(f"{name}={value!r}" for name, value in settings.items()),
        weights="\n".join(weights).replace("], [", "],\n        ["),
        encode=SOURCES[encode],
        decode=SOURCES[decode],
    )


def export(run: Path, config: AdderConfig, made: Path, folder: Path, dtype: str) -> None:
    """Writes the adder of a run, with its config and a card.

    Args:
        run: the run directory of `lab adder train`.
        config: its config.
        made: the empty folder to write into.
        folder: the final folder, which `made` becomes later. It names the adder in the config and on the card.
        dtype: number type of the written weights, a key of DTYPES. The card's figure is that of the rounded weights.

    Raises ModelError if the run has no model.
    """
    from lab.models.exporting import DTYPES, opened_as, published  # imported here, because training needs none of it

    weights = {name: weight.to(DTYPES[dtype]) for name, weight in read_weights(run).items()}
    config = published(config, folder.name)
    (made / WEIGHTS).parent.mkdir()
    save_file(weights, made / WEIGHTS, {"format": "pt"})
    (made / WEIGHTS).chmod(0o644)  # safetensors lets only the owner read
    (made / "config.yaml").write_text(dump(config), encoding="utf-8")
    adder = open_adder(made)
    pairs = problems(PUBLIC_SEED)
    right = sum(found == a + b for (a, b), found in zip(pairs, adder.add(pairs), strict=True))
    card = CARD.format(
        what=_KINDS[config.model.kind],
        parameters=adder.parameters,
        batch=config.training.batch_size,
        seeds=config.group.seeds,
        name=opened_as(folder),
        right=right,
        n=len(pairs),
        share="{:.2f} %, {:.2f}-{:.2f}".format(*(100 * part for part in wilson(right, len(pairs))[:3])),
        drawn=len(pairs) - 10,
        config=dump(config).rstrip(),
    )
    (made / "README.md").write_text(card, encoding="utf-8")
