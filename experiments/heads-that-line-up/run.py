"""Which heads of SmolLM2-135M line digits up, before and after fine-tuning on addition, and are they needed?

    python -m experiments.heads-that-line-up.run [seeds=0,1,2] [sums=60] [length=3] [output=checkpoints]
                                        [key=value ...]

Tunes SmolLM2-135M on sums of 1-4 digits by configs/smollm2_sums.yaml, once for each seed. For the untouched and each
tuned model, asked with NUPA's prompt, shows the heads that give the most attention from q_k to digit k of either number
(minus what another column's query gives it), and the accuracy that is lost without them on other sums. Heads are
mean-ablated at the tokens that predict digits: each of them, all of them together, and random heads of the same layers.
Other arguments go to `lab.finetune`. Leaves a table in results/ beside the runs.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.shared.arguments import own_and_others, whole_number, whole_numbers
from experiments.shared.estimates import shown
from experiments.shared.heads import random_groups
from experiments.shared.publishing import beside_runs
from experiments.shared.sums import of_one_length
from experiments.shared.training import trained
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing.tables import Entry, Table
from lab.errors import exit_cleanly
from lab.probing.addition.ablation import ablate
from lab.probing.addition.alignment import alignment
from lab.probing.addition.positions import Sums
from lab.probing.bridge import Subject, open_model
from lab.probing.components import Component
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "smollm2_sums.yaml"
UNTOUCHED = "smollm2-135m-instruct"
BATCH = 16
MOST = 2
"""The number of heads for each operand."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, changes = own_and_others(arguments, "seeds", "sums", "length", "output")
    count, length = whole_number(given, "sums", 60), whole_number(given, "length", 3)
    models = {"as it is": UNTOUCHED}
    for seed in whole_numbers(given, "seeds", "0,1,2"):
        own = [f"name=smollm2_sums_{seed}", f"seed={seed}", f"output={given.get('output', 'checkpoints')}"]
        models[f"tuned, seed {seed}"] = str(trained(load(FinetuneConfig, CONFIG, [*changes, *own, "resume=true"])))
    numbers, others = of_one_length(length, count), of_one_length(length, count, stream=1)
    rows = [row for label, name in models.items() for row in rows_of(label, open_model(name), numbers, others)]
    title = (
        f"SmolLM2-135M, {len(others)} sums of {length} digits: "
        "change in digits right, and in exact match (points, 95 %)"
    )
    columns = ("model", "digits right", "without", "looks at", *(f"column {k}" for k in range(length)), "exact match")
    results.show(Table(title, columns, rows, 4), "smollm2_heads")


def rows_of(
    label: str, subject: Subject, numbers: list[tuple[int, int]], others: list[tuple[int, int]]
) -> list[tuple[Entry, ...]]:
    """A row for each ablation of a model: each of its heads, all of them, and random groups. `numbers` choose the
    heads, and `others` measure what is lost without them."""
    length, sums = len(str(numbers[0][0])), subject.sums(others)
    heads = strongest(subject, subject.sums(numbers), length)
    together = tuple(sorted(heads, key=lambda one: (one.layer, one.head)))
    groups = [(head,) for head in heads] + [together, *random_groups(subject, together, 3)]
    lost = ablate(subject, sums, groups, batch_size=BATCH)
    intact = f"{100 * float(np.nanmean(lost.intact.value)):.0f}"
    looks = [*heads.values(), "all of these", *["random heads of their layers"] * (len(groups) - len(heads) - 1)]
    rows: list[tuple[Entry, ...]] = []
    for group, what in zip(lost.exact.axes["group"], looks, strict=True):
        changed = [
            *(lost.column.at(group=group, column=column) for column in range(length)),
            lost.exact.at(group=group),
        ]
        rows.append((label, intact, group, what, *map(shown, changed)))
    return rows


def strongest(subject: Subject, sums: Sums, length: int) -> dict[Component, str]:
    """The heads that look most at the digit to be added, and the number that each looks at."""
    found = alignment(subject, {length: sums}, batch_size=BATCH)
    heads: dict[Component, str] = {}
    for number in "ab":
        where = {"number": number, "offset": 0, "length": length}
        excess = np.nan_to_num(found.attention.at(**where).value - found.permuted.at(**where).value)
        for place in np.argsort(-excess, axis=None)[:MOST]:
            layer, head = divmod(int(place), subject.heads)
            looks = found.attention.at(layer=layer, head=head, **where)
            heads[Component("head", layer, head)] = f"{number}: {float(looks.value):.2f}"
    return heads


if __name__ == "__main__":
    main(sys.argv[1:])
