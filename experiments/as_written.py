"""Sums as people write them, nothing reversed: how long may they be, and what is each part of the model for?

    python -m experiments.as_written [seeds=0,1,2] [only=NAME/NAME] [digits=10x100,50x100,100x100] [name=as_written]
                                     [train=false] [key=value ...]

Trains each of WAYS with each seed; finished runs are not trained again, and with train=false, only finished runs are
used. Then asks each run sums of each kind (lab/numbers/additions.py): `digits` says of how many digits, and how many
sums. Each answer is checked in one pass. Other keys change the runs' config. Prints exact match, mean over the seeds
(95 % over seeds and problems), and writes it to NAME.md and .png.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.shared.answered import answered
from experiments.shared.arguments import counts, own_and_others, some_of, true_or_false
from experiments.shared.curves import curves
from experiments.shared.kinds_of_sums import in_words
from experiments.shared.publishing import beside_runs
from experiments.shared.training import trained
from lab.config.loading import load
from lab.config.pretraining import PretrainConfig
from lab.drawing.tables import Shown, Table
from lab.errors import exit_cleanly
from lab.numbers.additions import STRATA
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]
WAYS: dict[str, tuple[str, ...]] = {
    "with the walk down": ("as_written",),
    "no walk down": ("as_written", "parts.stick_breaking.downward=0"),
    "counted places": ("as_written_counted",),
}
"""The config of each model, and the changes to it."""
IDS = 4096
"""Room for the longest sums. More position ids change nothing else, because relative keys know only small distances."""
Found = dict[tuple[str, int], Estimate]


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, keys = own_and_others(arguments, "seeds", "only", "digits", "name", "train")
    seeds, ways = given.get("seeds", "0,1,2").split(","), some_of(WAYS, given.get("only"))
    asked = counts(given, "digits", "10x100,50x100,100x100")
    configs = {way: [configured(way, seed, keys) for seed in seeds] for way in ways}
    if not true_or_false(given, "train", True):
        configs = {way: [one for one in seeds if one.run_status() == "finished"] for way, seeds in configs.items()}
    found = {way: measured([trained(one) for one in seeds], asked) for way, seeds in configs.items() if seeds}
    columns = ("model", "seeds", "sums", *(f"{length} digits" for length in asked))
    rows = [
        (
            way,
            str(len(configs[way])),
            stratum,
            *(Shown(one[stratum, length], "{:.1f} ({:.1f}-{:.1f})", 100) for length in asked),
        )
        for way, one in found.items()
        for stratum in STRATA
    ]
    title = "Sums as people write them: exact match (%)"
    name = given.get("name", "as_written")
    results.show(Table(title, columns, rows, 3), name)
    drawn = {way: {(in_words(kind), n): share for (kind, n), share in one.items()} for way, one in found.items()}
    curves(drawn, [*map(in_words, STRATA)], list(asked), 6, results.file(f"{name}.png"))


def configured(way: str, seed: str, keys: Sequence[str]) -> PretrainConfig:
    name, *changes = WAYS[way]
    changes += [*keys, f"name={way.replace(' ', '_')}_{seed}", f"seed={seed}", "resume=true"]
    return load(PretrainConfig, ROOT / "configs" / f"{name}.yaml", changes)


def measured(folders: Sequence[Path], asked: Mapping[int, int]) -> Found:
    """Exact match by kind of sum and length."""
    shares = {length: [answered(folder, [length], count, IDS) for folder in folders] for length, count in asked.items()}
    return {
        (stratum, length): seeds_proportion(
            [share[f"add_integer, {stratum}", length] for share in shares[length]], count
        )
        for length, count in asked.items()
        for stratum in STRATA
    }


if __name__ == "__main__":
    main(sys.argv[1:])
