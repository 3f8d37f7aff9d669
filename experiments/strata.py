"""Tests models that add or subtract on long carries and very different lengths (lab/numbers/additions.py).

    python -m experiments.strata RUN[,RUN ...] [RUN,... ...] [digits=100,...] [problems=200] [sharpness=1,...]
                                 [table=strata] [output=checkpoints]

Each argument is a setting: run directories of `lab.pretrain`, one for each seed. Attention scores are multiplied by the
sharpness, which is 1 in training. Each seed is asked its own `problems` sums in every stratum. Prints exact match by
stratum (95 %, the wider of Student's over the seeds and Wilson's over the problems), and the lowest seed. Each answer
is checked in one pass (experiments/shared/one_pass.py), with the same result as generation. Writes a row for each
setting, seed, length and stratum to results/strata.csv in the output folder; what is there is not measured again.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.rendering.rows import Rows
from experiments.shared.arguments import own, whole_number, whole_numbers
from experiments.shared.measuring import measured
from experiments.shared.one_pass import right_tokens
from experiments.shared.publishing import beside_runs, printed
from experiments.shared.streams import STREAMS
from lab.config.schema import chosen
from lab.drawing.tables import Shown, Table
from lab.errors import ConfigError, RunError, exit_cleanly
from lab.models import loading
from lab.numbers.additions import STRATA
from lab.progress import quiet_libraries


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    given = own([part for part in arguments if "=" in part], "digits", "problems", "sharpness", "table", "output")
    settings = [part.split(",") for part in arguments if "=" not in part]
    lengths, problems = whole_numbers(given, "digits", "100"), whole_number(given, "problems", 200)
    factors = factors_of(given.get("sharpness", "1"))
    if not settings:
        raise RunError("nothing to measure: give run directories of lab pretrain, with commas between the seeds of one")
    cells = [
        {"setting": Path(runs[0]).name, "seed": seed, "digits": digits, "sharpness": f"{factor:g}", "stratum": stratum}
        | {"run": run, "problems": "own", "n": problems}
        for runs in settings
        for digits in lengths
        for factor in factors
        for seed, run in enumerate(runs)
        for stratum in STRATA
    ]
    rows = measured(beside_runs(arguments).file(f"{given.get('table', 'strata')}.csv"), cells, count_right)
    title = f"Exact match (%), {problems} problems a stratum and seed"
    table = Table(title, ("setting", "seeds", "digits", "sharpness", *STRATA, "all", "lowest"), [*lines(rows)], 1)
    printed(table)
    print(table.markdown())


def lines(rows: Rows) -> Iterator[tuple[str | Shown, ...]]:
    """A line of the table for each setting, length and sharpness."""
    for setting, of_setting in rows.by("setting").items():
        for digits, of_length in of_setting.by("digits").items():
            for sharpness, found in of_length.by("sharpness").items():
                shares = [*(part.share() for part in found.by("stratum").values()), found.share()]
                lowest = min(row.proportion() for part in found.by("stratum").values() for row in part.seeds())
                cells = [Shown(share, "{:.1f} ({:.1f}-{:.1f})", 100) for share in shares]
                yield setting, str(len(found.seeds())), digits, sharpness, *cells, f"{100 * lowest:.1f}"


def count_right(run: str, seed: int, digits: int, sharpness: str, stratum: str, n: int, **_: str) -> dict[str, int]:
    """How many of the seed's own sums of a stratum are right."""
    loaded = loading.load_scratch(Path(run))
    loaded.model.sharpen(float(sharpness))
    problem_of = STREAMS[chosen(loaded.config.data.tasks)[0].key]
    asked = [problem_of(stratum, digits, 0, index) for index in range(seed * n, (seed + 1) * n)]
    return {"right": right_tokens(loaded, asked).count(None)}


def factors_of(sharpness: str) -> list[float]:
    """The factors of the argument `sharpness`. Raises ConfigError if they are not numbers."""
    try:
        return [float(part) for part in sharpness.split(",")]
    except ValueError:
        raise ConfigError(f"sharpness={sharpness}: should be numbers, such as sharpness=1") from None


if __name__ == "__main__":
    main(sys.argv[1:])
