"""Writes a trained adder as a small folder that the lab opens by name: weights, config, and a card with its figure."""

from pathlib import Path

from safetensors.torch import save_file

from lab.config.loading import dump
from lab.models.exporting import DTYPES, opened_as, published
from lab.numbers.statistics import wilson
from lab.smallest_adder.asking import WEIGHTS, open_adder, read_weights
from lab.smallest_adder.config import AdderConfig
from lab.smallest_adder.contract import PUBLIC_SEED, problems

CARD = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
_KINDS = {"gpt": "a plain GPT", "tiny": "one layer of Llama", "reduced": "a minimal transformer"}


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
    weights = {key: weight.to(DTYPES[dtype]) for key, weight in read_weights(run).items()}
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
