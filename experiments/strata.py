"""Tests models that add or subtract on long carries and very different lengths (lab/numbers/additions.py).

    python -m experiments.strata RUN[,RUN ...] [RUN,... ...] [digits=100,...] [problems=200] [sharpness=1,...]

Each argument is a setting: run directories of `lab.pretrain`, one for each seed. Attention scores are multiplied by the
sharpness, which is 1 in training. Each seed is asked its own `problems` sums in every stratum. Prints exact match by
stratum, mean over the seeds (95 %, the wider of Student's over the seeds and Wilson's over the problems), and the
lowest seed. Each answer is checked in one pass (experiments/shared/one_pass.py), with the same result as generation.
"""

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from experiments.shared.arguments import own, whole_number, whole_numbers
from experiments.shared.one_pass import right_tokens
from experiments.shared.publishing import printed
from experiments.shared.streams import STREAMS
from lab.config.schema import chosen
from lab.drawing.tables import Shown, Table
from lab.errors import ConfigError, RunError, exit_cleanly
from lab.models import loading
from lab.numbers.additions import STRATA
from lab.numbers.statistics import seeds_proportion
from lab.progress import quiet_libraries


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    given = own([part for part in arguments if "=" in part], "digits", "problems", "sharpness")
    lengths = whole_numbers(given, "digits", "100")
    problems = whole_number(given, "problems", 200)
    factors = factors_of(given.get("sharpness", "1"))
    settings = [part for part in arguments if "=" not in part]
    if not settings:
        raise RunError("nothing to measure: give run directories of lab pretrain, with commas between the seeds of one")
    rows = []
    for setting in settings:
        folders = [Path(name) for name in setting.split(",")]
        for length, sharpness in itertools.product(lengths, factors):
            shares = [
                accuracies(folder, length, range(place * problems, (place + 1) * problems), sharpness)
                for place, folder in enumerate(folders)
            ]
            of_strata = [[found[stratum] for found in shares] for stratum in STRATA]
            cells = [shown(values, problems) for values in of_strata]
            together = shown([mean(found.values()) for found in shares], problems * len(STRATA))
            lowest = f"{100 * min(map(min, of_strata)):.1f}"
            rows.append((folders[0].name, str(len(folders)), str(length), f"{sharpness:g}", *cells, together, lowest))
    title = f"Exact match (%), {problems} problems a stratum and seed"
    table = Table(title, ("setting", "seeds", "digits", "sharpness", *STRATA, "all", "lowest"), rows, 1)
    printed(table)
    print(table.markdown())


def factors_of(sharpness: str) -> list[float]:
    """The factors of the argument `sharpness`. Raises ConfigError if they are not numbers."""
    try:
        return [float(part) for part in sharpness.split(",")]
    except ValueError:
        raise ConfigError(f"sharpness={sharpness}: should be numbers, such as sharpness=1") from None


def shown(values: Sequence[float], problems: int) -> Shown:
    """`values`: the share of each seed, each of its own `problems`."""
    return Shown(seeds_proportion(values, problems, same_problems=False), "{:.1f} ({:.1f}-{:.1f})", 100)


def accuracies(folder: Path, length: int, problems: range, sharpness: float) -> dict[str, float]:
    """Exact match by stratum; `problems`: which ones of each stratum's stream."""
    run = loading.load_scratch(folder)
    run.model.sharpen(sharpness)
    problem_of = STREAMS[chosen(run.config.data.tasks)[0].key]
    shares = {}
    for stratum in STRATA:
        found = right_tokens(run, [problem_of(stratum, length, 0, index) for index in problems])
        shares[stratum] = found.count(None) / len(problems)
    return shares


if __name__ == "__main__":
    main(sys.argv[1:])
