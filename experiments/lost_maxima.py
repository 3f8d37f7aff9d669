"""A model writes the larger of two numbers, first digit first: at which digits does it switch to the wrong number?

    python experiments/lost_maxima.py RUN[,RUN ...] [longer_than=10]

RUN is a run directory of `lab.pretrain` on max_integer, numbers padded to one length. An answer is followed to its
first wrong digit. If the digits just before tell the model which number it is writing, then it can lose this number
only where these digits are equal in both numbers: after a tie.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from shared.arguments import own_and_listed, whole_number

from lab.benchmarks.results import Sample, read_samples
from lab.errors import RunError, exit_cleanly
from lab.numbers.statistics import wilson
from lab.runs import Run


class Followed(NamedTuple):
    second: bool
    """Whether the second number is the larger one."""
    choices: list[bool]
    """For each place at which the numbers differ, up to the first error: whether it comes after a tie."""
    error: bool | None
    """Whether the first wrong digit comes after a tie; None if all digits are right."""


def followed(sample: Sample) -> Followed:
    width = max(len(sample.problem.a), len(sample.problem.b or ""))
    item = sample.problem
    texts = item.a, item.b or "", item.answer, sample.readings[""].given or ""
    a, b, answer, given = (text.zfill(width) for text in texts)
    wrong = next((place for place in range(width) if given[place] != answer[place]), None)
    after_tie = [False, *(x == y for x, y in zip(a, b, strict=True))]
    places = range(width if wrong is None else wrong + 1)
    choices = [after_tie[place] for place in places if a[place] != b[place]]
    return Followed(b > a, choices, None if wrong is None else after_tie[wrong])


def share(text: str, found: int, whole: int) -> None:
    value, low, high = (100 * part for part in wilson(found, whole)[:3]) if whole else (0, 0, 100)
    print(f"{text}: {found} of {whole}, {value:.1f} % ({low:.1f}-{high:.1f})")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    given, runs = own_and_listed(arguments, "run directories of lab pretrain on max_integer", "longer_than")
    longer_than = whole_number(given, "longer_than", 10)
    samples = [sample for run in runs for sample in read_samples(Run(Path(run)))]
    shown = [s for s in samples if s.length > longer_than and s.readings[""].given is not None]
    if not shown:
        raise RunError(f"{', '.join(runs)}: no answers of more than {longer_than} digits")
    traced = [followed(sample) for sample in shown]
    share("answers that are wrong", sum(one.error is not None for one in traced), len(traced))
    for name, second in (("first", False), ("second", True)):
        of_side = [one for one in traced if one.second == second]
        errors = [one.error for one in of_side if one.error is not None]
        ties = [tie for one in of_side for tie in one.choices]
        print(f"the {name} number is larger")
        share("  wrong", len(errors), len(of_side))
        share("  of the first wrong digits, after a tie", sum(errors), len(errors))
        share("  lost after a tie", sum(errors), sum(ties))
        share("  lost elsewhere", len(errors) - sum(errors), len(ties) - sum(ties))


if __name__ == "__main__":
    main(sys.argv[1:])
